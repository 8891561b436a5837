"""Units are found in the cache by digests of what they are compiled from: whether that is all that they are compiled
from, what a change costs, and where sites are told to stand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import ulam
from tests.oracles.program_generator import generate
from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.passes.data_switches import binding_program
from ulam.passes.unit_digests import NOT_COMPUTED, unit_digests
from ulam.runtime.compiler import CompileOptions, Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

OF_EACH = {"density": "gradient_propto", "constrain": "constrain", "unconstrain": "unconstrain", "setup": "setup"}

PROGRAM = """\
functions {
  real twice(real x) { return 2 * x; }
  real drawn_rng(real m) { return normal_rng(m, 0.1); }
}
data {
  int<lower=1> N;
  vector[N] y;
}
transformed data {
  vector[N] z = y - mean(y);
}
parameters {
  real a;
  real<lower=0> s;
}
transformed parameters {
  real b = twice(a);
}
model {
  z ~ normal(b, s);
  a ~ normal(0, 3);
  target += -s;
}
generated quantities {
  real c = drawn_rng(a);
  array[2] real d = {a, s};
  int n = 1;
  real e = d[n];
}
"""
DATA: dict[str, Any] = {"N": 4, "y": [0.5, -1, 2, 0.25]}


def used(text: str, **options: Any) -> dict[str, Any]:
    """What a model computes by each of its units."""
    model = ulam.StanModel(text, options.pop("data", DATA), **options)
    theta = np.array([0.3, -0.2])
    return {
        "gradient": model.log_density_gradient(theta),
        "value": (model.log_density(theta, propto=False),),
        "constrained": model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(4)),
        "unconstrained": model.param_unconstrain([1.0, 2.0]),
    }


def assert_same(one: dict[str, Any], other: dict[str, Any]) -> None:
    for name, value in one.items():
        for found, expected in zip(value, other[name], strict=True):
            np.testing.assert_array_equal(found, expected)


def without(module: ModuleOp, computes: str) -> ModuleOp:
    """The program with nothing in the blocks that a unit's digest says that it has nothing of."""
    if computes == "setup":
        return binding_program(module)
    program = next(op for op in module.body.block.ops if isinstance(op, stan.ProgramOp))
    for block in ops_of(program.body.block):
        if isinstance(block, stan.BlockOp) and block.kind.data in NOT_COMPUTED[computes]:
            for op in reversed(ops_of(block.body.block)):
                op.detach()
                op.erase(safe_erase=False)
    return module


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("seed", [*range(4), None])
def test_units_depend_on_nothing_else(level: int, seed: int | None) -> None:
    text = PROGRAM if seed is None else generate(seed)
    options = CompileOptions(opt_level=level)
    for computes, unit in OF_EACH.items():
        compiler = Compiler(text, options=options)
        module = compiler._as_lowered
        digests = unit_digests(module)
        rest = without(module, computes)
        assert unit_digests(rest)[computes] == digests[computes]
        assert compiler.of_piece(rest).llvm_text(unit) == Compiler(text, options=options).llvm_text(unit)


CHANGES = {
    "a comment": ("data {", "data { // here"),
    "lines that stand elsewhere": ("parameters {", "\n\nparameters {\n"),
    "a function that is not called": ("functions {", "functions {\n  real thrice(real x) { return 3 * x; }"),
}


@pytest.mark.parametrize("level", [0, 1, 3])
@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_no_unit_costs_none(compiled: list[str], level: int, change: str) -> None:
    before = used(PROGRAM, opt_level=level)
    assert sorted(compiled) == ["constrain", "gradient_propto", "setup", "unconstrain", "value_full"]
    compiled.clear()
    after = used(PROGRAM.replace(*CHANGES[change], 1), opt_level=level)
    assert compiled == []
    assert_same(after, before)


@pytest.mark.parametrize(
    ("written", "now", "units"),
    [
        ("real e = d[n];", "real e = d[n + 1];", ["constrain"]),
        ("normal_rng(m, 0.1)", "normal_rng(m, 0.2)", ["constrain"]),
        ("target += -s;", "target += -2 * s;", ["gradient_propto", "value_full"]),
        ("real b = twice(a);", "real b = 3 * a;", ["constrain", "gradient_propto", "value_full"]),
        ("return 2 * x;", "return x + x + 1;", ["constrain", "gradient_propto", "value_full"]),
        (
            "real<lower=0> s;",
            "real<lower=0, upper=9> s;",
            ["constrain", "gradient_propto", "setup", "unconstrain", "value_full"],
        ),
        ("y - mean(y);", "y - mean(y) + 1;", ["constrain", "gradient_propto", "setup", "unconstrain", "value_full"]),
    ],
)
def test_a_change_costs_the_units_that_it_is_part_of(
    compiled: list[str], written: str, now: str, units: list[str]
) -> None:
    used(PROGRAM)
    compiled.clear()
    changed = PROGRAM.replace(written, now)
    found = used(changed)
    assert sorted(compiled) == units
    assert_same(found, used(changed, cache=False))


def test_levels_and_options_have_units_of_their_own(compiled: list[str]) -> None:
    for options in ({}, {"opt_level": 2}, {"layouts": False}, {"opt_level": 4}):
        compiled.clear()
        used(PROGRAM, **options)
        first = compiled[:]
        compiled.clear()
        used("// moved\n" + PROGRAM, **options)
        assert "gradient_propto" in first
        assert compiled == []


def test_errors_are_told_where_the_statement_stands_now(compiled: list[str]) -> None:
    def message(text: str) -> str:
        model = ulam.StanModel(text, DATA)
        with pytest.raises(ulam.UlamError) as raised:
            model.param_constrain([0.3, -0.2], include_gq=True, rng=model.new_rng(4))
        return str(raised.value)

    wrong = PROGRAM.replace("int n = 1;", "int n = 3;")
    first = message(wrong)
    assert f"{wrong[: wrong.index('d[n]')].count(chr(10)) + 1}" in first
    compiled.clear()
    second = message("// one\n// two\n" + wrong.replace("d[n];", "d[ n ];"))
    assert "constrain" not in compiled
    assert "d[ n ]" in second
    assert second != first


def test_data_that_level_4_knows_are_part_of_the_digest(compiled: list[str]) -> None:
    other = {"N": 3, "y": [1, 2, 3.5]}
    first = used(PROGRAM, opt_level=4)
    assert used("// moved\n" + PROGRAM, opt_level=4, data=other)["gradient"][0] != first["gradient"][0]
    compiled.clear()
    assert_same(used("// moved\n\n" + PROGRAM, opt_level=4), first)
    assert compiled == []


def test_profiles_are_counted_by_the_numbers_that_they_have_now(compiled: list[str]) -> None:
    def counts(text: str) -> dict[str, tuple[int, int]]:
        model = ulam.StanModel(text, DATA)
        model.log_density_gradient([0.3, -0.2])
        model.param_constrain([0.3, -0.2], include_tp=True)
        assert model.profiler is not None
        return {row.name: (row.passes, row.gradient_passes) for row in model.profiler.rows()}

    both = PROGRAM.replace("return 2 * x;", 'profile("a") { return 2 * x; }')
    both = both.replace("target += -s;", 'profile("b") { target += -s; }')
    assert counts(both) == {"a": (1, 1), "b": (0, 1)}
    compiled.clear()
    assert counts("// moved\n" + both) == {"a": (1, 1), "b": (0, 1)}
    assert compiled == []
    assert counts(both.replace('profile("a") { return 2 * x; }', "return 2 * x;")) == {"b": (0, 1)}
    assert "gradient_propto" in compiled
