"""Every pass alone and every level does what level 0 does: on the regression programs, examples and random programs.

Random programs have a fixed time here; `benchmarks/translation_validation.py` tries thousands.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structured_programs
from program_generator import DATA, generate
from program_reducer import reduce_program
from regression_programs import PROGRAMS, expectations
from translation_validation import CLOSE, EXACT, Subject, compare, same_text, single_passes
from validation_sweep import check, pipelines_of
from xdsl.context import Context
from xdsl.dialects.builtin import FloatAttr, ModuleOp, StringAttr, f64
from xdsl.passes import ModulePass

from ulam.dialects import stan
from ulam.frontend.check.program import check_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.passes import pipelines
from ulam.passes.pipelines import LEVELS, PASSES

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.stan"))
BUDGET = 10.0  # seconds, for random programs
PIPELINES: list[str | int] = [*single_passes(), *sorted(LEVELS)]


def differences(subject: Subject) -> list[str]:
    found: list[str] = []
    for pipeline in PIPELINES:
        found += [f"{pipeline}: {difference}" for difference in subject.compare(pipeline).differences]
    return found


@pytest.mark.parametrize(
    "path", [path for path in PROGRAMS if "error" not in expectations(path.read_text())], ids=lambda path: path.stem
)
def test_regression_program(path: Path) -> None:
    expected = expectations(path.read_text())
    points: Any = [json.loads(expected["point"])] if "point" in expected else 2
    found = differences(Subject(path.read_text(), expected.get("data"), points=points))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: Path) -> None:
    found = differences(Subject(path.read_text(), path.with_suffix(".json").read_text(), points=1))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("seed", [508, 1, 2])
def test_random_programs_are_well_typed(seed: int) -> None:
    """An index of a loop is used in the loop only; in that of 508 there are statements behind an inner one."""
    for text in (generate(seed), structured_programs.generate(seed)):
        source = Source(text, "model.stan")
        check_program(parse_program(source), source)


def test_random_programs() -> None:
    """As many as the time allows, each with three passes and a level by turns."""
    deadline = time.monotonic() + BUDGET
    seed = 0
    while time.monotonic() < deadline:
        chosen = [PIPELINES[(4 * seed + n) % len(PIPELINES)] for n in range(4)]
        outcome = check(seed, chosen, 0)
        assert not outcome.differences, f"seed {seed}: {outcome.differences}"
        seed += 1


@pytest.mark.slow
def test_many_random_programs() -> None:
    for seed in range(2000):
        outcome = check(seed, pipelines_of("", "1,2,3,4"), 0)
        assert not outcome.differences, f"seed {seed}: {outcome.differences}"


# ---------------------------------------------------------------- the validation itself


@dataclass(frozen=True)
class Mutation(ModulePass):
    """Stands for a pass with a mistake."""

    name = "mutation"

    what: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            value = inner.properties.get("value")
            if isinstance(inner, stan.ConstantOp) and isinstance(value, FloatAttr) and self.what == "number":
                inner.properties["value"] = FloatAttr(value.value.data * (1 + 1e-15), f64)
            elif isinstance(inner, stan.ConstantOp) and isinstance(value, StringAttr) and self.what == "text":
                inner.properties["value"] = StringAttr(value.data + "!")
            elif isinstance(inner, stan.PrintOp | stan.TargetAddOp) and self.what == inner.name:
                inner.detach()
                inner.erase()
            elif self.what == "draw" and isinstance(inner, stan.AssignOp) and _draws(inner):
                second = inner.operands[1].owner
                assert isinstance(second, stan.CallOp) and inner.parent is not None
                inner.parent.insert_op_before(second.clone(), inner)


def _draws(op: stan.AssignOp) -> bool:
    owner = op.operands[1].owner
    return isinstance(owner, stan.CallOp) and "_rng" in str(owner.callee)


@pytest.fixture
def mutation(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(pipelines, "pass_class", lambda _: Mutation)
    monkeypatch.setitem(PASSES, "mutation", ":Mutation")
    yield


MUTATED = """transformed data {
  print("loading");
}
parameters {
  real a;
}
transformed parameters {
  real b = a * 1.5;
}
model {
  print("value ", a);
  target += -square(b);
  a ~ normal(0, 2.5);
}
generated quantities {
  real c = normal_rng(0, 1);
  if (a > 0) reject("positive");
}
"""


@pytest.mark.usefixtures("mutation")
@pytest.mark.parametrize(
    ("what", "seen"),
    [
        ("number", "log density"),
        ("text", "load: printed 'loading!\\n', level 0 'loading\\n'"),
        ("stan.print", "printed ''"),
        ("stan.target_add", "log density"),
        ("draw", "more or fewer random numbers"),
    ],
)
def test_mistakes_are_seen(what: str, seen: str) -> None:
    pipeline = f'mutation{{what="{what}"}}'
    found = compare(MUTATED, None, pipeline, numerics=EXACT, points=4)
    assert any(seen in difference for difference in found), found
    if what == "number":
        assert not compare(MUTATED, None, pipeline, numerics=CLOSE, points=4)
    if what == "text":
        assert any("Rejection: positive!" in difference for difference in found), found


def test_a_branch_that_hangs_on_little_is_discarded() -> None:
    text = "parameters { real a; } model { if (a > 0.7) target += 5; target += -square(a); }"
    assert Subject(text, points=[[0.7]]).hangs(1)
    assert not Subject(text, points=[[0.7001]]).hangs(1)


def test_numbers_in_texts() -> None:
    assert same_text("b 0.1234567890123, 3", "b 0.1234567890124, 3", CLOSE)
    assert not same_text("b 0.1234567890123", "b 0.1234567890124", EXACT)
    assert not same_text("b 0.123456", "b 0.123457", CLOSE)
    assert same_text("1 - erf(9) is 0", "1 - erf(9) is 4.1e-37", CLOSE)  # erfc(9): as for values, against 1 at least
    assert not same_text("b 1", "c 1", CLOSE)
    assert same_text("nan, inf", "nan, inf", CLOSE) and not same_text("nan", "inf", CLOSE)


def test_programs_are_reduced() -> None:
    text = "model {\n  real a = 1;\n  if (a > 0) {\n    print(sin(cos(a)));\n  }\n  target += tanh(2);\n}\n"
    small = reduce_program(text, lambda smaller: "print(" in smaller and "model" in smaller)
    assert small.count("\n") == 3 and "cos" not in small and "print(" in small


def test_random_programs_are_deterministic_and_differ() -> None:
    assert generate(5) == generate(5)
    assert len({generate(seed) for seed in range(20)}) == 20


def test_random_programs_compile_and_seldom_fail() -> None:
    failing = 0
    for seed in range(12):
        events = Subject(generate(seed), DATA, seed=seed).expected(("value_full", "constrain"))
        assert not any("CompileError" in event.error for event in events)
        failing += any(event.error for event in events)
        values = [value for event in events for value in event.values.get("log density", ())]
        assert np.isfinite(values).all()
    assert failing < 6
