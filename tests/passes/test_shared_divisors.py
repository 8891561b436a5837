"""`shared-divisors`: loops do not divide by what they do not change; values and slopes are those of level 1."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int N; vector[N] x; array[N] int<lower=1> g; } parameters { real a; vector[2] t; } "
TERMS = {
    "a parameter": "target += sin((x[n] - t[1]) / t[2]);",
    "an exponential": "target += erf(x[n] / exp(a));",
    "a parameter of the row's, and a constant": "target += erf(t[g[n]] * cos(t[2] * x[n]) / 7);",
    "in a branch": "if (x[n] > 0) target += erf(t[1] * x[n] / (1 + square(a)));",
    "inner loops": "for (k in 1:2) target += sin(t[k] * x[n] / exp(t[1] * x[n]));",
}


def in_rows(term: str) -> str:
    return HEAD + f"model {{ for (n in 1:N) {{ {term} }} }}"


def rows_of(program: str) -> str:
    text = Compiler(program, "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    evaluate = text.partition("@evaluate")[2].partition("\n}")[0]
    return evaluate.partition("for.body:")[2].rpartition("\nfor.end")[0]


@pytest.mark.parametrize("name", ["a parameter", "an exponential", "a parameter of the row's, and a constant"])
def test_rows_do_not_divide(name: str) -> None:
    rows = rows_of(in_rows(TERMS[name]))
    assert "fmul" in rows
    assert "fdiv" not in rows


def test_what_is_rounded_is_divided() -> None:
    """Else three thirds may be less than 1."""
    program = in_rows("target += floor(t[1] * x[n] / t[2]) * a;")
    assert "fdiv" in rows_of(program)
    model = ulam.StanModel(program, {"N": 200, "x": np.arange(1.0, 201.0), "g": [1] * 200}, opt_level=3)
    for count in (49.0, 98.0, 103.0):
        assert model.log_density([1.0, 1.0, count]) == np.floor(np.arange(1.0, 201.0) / count).sum()


def test_values_and_slopes_are_those_of_level_1() -> None:
    """With divisors of ordinary size, of the largest and the smallest numbers that have an inverse, and below those."""
    program = in_rows(" ".join(TERMS.values()))
    data = {"N": 5, "x": [0.5, 0.0, -3.0, 1e-300, 2.0], "g": [1, 2, 2, 1, 1]}
    plain, shared = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
    points = [[0.3, -0.7, 1.2], [-2.0, 0.0, 3.0], [40.0, 1e-3, -2.0], [600.0, 0.4, 1e200], [-300.0, 0.4, 1e9]]
    for point in [*points, [0.3, -0.7, np.nan], [np.nan, 0.1, 0.2], [np.inf, 0.1, 0.2]]:
        value, gradient = plain.log_density_gradient(point)
        found, slopes = shared.log_density_gradient(point)
        np.testing.assert_allclose(found, value, rtol=1e-12)
        np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-13)


def test_nothing_divided_by_the_smallest_numbers_is_nothing() -> None:
    """Their inverse is infinite, and 0 times that is NaN; 0 / 0 is NaN as ever."""
    program = HEAD + "model { for (n in 1:N) target += tanh((x[n] - t[1]) / t[2]); }"
    data = {"N": 3, "x": [1.0, 1.0, 1.0], "g": [1, 1, 1]}
    for level in (1, 3):
        model = ulam.StanModel(program, data, opt_level=level)
        for divisor in (5e-324, -5e-324, 1e-310, -1e-310):
            assert model.log_density([0.0, 1.0, divisor]) == 0
            assert model.log_density([0.0, 0.0, divisor]) == 3 * np.sign(divisor)
        assert np.isnan(model.log_density([0.0, 1.0, 0.0]))
        assert model.log_density([0.0, 0.0, 0.0]) == 3
