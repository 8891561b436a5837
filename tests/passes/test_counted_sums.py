"""`counted-sums`: running sums of what does not change are read from tables; values and slopes are those of level 1."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.counted_sums import CountedSums
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = (
    "data { int J; int T; array[J, T] int<lower=0, upper=2> y; matrix[J, T] x; } "
    "parameters { real a; real b; real c; } "
)
COUNTED = {
    "a choice": "s += y[j, t] == 1 ? a : b;",
    "a branch": "if (y[j, t] == 1) s += log(square(a)); else if (y[j, t] == 2) s = s - b;",
    "products with data": "s += y[j, t] * a + (1 - y[j, t]) * b;",
    "a weight in a branch": "real w = x[j, t]; if (y[j, t] > 0) s += w * a;",
    "in each iteration": "s += a; if (y[j, t] > 1) s -= b;",
}
KEPT = {
    "what changes": "s += y[j, t] == 1 ? a * s : b;",
    "not data": "s += a * b > c ? a * x[j, t] * s : b;",
    "a factor": "s *= y[j, t] == 1 ? a : b;",
}


def running(step: str, start: str = "0", behind: str = "") -> str:
    """Rows that read the sum of the steps before, and what is done with the last one."""
    return HEAD + (
        f"model {{ for (j in 1:J) {{ real s = {start}; for (t in 1:T) {{ target += -log1p_exp(c * s); {step} }} "
        f"{behind} }} }}"
    )


def is_counted(program: str) -> bool:
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    return any(remark.pass_name == CountedSums.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", COUNTED)
def test_values_and_slopes_are_those_of_level_1(name: str) -> None:
    """Also of loops without an iteration, and of what is read behind the loop."""
    program = running(COUNTED[name], "c", "target += -square(s);")
    assert is_counted(program)
    generator = np.random.default_rng(3)
    for groups, steps in ((3, 7), (1, 1), (2, 0), (0, 3)):
        shape = (groups, steps)
        data = {"J": groups, "T": steps, "y": generator.integers(0, 3, shape), "x": generator.normal(size=shape)}
        plain, counted = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        for point in ([0.3, -0.7, 0.4], [0.0, 1.0, -2.0], [1e-3, 5.0, 1e-200]):
            value, gradient = plain.log_density_gradient(point)
            found, slopes = counted.log_density_gradient(point)
            np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-14)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", ["a choice", "products with data", "a weight in a branch"])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan])
def test_what_was_not_added_counts_for_nothing(name: str, number: float) -> None:
    """Infinite numbers give what they give one by one: with none of them, with one sign, with 0 among the data."""
    program = running(COUNTED[name]).replace("target += -log1p_exp(c * s)", "target += t == T ? inv_logit(s) : 0")
    rows = {
        "y": [[0, 0, 2], [1, 1, 1], [2, 2, 1], [0, 1, 0]],
        "x": [[1.0, 2.0, 0.0], [1.0, 2.0, 3.0], [-1.0, 0.0, 1.0], [1.0, np.nan, 1.0]],
    }
    for k in range(4):
        data = {"J": 1, "T": 3, "y": [rows["y"][k]], "x": [rows["x"][k]]}
        plain, counted = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        for point in ([number, 0.5, 1.0], [0.5, number, 1.0], [number, -number, 1.0]):
            np.testing.assert_equal(counted.log_density(point), plain.log_density(point))


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_such_sum_stays(name: str) -> None:
    assert not is_counted(running(KEPT[name]))


def test_what_is_only_summed_stays() -> None:
    assert not is_counted(HEAD + "model { for (j in 1:J) { real s = 0; for (t in 1:T) s += y[j, t] == 1 ? a : b; "
                          "target += -square(s); } }")  # fmt: skip
