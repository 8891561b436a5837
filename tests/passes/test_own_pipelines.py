"""Pipelines as input: passes and levels by name, of ulam, of this process and of installed packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.passes import ModulePass

import ulam
from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes import levels, pipelines
from ulam.passes.lowering_pipeline import lowering_pipeline
from ulam.passes.pipeline_order import NEEDED, check_order, pass_names, requires, split, unit_pipeline
from ulam.passes.pipelines import PipelineError
from ulam.passes.units import UNITS
from ulam.runtime.cached_compiler import CachedCompiler
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.errors import ArgumentError, CompileError
from ulam.runtime.model import StanModel
from ulam.tools import stan_opt, ulam_main

Capture = pytest.CaptureFixture[str]

PROGRAM = """data { int N; vector[N] y; } parameters { real m; }
model {
  real scale = 3.5;
  for (n in 1:N) {
    if (y[n] > 100) break;
    y[n] ~ normal(m, scale);
  }
}
"""
DATA = {"N": 3, "y": [1, 2, 4]}
AT = np.array([0.3])

OWN = '''"""A package's passes."""
from xdsl.dialects.builtin import FloatAttr
from xdsl.passes import ModulePass

from ulam.dialects import stan

FACTOR = {factor}


class Widen(ModulePass):
    """Makes real constants of 3.5 larger."""

    name = "widen"

    def apply(self, ctx, op):
        for inner in op.walk():
            if inner.name == "stan.constant" and isinstance(inner.value, FloatAttr) and inner.value.value.data == 3.5:
                inner.properties["value"] = FloatAttr(FACTOR * 3.5, inner.value.type)


WIDE = "function-inlining,widen"
'''


def widen(module: ModuleOp, factor: float) -> None:
    for op in ops_within(module):
        if isinstance(op, stan.ConstantOp) and isinstance(op.value, FloatAttr) and op.value.value.data == 3.5:
            op.properties["value"] = FloatAttr(factor * 3.5, op.value.type)


class Double(ModulePass):
    """Doubles the scale."""

    name = "double"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        widen(op, 2)


class AfterExits(ModulePass):
    """Wants a program without breaks."""

    name = "after-exits"
    REQUIRES: ClassVar[tuple[str, ...]] = ("structure-exits",)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert not any(isinstance(inner, stan.BreakOp) for inner in ops_within(op))


def density(program: str = PROGRAM, **options: Any) -> float:
    model = StanModel(program, DATA, **{"cache": False, **options})
    value, gradient = model.log_density_gradient(AT, propto=False)
    assert np.isfinite(gradient).all()
    return value


PLAIN = density(opt_level=0)
DOUBLED = density(PROGRAM.replace("3.5", "7.0"), opt_level=0)


@pytest.mark.parametrize(
    "passes",
    [
        "",
        "builtin.module(function-inlining,loop-vectorization)",
        'structure-exits,promote-variables',
        'repeat{passes="copy-propagation,dead-code-elimination" max=2}',
        "convert-stan-to-loops",
        "dead-code-elimination,convert-stan-to-loops,simplify,lighten-loops,dce",
        "convert-stan-to-loops,reverse-mode,thread-target,dce,release-arena",
    ],
)  # fmt: skip
def test_a_pipeline_is_compiled(passes: str) -> None:
    assert density(passes=passes) == pytest.approx(PLAIN, rel=1e-12)


def test_kernels_are_shared_behind_reverse_mode() -> None:
    text = "data { matrix[2, 2] L; } parameters { vector[2] v; } model { target += sum(mdivide_left_tri_low(L, v)); }"
    data, passes = {"L": [[2, 0], [1, 3]]}, "convert-stan-to-loops,reverse-mode,share-kernels"
    found = (StanModel(text, data, cache=False, passes=passes), StanModel(text, data, cache=False, opt_level=0))
    first, second = (model.log_density_gradient(np.array([0.3, 0.4])) for model in found)
    assert first[0] == pytest.approx(second[0]) and first[1] == pytest.approx(second[1])


def test_hessians_of_a_pipeline_for_units() -> None:
    model = StanModel(PROGRAM, DATA, passes="convert-stan-to-loops,simplify,forward-mode", cache=False)
    assert model.log_density_hessian(AT)[2] == pytest.approx(np.array([[-3 / 3.5**2]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"passes": "", "opt_level": 3}, "either opt_level or passes"),
        ({"passes": "lop-vectorization"}, "unknown pass 'lop-vectorization'; did you mean 'loop-vectorization'"),
        ({"passes": 'repeat{passes="cpy-propagation"}'}, "unknown pass 'cpy-propagation'; did you mean"),
        ({"passes": "dce{"}, "cannot read the pass pipeline"),
        ({"passes": "repeat{max=3}"}, "wrong options for pass 'repeat'"),
        ({"passes": 3}, "passes must be a pipeline's text"),
        ({"passes": "static-loop-unrolling{limt=3}"}, "wrong options for pass 'static-loop-unrolling'"),
        ({"passes": "convert-stan-to-loops,release-arena,reverse-mode"}, "'release-arena' needs 'reverse-mode' before"),
        ({"passes": "convert-stan-to-loops,logs-to-products,reverse-mode"}, "needs 'reverse-mode' before it"),
        ({"passes": "promote-variables"}, "needs 'structure-exits' before it: put structure-exits in front"),
        ({"passes": "hoist-data"}, "needs 'convert-stan-to-loops' before it"),
        ({"passes": "convert-stan-to-loops,copy-propagation"}, "put it before convert-stan-to-loops"),
        ({"passes": "convert-stan-to-loops,thread-target,reverse-mode"}, "needs 'reverse-mode' before it"),
        ({"passes": "convert-stan-to-loops{unit=setup}"}, "without options"),
        ({"passes": "trace-instrument"}, "is for traces"),
        ({"opt_level": "mine"}, "unknown level 'mine'"),
        ({"opt_level": 9}, "an int from 0 to 4, or the name of a level, found 9"),
    ],
)
def test_wrong_pipelines_and_levels(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        density(**options)


def test_a_level_with_wrong_passes_is_named() -> None:
    ulam.register_level("mine", "function-inlining,lop-vectorization")
    with pytest.raises(ArgumentError, match="level 'mine': unknown pass 'lop-vectorization'; did you mean"):
        density(opt_level="mine")


def test_units_get_what_they_cannot_do_without() -> None:
    gradient, hessian = UNITS["gradient_propto"], UNITS["hessian_vector_full"]
    assert unit_pipeline("", gradient) == ",".join(NEEDED[:-1])
    assert unit_pipeline("", hessian) == ",".join(NEEDED)
    assert unit_pipeline("simplify,thread-target,dce", hessian) == (
        "simplify,hoist-data,reverse-mode,thread-target,dce,forward-mode"
    )
    assert unit_pipeline("simplify,forward-mode,dce", gradient) == "simplify,dce,hoist-data".replace(
        "dce,hoist-data", "hoist-data,dce,reverse-mode,thread-target"
    )
    assert unit_pipeline('dce,if-changed{passes="sum-arms" then="dce"},release-arena', hessian) == (
        'hoist-data,dce,reverse-mode,if-changed{passes="sum-arms" then="dce"},thread-target,forward-mode,release-arena'
    )
    assert split("a-b,convert-stan-to-loops") == ("a-b", "")
    assert split("a-b") == ("a-b", None)


def test_passes_that_levels_have_behind_reverse_mode_need_it() -> None:
    before: set[str] = set()
    behind: set[str] = set()
    for level, unit in product(pipelines.LEVELS, UNITS.values()):
        names = list(pass_names(lowering_pipeline(unit, level)))
        if "reverse-mode" in names:
            at = names.index("reverse-mode")
            before |= {*names[:at]}
            behind |= {*names[at + 1 :]}
    assert {name for name in behind - before if "reverse-mode" not in requires(name)} == set()


def test_every_pass_before_what_it_needs_is_refused() -> None:
    """Alone, a pass of units is never run on a program."""
    for name, home in pipelines.PASSES.items():
        if home.startswith(("ulam.passes.loops.", "ulam.passes.autodiff.")) and name != "if-changed":
            with pytest.raises(PipelineError, match="needs 'convert-stan-to-loops' before it"):
                check_order(name)


def test_a_registered_pass_and_level() -> None:
    assert ulam.register_pass(Double) is Double
    assert density(passes="function-inlining,double") == pytest.approx(DOUBLED, rel=1e-12)
    ulam.register_level("doubled", "double", like=0)
    assert density(opt_level="doubled") == DOUBLED
    model = StanModel(PROGRAM, DATA, opt_level="doubled", cache=False)
    assert model.model_info().endswith("Optimization level: doubled\n")
    assert model.as_written.log_density(AT, propto=False) == PLAIN


def test_a_pass_says_what_must_come_before_it() -> None:
    ulam.register_pass(AfterExits)
    with pytest.raises(ArgumentError, match="'after-exits' needs 'structure-exits' before it: put structure-exits in"):
        density(passes="after-exits")
    assert density(passes="structure-exits,after-exits") == pytest.approx(PLAIN, rel=1e-12)


def test_mistakes_of_a_pass_are_told_as_its_own() -> None:
    class Fails(ModulePass):
        name = "fails"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            raise KeyError("nothing there")

    class Breaks(ModulePass):
        name = "breaks"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            op.body.block.first_op.properties.clear()  # pyright: ignore
            next(o for o in ops_within(op) if isinstance(o, stan.ConstantOp)).properties.clear()

    ulam.register_pass(Fails)
    ulam.register_pass(Breaks)
    with pytest.raises(CompileError, match="pass 'fails' failed: KeyError: 'nothing there'"):
        density(passes="fails")
    with pytest.raises(CompileError, match="pass 'breaks' left a module that breaks a rule"):
        density(passes="breaks")


@pytest.mark.parametrize("wrong", [Double, type("X", (ModulePass,), {"name": "No Name", "apply": Double.apply}), 3])
def test_what_cannot_be_registered(wrong: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Double, "name", "dce")
    with pytest.raises(PipelineError):
        ulam.register_pass(wrong)
    with pytest.raises(PipelineError):
        ulam.register_level("fine", "a", like=9)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An installed package with a pass and a level."""
    (tmp_path / "widening").mkdir()
    (tmp_path / "widening" / "__init__.py").write_text("")
    (tmp_path / "widening" / "passes.py").write_text(OWN.format(factor=2))
    info = tmp_path / "widening-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: widening\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[ulam.passes]\nwiden = widening.passes:Widen\nabsent = widening.nothing:Absent\n"
        "[ulam.levels]\nwide = widening.passes:WIDE\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for point in (pipelines.OWN_PASSES, levels.OWN_LEVELS):
        monkeypatch.setattr(point, "_entries", None)
        monkeypatch.setattr(point, "_loaded", {})
    yield tmp_path / "widening" / "passes.py"
    for name in [name for name in sys.modules if name.startswith("widening")]:
        del sys.modules[name]


def key(passes: str) -> str:
    options = CompileOptions(pipeline=passes)
    return CachedCompiler(PROGRAM, "model.stan", options)._keys.of("setup")  # pyright: ignore[reportPrivateUsage]


@pytest.mark.usefixtures("package")
def test_a_pass_and_a_level_of_a_package(tmp_path: Path, capsys: Capture) -> None:
    assert density(passes="widen") == pytest.approx(DOUBLED, rel=1e-12)
    assert density(opt_level="wide") == pytest.approx(DOUBLED, rel=1e-12)
    with pytest.raises(ArgumentError, match=r"pass 'absent' of widening 1\.0 cannot be imported: ModuleNotFoundError"):
        density(passes="absent")
    with pytest.raises(ArgumentError, match="unknown level 'wde'; did you mean 'wide'"):
        density(opt_level="wde")
    file = tmp_path / "m.stan"
    file.write_text(PROGRAM)
    assert stan_opt.main([str(file), "-O", "wide", "-t", "stan"]) == 0
    assert "real scale = 7;" in capsys.readouterr().out.replace("7.0;", "7;")
    assert stan_opt.main([str(file), "--passes", "widen", "-t", "stan"]) == 0
    shown = ["log-density", str(file), "-d", '{"N": 3, "y": [1, 2, 4]}', "--unconstrained", "0.3", "--no-propto"]
    assert ulam_main.main([*shown, "--passes", "widen", "--no-cache"]) == 0
    assert f"{DOUBLED:.8}"[:-1] in capsys.readouterr().out


def test_the_key_of_the_cache_has_name_version_and_source_of_a_pass(package: Path) -> None:
    first = key("widen")
    assert "widening" not in sys.modules, "nothing is imported for a key"
    package.write_text(OWN.format(factor=4))
    assert (second := key("widen")) != first
    metadata = package.parent.parent / "widening-1.0.dist-info" / "METADATA"
    metadata.write_text(metadata.read_text().replace("1.0", "1.1"))
    pipelines.OWN_PASSES._entries = None  # pyright: ignore[reportPrivateUsage]
    assert key("widen") not in (first, second)


def test_what_is_known_reads_no_entry_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipelines.OWN_PASSES, "_entry_points", lambda: pytest.fail("entry points were read"))
    monkeypatch.setattr(levels.OWN_LEVELS, "_entry_points", lambda: pytest.fail("entry points were read"))
    assert key("dead-code-elimination") != key("copy-propagation")


def test_bench_of_two_pipelines(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "m.stan"
    file.write_text(PROGRAM)
    shown = ["bench", str(file), "-d", '{"N": 3, "y": [1, 2, 4]}', "--rounds", "2", "--gradients", "3"]
    assert ulam_main.main([*shown, "--passes", "", "--vs-passes", "dead-code-elimination"]) == 0
    printed = capsys.readouterr().out
    assert "m.stan --passes ''" in printed and "m.stan --passes dead-code-elimination" in printed
    assert ulam_main.main([*shown, "-O1", "--vs-passes", "nothing-known"]) == 2
    assert capsys.readouterr().err.startswith("ulam: error: --vs-passes: unknown pass 'nothing-known'")
    assert ulam_main.main([*shown, "-O1", "--passes", ""]) == 2
    assert "give either --opt-level or --passes" in capsys.readouterr().err
