"""The passes of a level in the compiler and the runtime: where they run, and who tells errors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.passes import pipelines
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import ProgramError, Rejection
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """parameters { real a; }
transformed parameters {
  real b = a;
  print("b ", b);
  if (a < -1) reject("small a ", a);
}
model {
  if (a > 1) reject("large a ", a);
  a ~ normal(0, 1);
}
generated quantities {
  real c = normal_rng(0, 1);
  if (b > 0) reject("positive");
}
"""


@dataclass(frozen=True)
class Reword(ModulePass):
    """Stands for a pass that changes what errors say."""

    name = "reword"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if isinstance(inner, stan.ConstantOp) and isinstance(text := inner.properties["value"], StringAttr):
                inner.properties["value"] = StringAttr(text.data.upper())


@pytest.fixture
def levels(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pass_class = pipelines.pass_class
    monkeypatch.setattr(pipelines, "pass_class", lambda name: Reword if name == "reword" else pass_class(name))
    monkeypatch.setitem(pipelines.PASSES, "reword", ":Reword")
    monkeypatch.setitem(pipelines.LEVELS, 3, ("reword",))
    yield


def error_of(model: StanModel, at: float, *, gradient: bool) -> str:
    with pytest.raises(Rejection) as raised:
        (model.log_density_gradient if gradient else model.log_density)(np.array([at]))
    return str(raised.value)


@pytest.mark.parametrize("gradient", [False, True])
@pytest.mark.usefixtures("levels")
def test_errors_of_evaluations_are_told_by_the_program_as_written(
    gradient: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    model = StanModel(PROGRAM, cache=False)
    assert error_of(model, -2, gradient=gradient) == "small a -2 (in 'model.stan', line 5, column 15)"
    assert error_of(model, 2, gradient=gradient) == "large a 2 (in 'model.stan', line 8, column 14)"
    assert capsys.readouterr().out == "B -2\nB 2\n"  # what is printed, and once, is the optimised program's


@pytest.mark.usefixtures("levels")
def test_errors_of_generated_quantities_are_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    model = StanModel(PROGRAM, cache=False)
    with pytest.raises(Rejection, match="^small a -2"):
        model.param_constrain(np.array([-2.0]), include_gq=True, rng=model.new_rng(1))
    with pytest.raises(Rejection, match="^POSITIVE"):
        model.param_constrain(np.array([0.5]), include_gq=True, rng=model.new_rng(1))
    with pytest.raises(Rejection, match="^POSITIVE"):  # the model block, which would reject, takes no part
        model.param_constrain(np.array([2.0]), include_gq=True, rng=model.new_rng(1))
    assert capsys.readouterr().out == "B -2\nB 0.5\nB 2\n"
    assert len(model.param_constrain(np.array([-2.0]))) == 1
    assert error_of(StanModel(PROGRAM, cache=False, opt_level=0), -2, gradient=False).startswith("small a -2")


@pytest.mark.usefixtures("levels")
def test_a_pipeline_takes_the_place_of_the_levels_passes() -> None:
    assert CompileOptions(3).passes == "reword"
    assert CompileOptions(3, pipeline="").passes == ""
    assert CompileOptions(0, pipeline="reword").passes == "reword"
    chosen = (
        CompileOptions(3),
        CompileOptions(3, pipeline=""),
        CompileOptions(0),
        CompileOptions(0, pipeline="reword"),
    )
    keys = {
        CachedCompiler(PROGRAM, "model.stan", options)._keys.of("setup")  # pyright: ignore[reportPrivateUsage]
        for options in chosen
    }
    assert len(keys) == 4
    written = Compiler(PROGRAM, options=CompileOptions(3, pipeline="")).module
    assert '"small a "' in str(written) and '"SMALL A "' in str(Compiler(PROGRAM, options=CompileOptions(3)).module)


@pytest.mark.parametrize("level", [0, 3])
def test_what_was_printed_before_an_error_in_work_on_data_is_shown(
    level: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error is found when data are bound, ahead of all evaluations; each evaluation prints what comes before it."""
    text = """data { int n; } transformed data { vector[2] v = [1, 2]'; } parameters { real p; }
      model { print("first"); target += p * v[n]; print("never"); }"""
    model = StanModel(text, {"n": 3}, opt_level=level)
    for _ in range(2):
        for evaluate in (model.log_density, model.log_density_gradient):
            with pytest.raises(ProgramError, match="index"):
                evaluate(np.array([0.5]))
            assert capsys.readouterr().out == "first\n"
