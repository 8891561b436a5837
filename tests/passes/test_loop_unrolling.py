"""Static and one-step loop unrolling: the unrolled program does the same; nests stay within the budget."""

from __future__ import annotations

import pytest
from random_programs import DATA, random_program
from translation_validation import EXACT, Subject, compare
from work import lines_executed
from xdsl.dialects.builtin import ModuleOp

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.passes.optimize import one_step_loop_unrolling, static_loop_unrolling
from ulam.passes.pipelines import PipelineError, parse_pipeline
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

PIPELINES = (
    "static-loop-unrolling",
    "one-step-loop-unrolling",
    "one-step-loop-unrolling{when=useful},static-loop-unrolling{when=useful}",
)
QUICK_UNITS = ("value_propto", "gradient_propto")

LOOPS = """
functions {
  int first(array[] int x, int least) {
    for (i in 1 : 4) {
      if (x[i] > least) return i;
      print("not ", i);
    }
    int k = 5;
    while (k < 40) {
      k += k;
      if (k > 30) return k;
    }
    return 0;
  }
}
data {
  int lo;
  int hi;
  array[4] int x;
}
transformed data {
  int k = lo;
  int m = hi;
  real s = 0;
  for (i in k : m) {
    k = 100;
    m = -5;
    s += i == lo ? 0.5 : i;
    print("iteration ", i, " ", k);
  }
  for (i in poisson_rng(3) : poisson_rng(30)) s += 0.01 * i;
  for (i in 1 : 2) for (j in i : 3) { real r = s * i + j; print(r); if (j == i) print("diagonal ", i); }
  while (k > 90) { k -= 4; if (k == 92) print("k ", k); }
  for (i in 7 : 6) print("never");
  for (i in 2147483646 : 2147483647) print("large ", i);
}
parameters {
  vector[4] th;
}
transformed parameters {
  vector[4] u;
  for (i in 1 : 4) {
    if (i == 1) u[i] = th[1];
    else u[i] = th[i] + 0.5 * u[i - 1];
  }
}
model {
  for (i in lo : hi) {
    target += cos(th[1 + abs(i) % 4]) * first(x, i);
    if (i > lo) profile("rest") { target += -square(th[2]) * i; }
  }
  for (i in 1 : 4) target += th[i] ^ i;
  th ~ normal(0, 1);
  for (i in 1 : 3) { if (th[i] > 1.2) reject("too large: ", i); }
}
generated quantities {
  array[3] real draws;
  for (i in 1 : 3) { if (th[i] > 5) break; draws[i] = normal_rng(th[i], 1); }
  for (i in 1 : 2) draws[i] += uniform_rng(0, 1);
}
"""


def module_of(text: str) -> ModuleOp:
    return Compiler(text, "model.stan", CompileOptions(0)).module


def size_of(module: ModuleOp) -> int:
    return sum(1 for _ in ops_within(module))


@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(("lo", "hi"), [(1, 3), (4, 3), (-2, 2)])
def test_values_output_and_errors_stay(pipeline: str, lo: int, hi: int) -> None:
    data = {"lo": lo, "hi": hi, "x": [0, 1, -1, 3]}
    assert compare(LOOPS, data, pipeline, numerics=EXACT) == []


@pytest.mark.parametrize("seed", range(4))
def test_random_programs_stay(seed: int) -> None:
    subject = Subject(random_program(seed), DATA, points=1)
    for pipeline in PIPELINES:
        assert subject.compare(pipeline, EXACT, units=QUICK_UNITS).differences == []


def test_upper_bound_that_is_the_largest_int() -> None:
    """Peeling a loop whose only iteration is that of the largest int: `a + 1` is not computed."""
    text = """
    data { int a; int b; }
    transformed data { for (i in a : b) { print(i); } for (i in 2147483647 : b) { print(i); } }
    """
    for a in (2147483646, 2147483647):
        assert compare(text, {"a": a, "b": 2147483647}, "one-step-loop-unrolling", numerics=EXACT) == []


def test_profile_blocks_are_entered_as_often() -> None:
    text = """
    parameters { real a; }
    model { for (i in 1 : 3) { profile("inner") { target += -a * a * i; } } }
    """
    module = module_of(text)
    static_loop_unrolling.run_on(module)
    profiles = [op for op in ops_within(module) if isinstance(op, stan.ProfileOp)]
    assert len(profiles) == 3
    assert all(isinstance(op.parent_op(), stan.BlockOp) for op in profiles)


# ---------------------------------------------------------------- growth


def nest(depth: int, trips: str = "9") -> str:
    loops = "".join(f"for (i{d} in 1 : {trips}) {{ s += i{d}; " for d in range(depth))
    return f"data {{ int n; }} transformed data {{ real s = 0; {loops} print(s); {'}' * depth} }}"


@pytest.mark.parametrize("trips", ["9", "n"])
@pytest.mark.parametrize("run", [static_loop_unrolling.run_on, one_step_loop_unrolling.run_on])
def test_nest_of_8_loops_stays_below_the_budget(run: object, trips: str) -> None:
    assert callable(run)
    module = module_of(nest(8, trips))
    before, budget = size_of(module), 2_000
    with collect_remarks() as remarks:
        work = lines_executed(lambda: run(module, budget=budget))
    module.verify()
    assert size_of(module) <= before + budget
    assert work < 1_000_000
    if trips == "n" or run is static_loop_unrolling.run_on:
        assert len(remarks) == 8
    if trips == "9" or run is one_step_loop_unrolling.run_on:
        assert any(r.done for r in remarks)
        assert any("budget" in r.message for r in remarks if not r.done)


@pytest.mark.parametrize("run", [static_loop_unrolling.run_on, one_step_loop_unrolling.run_on])
def test_growth_is_what_the_budget_counts(run: object) -> None:
    """A loop is unrolled with a budget of what it grows by, up to the literals of its bounds; not with less."""
    assert callable(run)
    text = "transformed data { real s = 0; for (i in 1 : 4) { real t = i; s += t * i; print(s, i); } }"
    module = module_of(text)
    before = size_of(module)
    run(module)
    growth = size_of(module) - before
    exact, less = module_of(text), module_of(text)
    run(exact, budget=growth + 8)
    assert size_of(exact) == before + growth
    run(less, budget=growth - 8)
    assert size_of(less) == before


def test_peeled_loops_are_not_peeled_again() -> None:
    module = module_of(nest(2, "n"))
    one_step_loop_unrolling.run_on(module)
    size = size_of(module)
    one_step_loop_unrolling.run_on(module)
    assert size_of(module) == size


def test_work_is_linear() -> None:
    def work(count: int) -> int:
        text = "data { int n; } transformed data { real s = 0; " + "for (i in 1 : n) s += i;" * count + "}"
        module = module_of(text)
        return lines_executed(lambda: one_step_loop_unrolling.run_on(module, budget=10**6))

    work(1)
    assert work(100) < 2.05 * work(50)


def test_options_are_checked() -> None:
    for name in ("static-loop-unrolling", "one-step-loop-unrolling"):
        with pytest.raises(PipelineError, match="always or useful"):
            parse_pipeline(name + "{when=sometimes}")
