"""Modules in and out: `.mlir` files and xDSL modules are models, and a model shows its modules and its assembly."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f64

import ulam
from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.runtime.errors import ArgumentError, CompileError, Rejection
from ulam.runtime.model import StanModel
from ulam.runtime.staged_model import module_text
from ulam.tools import stan_opt, ulam_main

Capture = pytest.CaptureFixture[str]

PROGRAM = """functions { real twice(real x) { if (x > 0) return 2 * x; return x + x; } }
data { int N; vector[N] y; }
transformed data { vector[N] z = y / 2; }
parameters { real m; real<lower=0> s; }
model {
  for (n in 1:N) {
    if (z[n] > 100) break;
    z[n] ~ normal(twice(m), s);
  }
}
generated quantities { real g = normal_rng(m, s); complex c = to_complex(m, s); }
"""
DATA = {"N": 3, "y": [1, 2, 4]}
AT = np.array([0.3, -0.2])
BROKEN = """builtin.module {
  stan.program @m {
    stan.block model {
      %x = stan.constant 1.0 : f64
      %v = stan.row_vector %x : (!stan.real) -> !stan.row_vector
      %k = stan.constant 1 : i32
      stan.target_add %k : !stan.int
      stan.nothing
    }
  }
}
"""


@pytest.fixture(scope="module")
def written() -> StanModel:
    return StanModel(PROGRAM, DATA, cache=False, opt_level=0)


@pytest.fixture(scope="module")
def reference(written: StanModel) -> tuple[float, np.ndarray]:
    return written.log_density_gradient(AT, propto=False)


@pytest.mark.parametrize("stage", ["written", "optimized", "values"])
@pytest.mark.parametrize("level", [0, 3])
def test_a_module_of_a_model_is_the_model(
    stage: str, level: int, written: StanModel, reference: tuple[float, np.ndarray]
) -> None:
    module = StanModel(PROGRAM, DATA, opt_level=level).module(stage)
    before = str(module)
    model = StanModel.from_module(module, DATA, opt_level=level, cache=False)
    assert str(module) == before
    value, gradient = model.log_density_gradient(AT, propto=False)
    assert value == pytest.approx(reference[0], rel=1e-12) and gradient == pytest.approx(reference[1], rel=1e-10)
    assert model.param_names(include_gq=True) == written.param_names(include_gq=True)
    rng = [each.new_rng(3) for each in (model, written)]
    drawn = [m.param_constrain(AT, include_gq=True, rng=r) for m, r in zip((model, written), rng, strict=True)]
    assert (drawn[0] == drawn[1]).all()


def test_places_are_those_of_the_program(written: StanModel) -> None:
    model = StanModel.from_module(written.module("written"), DATA, cache=False)
    with pytest.raises(Rejection, match=r"sigma is 0.*in 'model.stan', line 8, column 5"):
        model.log_density(np.array([0.3, -800]))


def test_an_edited_module(written: StanModel, reference: tuple[float, np.ndarray]) -> None:
    module = written.module("written")
    for op in ops_within(module):
        if isinstance(op, stan.CallOp) and op.callee.data == "normal_lpdf":
            block, scale = op.parent_block(), stan.ConstantOp(2.0)
            assert block is not None
            block.insert_op_before(scale, op)
            op.operands[2] = scale.res
    model = StanModel.from_module(module, DATA, cache=False)
    other = StanModel(PROGRAM.replace("twice(m), s)", "twice(m), 2)"), DATA, cache=False)
    assert model.log_density(AT, propto=False) == pytest.approx(other.log_density(AT, propto=False))
    assert pickle.loads(pickle.dumps(model)).log_density(AT) == model.log_density(AT)


def test_stages_and_units(written: StanModel) -> None:
    assert "stan.declare" in str(written.module("optimized")) and "arith" not in str(written.module("values"))
    loops, lowered = written.module("loops"), written.module("lowered", "gradient_full")
    assert "ad.gradient" in str(loops) and "ad.gradient" not in str(lowered)
    assert "@evaluate" in written.llvm_ir("constrain") and "define" in written.llvm_ir()
    assert "gradient_propto.evaluate" in written.assembly()
    for wrong, hint in (({"stage": "writen"}, "did you mean 'written'"), ({"unit": "value"}, "did you mean 'value_")):
        with pytest.raises(ArgumentError, match=hint):
            written.module(**wrong)
    with pytest.raises(ArgumentError, match="there is no unit 'x'"):
        written.llvm_ir("x")


def test_units_of_level_4_are_for_the_data() -> None:
    model = StanModel(PROGRAM, DATA, opt_level=4, cache=False)
    assert str(model.module("optimized")) != str(
        StanModel(PROGRAM, DATA, opt_level=3, cache=False).module("optimized")
    )


@pytest.mark.parametrize(
    ("module", "message"),
    [
        (BROKEN, r"m.*\.mlir:8:7: error: Operation stan.nothing is not registered"),
        (BROKEN.replace("stan.nothing", ""), r":7:7: error: only reals and containers of reals"),
        ("builtin.module {\n}\n", r":1:1: error: a model's module holds a stan.program, and there is none"),
        ("builtin.module {\n  stan.program @a {\n  }\n  stan.program @b {\n  }\n}\n", r":4:3: error: a second stan.p"),
        ("builtin.module {\n", r"error: "),
        ("", "error: "),
    ],
)
def test_malformed_modules_have_a_line(module: str, message: str) -> None:
    with pytest.raises(CompileError, match=message) as raised:
        StanModel.from_module(module, {}, cache=False)
    assert type(raised.value) is CompileError


def test_modules_that_are_no_models(written: StanModel) -> None:
    with pytest.raises(CompileError, match="there is none; a unit that has been lowered"):
        StanModel.from_module(written.module("lowered"), DATA)
    wrong = written.module("written")
    constant = next(op for op in ops_within(wrong) if isinstance(op, stan.ConstantOp))
    constant.properties["value"] = FloatAttr(1.0, f64)
    constant.results[0].name_hint = None
    module = wrong.clone()
    next(op for op in ops_within(module) if isinstance(op, stan.CallOp)).properties.pop("callee")
    with pytest.raises(CompileError, match=r"model.stan:\d+:\d+: error: |error: "):
        StanModel.from_module(module, DATA)
    with pytest.raises(ArgumentError, match="a module is a builtin.module of xDSL, or its text, found int"):
        StanModel.from_module(3, DATA)  # pyright: ignore[reportArgumentType]
    assert isinstance(wrong, ModuleOp)


@pytest.mark.parametrize(
    ("stage", "old", "new", "message"),
    [
        ("written", "= stan.parameter", "= stan.declare", "is declared among parameters, and is none"),
        ("values", "stan.define ", "stan.define no_", "is not declared in this block"),
        ("written", 'definition "normal_lpdf"', 'definition "std_normal_lpdf"', "called with 3|has no function"),
    ],
)
def test_modules_that_break_rules_of_programs(stage: Any, old: str, new: str, message: str) -> None:
    text = "parameters { real a; } transformed parameters { real b = a * 2; } model { b ~ normal(a, 1); }"
    module = str(StanModel(text, {}, opt_level=0).module(stage))
    assert old in module
    with pytest.raises(CompileError, match=message):
        StanModel.from_module(module.replace(old, new, 1), {}, cache=False)


@pytest.fixture
def file(tmp_path: Path, written: StanModel, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("m.mlir").write_text(module_text(written.module("written")))
    Path("d.json").write_text(json.dumps(DATA))
    return "m.mlir"


def test_mlir_files_are_models(
    file: str, written: StanModel, reference: tuple[float, np.ndarray], tmp_path: Path
) -> None:
    for source in (file, Path(file), Path(file).read_text()):
        model = StanModel(source, "d.json", cache=False)
        assert model.log_density(AT, propto=False) == pytest.approx(reference[0])
    program = ulam.StanProgram(file)
    assert program.declarations() == ["int N", "vector y"]
    assert program("d.json").log_density(AT, propto=False) == pytest.approx(reference[0])
    trace: Any = model.check_gradient(AT)
    assert "gradient" in str(trace)
    with pytest.raises(ArgumentError, match="reads the text of a Stan program, and m.mlir is MLIR: `stan-opt -t stan"):
        StanModel(file, "d.json").explain(AT)


COMMANDS = {
    "check m.mlir": "",
    "info m.mlir": '"inputs"',
    "log-density m.mlir -d d.json --init 0": "log_density",
    "optimize m.mlir -d d.json --no-cache": "estimate",
    "trace m.mlir -d d.json --density --init 0": "log_prob",
    "bench m.mlir -d d.json --vs-opt-level 1 --rounds 2 --gradients 2": "m.mlir -O0",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_take_mlir(command: str, file: str, capsys: Capture) -> None:
    assert ulam_main.main([*command.split(), "-O0"] if "check" not in command and "info" not in command else
                          command.split()) == 0  # fmt: skip
    assert COMMANDS[command] in capsys.readouterr().out
    broken = Path(file).read_text().replace("stan.target_add", "stan.target_ad", 1)
    Path(file).write_text(broken)
    line = broken[: broken.index("stan.target_ad ")].count("\n") + 1
    assert ulam_main.main(command.split()) == 1
    assert f"m.mlir:{line}:" in capsys.readouterr().err


def test_features_that_read_text_say_so(file: str, capsys: Capture) -> None:
    assert ulam_main.main(["explain", file, "-d", "d.json", "--init", "0"]) == 2
    assert "`stan-opt -t stan m.mlir -o m.stan` writes it as Stan" in capsys.readouterr().err
    assert stan_opt.main(["-t", "stan", file, "-o", "m.stan"]) == 0
    assert ulam_main.main(["explain", "m.stan", "-d", "d.json", "--init", "0"]) == 0


def test_every_example_is_the_same_with_places(capsys: Capture, tmp_path: Path) -> None:
    """What is printed with places is read back."""
    for program in sorted((Path(__file__).parents[2] / "examples").glob("*.stan")):
        assert stan_opt.main([str(program), "--locations"]) == 0
        printed = capsys.readouterr().out.replace("loc(unknown)", 'loc("m.stan":1:1)')
        (tmp_path / "again.mlir").write_text(printed)
        assert stan_opt.main([str(tmp_path / "again.mlir"), "--locations"]) == 0
        assert capsys.readouterr().out == printed
