"""`elements-at-reads`: matrices that are computed as a whole and read row by row."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = """
data { int J; int T; matrix[J, T] s; matrix[J, T] v; array[J, T] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> a; real b; }
"""
PROBABILITIES = HEAD + """
transformed parameters { matrix[J, T] p; for (j in 1:J) for (t in 1:T) p[j, t] = a ^ s[j, t] * inv_logit(b * v[j, t]); }
model { for (j in 1:J) for (t in 1:T) y[j, t] ~ bernoulli(p[j, t]); }
"""
TWICE = HEAD + """
model {
  matrix[J, T] p = erf(a * s + b * v);
  for (j in 1:J) for (t in 1:T) target += p[j, t] * y[j, t] + p[j, 1];
}
"""


def test_rows_of_the_nest_are_looked_for() -> None:
    text = Compiler(PROBABILITIES, "m.stan", CompileOptions(3)).llvm_text("gradient_propto")
    assert "weigh_rows" in text


@pytest.mark.parametrize("program", [PROBABILITIES, TWICE])
def test_values_and_slopes_are_those_of_level_0(program: str) -> None:
    plain, moved = ulam.StanProgram(program, opt_level=0), ulam.StanProgram(program, opt_level=3)
    rng = np.random.default_rng(2)
    for rows, columns in ((30, 7), (1, 1), (0, 3), (4, 1)):
        s, v = rng.integers(0, 4, (2, rows, columns)).astype(float)
        data = {"J": rows, "T": columns, "s": s, "v": v, "y": rng.integers(0, 2, (rows, columns))}
        models = plain(data), moved(data)
        for point in ([0.3, -0.7], [-30.0, 2.0]):
            (value, gradient), (found, slopes) = (model.log_density_gradient(point) for model in models)
            np.testing.assert_allclose(found, value, rtol=1e-12)
            np.testing.assert_allclose(slopes, gradient, rtol=1e-11, atol=1e-12)
