"""An error reads the same at every level, in blocks whose errors are not told by the program as it was written.

A program has all statements of the table, and the data say which one runs. In transformed data and in generated
quantities the compiled unit itself says what is wrong, so the wording must not depend on what the passes have made of
the statement. (`benchmarks/guard_pages.py` compares the texts of random programs.)
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

STATEMENTS = {
    "vector[K] u = v; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on the right",
    "vector[K] u; u = v; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on the right",
    "vector[K] u; u[1] = q; u = v; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on the right",
    "vector[K] u = w; u[1:K] = v; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on the right",
    "vector[K] u; for (i in 1:1) u = v; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on the right",
    "vector[K] u; if (q > 0) u = v; else u = w; o += sum(u);": "assign to u: sizes must match: 3 on the left, 4 on",
    "for (i in 1:N) { vector[i] u = v; o += sum(u); }": "assign to u: sizes must match: 1 on the left, 4 on the right",
    "matrix[N, 2] m; m[, 1] = v; m[, 2] = w; o += sum(m);": "assign to m: sizes must match: 4 on the left, 3 on the",
    "matrix[2, K] m; m[1] = w'; m[2] = v'; o += sum(m);": "assign to m: sizes must match: 3 on the left, 4 on the",
    "array[2] vector[K] m = {v, v}; o += sum(m[1]);": "assign to m: sizes must match: 3 on the left, 4 on the right",
    "o += sum({v, w}[1]);": "container literal: sizes must match, but they are 4 and 3",
    "o += sum(v + w);": "+: sizes must match, but they are 4 and 3",
    "o += sum(q * v .* exp(w));": ".*: sizes must match, but they are 4 and 3",
    "o += dot_product(v, w);": "dot_product: sizes must match, but they are 4 and 3",
    "o += sum(A * v);": "*: columns of the left factor are 3, but rows of the right factor are 4",
    "for (i in 1:N) o += w[i];": "index 4 out of range; expecting index to be between 1 and 3, in `w[i]`",
    "for (i in 1:N) w[i] = v[i]; o += sum(w);": "index 4 out of range; expecting index to be between 1 and 3, in `w[",
    "o += A[2, N];": "index 4 out of range; expecting index to be between 1 and 3, in `A[2, N]`",
    "vector[K - N] u; o += q;": "u: a size must not be negative, but K - N is -1",
    "o += normal_lpdf(v | w, 1);": "normal_lpdf: sizes must match, but they are 4 and 3",
    "o += normal_lpdf(v | 0, -q);": "normal_lpdf: sigma is -1.5, but must be positive!",
    "for (i in 1:N) o += normal_lpdf(v[i] | w[1], -v[i]);": "normal_lpdf: sigma",
    "o += normal_lcdf(v | w, 1);": "normal_lcdf: sizes must match, but they are 4 and 3",
    "o += bernoulli_logit_glm_lpmf({1, 0, 1, 1} | A, 0, v);": "bernoulli_logit_glm_lpmf: *: columns of the left factor",
    "o += sum(cholesky_decompose(-A' * A));": "cholesky_decompose: m is not positive definite",
    "simplex_of(w);": "hmm_marginal: the sum of rho is 6",
}

PARTS = """functions { void simplex_of(vector w) {
  real o = hmm_marginal(rep_matrix(0, 3, 1), identity_matrix(3), w);
} }
data { int which; int N; int K; vector[4] x; vector[3] y; matrix[4, 3] Z; }
"""
BODY = "real o = 0; real q = 1.5; vector[N] v = x; vector[K] w = y; matrix[N, K] A = Z;"
BRANCHES = "\n".join(f"if (which == {n}) {{ {statement} }}" for n, statement in enumerate(STATEMENTS))
BLOCKS = {
    "transformed data": f"{PARTS} transformed data {{ real r; {{ {BODY}\n{BRANCHES}\n r = o; }} }}",
    "generated quantities": (
        f"{PARTS} generated quantities {{ real r = uniform_rng(0, 1); {{ {BODY}\n{BRANCHES}\n r += o; }} }}"
    ),
}


@functools.cache
def outcomes(block: str, level: int) -> tuple[str, ...]:
    """The errors of all statements."""
    found: list[str] = []
    for which in range(len(STATEMENTS)):
        data = {"which": which, "N": 4, "K": 3, "x": [1, 2, 3, 4], "y": [1, 2, 3], "Z": np.arange(12.0).reshape(4, 3)}
        with pytest.raises(ulam.UlamError) as caught:
            model = ulam.StanModel(BLOCKS[block], data, opt_level=level)
            model.param_constrain(np.empty(0), include_gq=True, rng=model.new_rng(1))
        found.append(f"{type(caught.value).__name__}: {caught.value}")
    return tuple(found)


@pytest.mark.parametrize("block", BLOCKS)
def test_errors_are_the_same_at_every_level(block: str) -> None:
    for (statement, expected), found in zip(STATEMENTS.items(), outcomes(block, 0), strict=True):
        assert expected in found, statement
    for level in (1, 2, 3):
        assert outcomes(block, level) == outcomes(block, 0)


def test_sizes_of_a_value_are_its_own_behind_an_assignment() -> None:
    """A value that is assigned where the size is that of a loop's variable is used behind the loop, too."""
    program = """data { vector[4] x; } parameters { real p; } model {
      vector[4] v = x * p;
      for (i in 1:1) { vector[4 * i] u = v; target += sum(u) * sum(v); }
      target += sum(v);
    }"""
    for level in (0, 3):
        model = ulam.StanModel(program, {"x": [1, 2, 3, 4]}, opt_level=level)
        assert model.log_density(np.array([0.5])) == pytest.approx(30)
