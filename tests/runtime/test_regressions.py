"""Programs that went wrong once, one file each in tests/regressions. The first line says what went wrong.

Comments of the form `// key: value` say what to expect:
    data: JSON          the data
    point: JSON         unconstrained parameters; else drawn
    error: text         a part of the message of the CompileError
    rejects: text       a part of the message with which the point is rejected
    value: number       the log density
    outputs: JSON       transformed parameters and generated quantities; null for a number that is drawn
    prints: JSON text   what an evaluation of the log density prints
    generates: JSON text  what generated quantities print
    fails: text         a part of the message with which generated quantities fail
Without `error` all units compile, and without `rejects` the gradient agrees with central differences. All but `error`
and `rejects` hold at every level; `R01` to `R23` are what the reference compiler's optimizer got wrong once, each with
what the program should do.
"""

from __future__ import annotations

import json
import math
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from regression_programs import FOLDER, PROGRAMS, expectations

import ulam
from ulam.passes.pipelines import LEVELS
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import CompileError, InternalCompilerError, ProgramError, Rejection
from ulam.runtime.interpreter_settings import RECURSION_LIMIT

pytestmark = pytest.mark.usefixtures("quick_code")

UNITS = ("setup", "value_propto", "value_full", "gradient_full", "unconstrain", "locate")


def _use_everything(path: Path, expected: dict[str, str]) -> ulam.StanModel:
    compiler = Compiler(path.read_text(), path.name)
    model = ulam.StanModel(path, expected.get("data"), cache=False)
    if "fails" not in expected:
        model.param_constrain(np.zeros(model.param_unc_num()), include_tp=True, include_gq=True, rng=model.new_rng(1))
    for unit in UNITS:
        compiler.compiled(unit)
    return model


def _differences(model: ulam.StanModel, point: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    step = 1e-4
    result = np.zeros(len(point))
    for n in range(len(point)):
        direction = np.zeros(len(point))
        direction[n] = step
        near = model.log_density(point + direction) - model.log_density(point - direction)
        far = model.log_density(point + 2 * direction) - model.log_density(point - 2 * direction)
        result[n] = (8 * near - far) / (12 * step)
    return result


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(FOLDER)
    path = Path(path.name)
    expected = expectations(path.read_text())
    if "error" in expected:
        with pytest.raises(CompileError, match=re.escape(expected["error"])) as raised:
            _use_everything(path, expected)
        assert not isinstance(raised.value, InternalCompilerError)
        return
    model = ulam.StanModel(path, expected.get("data"), cache=False)
    point = _point(model, expected)
    if "rejects" in expected:
        for evaluate in (model.log_density, model.log_density_gradient):
            with pytest.raises(Rejection, match=re.escape(expected["rejects"])):
                evaluate(point)
        return
    _use_everything(path, expected)
    value, gradient = model.log_density_gradient(point)
    if math.isfinite(value):
        np.testing.assert_allclose(gradient, _differences(model, point), rtol=1e-7, atol=1e-7)


def _point(model: ulam.StanModel, expected: dict[str, str]) -> npt.NDArray[np.float64]:
    if "point" in expected:
        return np.array(json.loads(expected["point"]), float)
    return np.random.default_rng(1).uniform(-1, 1, model.param_unc_num())


_TOLD = [path for path in PROGRAMS if not {"error", "rejects"} & expectations(path.read_text()).keys()]


@pytest.mark.parametrize("level", sorted(LEVELS))
@pytest.mark.parametrize("path", _TOLD, ids=lambda path: path.stem)
def test_what_a_program_does_at_every_level(path: Path, level: int, capsys: pytest.CaptureFixture[str]) -> None:
    expected = expectations(path.read_text())
    model = ulam.StanModel(path, expected.get("data"), cache=False, opt_level=level)
    point = _point(model, expected)
    if "value" in expected:
        np.testing.assert_allclose(model.log_density(point), float(expected["value"]), rtol=1e-13)
        assert capsys.readouterr().out == json.loads(expected.get("prints", '""'))
    generate = partial(model.param_constrain, point, include_tp=True, include_gq=True, rng=model.new_rng(1))
    if "fails" in expected:
        with pytest.raises(ProgramError, match=re.escape(expected["fails"])):
            generate()
        return
    written = generate()[model.param_num() :]
    assert capsys.readouterr().out == json.loads(expected.get("generates", '""'))
    if "outputs" in expected:
        outputs = json.loads(expected["outputs"])
        assert len(outputs) == len(written)
        told = [n for n, output in enumerate(outputs) if output is not None]
        np.testing.assert_allclose(written[told], [outputs[n] for n in told], atol=1e-8)


# ---------------------------------------------------------------- depth


def _sum_of(count: int) -> str:
    return "parameters { real a; } model { target += " + " + ".join(["a"] * count) + "; }"


def _else_if_chain(count: int) -> str:
    branches = " else ".join(f"if (n == {k}) target += {k} * a;" for k in range(count))
    return f"data {{ int n; }} parameters {{ real a; }} model {{ {branches} }}"


def _nested_loops(count: int) -> str:
    return f"parameters {{ real a; }} model {{ {''.join(f'for (i{k} in 1:1) ' for k in range(count))} target += a; }}"


def test_functions_that_call_others_too_deeply() -> None:
    """A clear error; a thousand in a row compile (`benchmarks/compile_time.py`)."""
    chain = " ".join(f"real f{k}(real x) {{ return f{k - 1}(x) + x; }}" for k in range(1, 7000))
    functions = f"functions {{ real f0(real x) {{ return x; }} {chain} }}"
    model = ulam.StanModel(functions + "parameters { real x; } model { target += f6999(x); }", opt_level=0)
    with pytest.raises(ulam.CompileError, match="too many times in a row") as raised:
        model.log_density(np.zeros(1))
    assert type(raised.value) is ulam.CompileError


@pytest.mark.parametrize(
    ("text", "slope"),
    [
        (_sum_of(1500), 1500),
        (_else_if_chain(330), 3),
        ("parameters { real a; } model { target += " + "(" * 190 + "a" + ")" * 190 + "; }", 1),
        (_nested_loops(90), 1),
    ],
    ids=["operators", "else-if", "parentheses", "loops"],
)
def test_deep_programs_compile(text: str, slope: float) -> None:
    limit = sys.getrecursionlimit()
    assert limit < RECURSION_LIMIT
    model = ulam.StanModel(text, {"n": 3}, cache=False)
    value, gradient = model.log_density_gradient(np.array([0.25]))
    assert value == pytest.approx(0.25 * slope)
    assert gradient == pytest.approx(slope)
    assert sys.getrecursionlimit() == limit


# ---------------------------------------------------------------- mistakes of the compiler's own


def _fail(*_: object) -> None:
    raise KeyError("a mistake")


def test_a_failing_handler_is_reported_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    from ulam.dialects import stan
    from ulam.passes.to_loops.lowering import HANDLERS

    monkeypatch.setitem(HANDLERS, stan.TargetAddOp, _fail)
    model = ulam.StanModel("parameters { real a; }\nmodel {\n  target += a; }", cache=False)
    with pytest.raises(
        InternalCompilerError, match=r"^model.stan:3:\d+: internal error.*KeyError: 'a mistake'"
    ) as raised:
        model.log_density(np.zeros(1))
    assert "please report" in str(raised.value)


def test_the_command_line_reports_a_mistake_of_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ulam.emit import llvm_module
    from ulam.tools import exits
    from ulam.tools import ulam_main as command

    monkeypatch.setattr(llvm_module, "emit_module", _fail)
    program = tmp_path / "model.stan"
    program.write_text("parameters { real a; } model { a ~ normal(0, 1); }")
    status = command.main(["log-density", str(program), "--params", "[0]", "--no-cache"])
    assert status == exits.EXIT_INTERNAL
    written = capsys.readouterr().err
    assert written.startswith("ulam: internal error") and "KeyError" in written
    assert "Traceback" not in written and "please report" in written


# ---------------------------------------------------------------- what is out of range


@pytest.mark.parametrize("opt_level", [0, 3])
@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("for (n in 1:4) target += y[n];", "y[n]"),
        ("for (n in 1:3) target += m[n, n + 1];", "m[n, n + 1]"),
        ("target += sum(y[k]) ;", "y[k]"),
        ("target += sum(y[2:\n 7]);", "y[2: 7]"),
        ("vector[2] z; z[size(k)] = 1; target += z[1];", "z[size(k)]"),
        ("target += col(m, 5)[1];", "col(m, 5)[1]"),
    ],
)
def test_an_index_out_of_range_names_the_array(statement: str, written: str, opt_level: int) -> None:
    text = "data { vector[3] y; matrix[3, 3] m; array[4] int k; } parameters { real a; } model { " + statement + " }"
    data = {"y": [1, 2, 3], "m": [[1, 2, 3]] * 3, "k": [1, 2, 3, 4]}
    with pytest.raises(ulam.FatalError) as caught:
        ulam.StanModel(text, data, opt_level=opt_level).log_density(np.array([0.5]))
    assert f"expecting index to be between 1 and {caught.value.values[1]:g}, in `{written}` (in" in str(caught.value)
