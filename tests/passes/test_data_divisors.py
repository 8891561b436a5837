"""`data-divisors`: no division by data is left in loops over rows; values and slopes are those of level 1."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int N; vector[N] x; vector[N] s; array[N] int<lower=1> g; real c; } parameters { real b; vector[3] t; } "
TERMS = {
    "a constant": "target += erf(b * x[n] / 100);",
    "data of the row": "target += erf(t[g[n]] * x[n] / s[n]);",
    "a number of the data": "target += erf(-x[n] * b / c);",
    "a quotient of data": "target += erf(b * (x[n] / c));",
}


def in_rows(term: str) -> str:
    return HEAD + f"model {{ for (n in 1:N) {{ {term} }} }}"


@pytest.mark.parametrize("name", TERMS)
def test_rows_do_not_divide(name: str) -> None:
    text = Compiler(in_rows(TERMS[name]), "model.stan", CompileOptions(3)).llvm_text("gradient_propto")
    evaluate = text.partition("@evaluate")[2].partition("\n}")[0]
    rows = evaluate.partition("for.body:")[2].partition("\nfor.end:")[0]
    assert "fmul" in rows
    assert "fdiv" not in rows


def test_values_and_slopes_are_those_of_level_1() -> None:
    """With rows of nothing, of the largest and the smallest numbers, and of none."""
    program = in_rows(" ".join(TERMS.values()))
    rows = [(0.5, 2.0, 1), (0.0, 3.0, 2), (1e300, 1e290, 3), (-1e-300, 1e-299, 1), (2.0, -4.0, 2)]
    extremes = [(1.0, 0.0, 1), (0.0, 0.0, 2), (3.0, np.inf, 3), (np.nan, 1.0, 1)]
    for extra in [[], *([row] for row in extremes)]:
        x, s, g = zip(*rows, *extra, strict=True)
        data = {"N": len(x), "x": np.array(x), "s": np.array(s), "g": list(g), "c": 7.0}
        plain, divided = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
        for point in ([0.3, -0.7, 1e-3, 2.0], [0.0, 0.0, 0.0, 0.0]):
            value, gradient = plain.log_density_gradient(point)
            found, slopes = divided.log_density_gradient(point)
            np.testing.assert_allclose(found, value, rtol=1e-12)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-11)
