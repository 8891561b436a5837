"""Random densities of several outcomes a row, as people write them.

    program, data = outcome_program(seed), outcome_data(seed)

A row is a vector of an array, a column or a row of a matrix, made of elements, data or a parameter; its mean is common,
a group's, a product with a matrix, or filled in a loop; the matrix is a covariance, a factor of one or a precision, made
ahead of the loop, inside of it, in a function or for each group; rows may be left out, stand in a nest, or be a
statement over all of them. Others solve equations for each row, or are mixtures. Data have no, one or many rows, one to nine outcomes.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
from typing import Any

import numpy as np

_HEAD = """functions {
  matrix spread(matrix A, vector s) { return add_diag(tcrossprod(A), 0.5 + s); }
}
data {
  int N; int K; int J; array[N] vector[K] y; matrix[N, K] x; array[N] int<lower=1, upper=J> g; array[N] int f;
  array[N] int<lower=1, upper=K> k; cov_matrix[K] D;
}
parameters {
  matrix[K, K] A; vector<lower=0>[K] s; vector[K] m; matrix[K, N] w; matrix[N, K] v; array[J] vector[K] b;
  real<lower=0> t; vector[N] u;
}
model {
  to_vector(A) ~ std_normal(); s ~ exponential(1); m ~ std_normal(); to_vector(w) ~ std_normal();
  to_vector(v) ~ std_normal(); t ~ exponential(1); u ~ std_normal();
  for (j in 1:J) b[j] ~ std_normal();
  {ahead}
  {rows}
}
"""
_ROWS = ("y[n]", "col(w, n)", "w[ , n]", "v[n]'", "(y[n] - w[ , n])", "to_vector(x[n])", "r")
_MEANS = (
    "m", "b[g[n]]", "rep_vector(0, K)", "m * u[n]", "A * y[n]", "b[g[n]] + m .* x[n]'", "rep_vector(u[n], K)",
    "m + b[k[n] > J ? 1 : g[n]]", "c",
)  # fmt: skip
_MATRICES = (
    ("spread(A, s)", "covariance"),
    ("add_diag(A * A', 1 + s)", "covariance"),
    ("quad_form_diag(D, s + 0.1)", "covariance"),
    ("square(t + 0.1) * D", "covariance"),
    ("diag_matrix(s + t + 0.1)", "covariance"),
    ("cholesky_decompose(spread(A, s))", "factor"),
    ("diag_pre_multiply(s + 0.1, cholesky_decompose(D))", "factor"),
    ("D", "covariance"),
    ("tcrossprod(A)", "covariance"),  # where the factor of it may fail
)
_DENSITIES = {
    "covariance": (
        "{row} ~ multi_normal({mean}, {matrix});",
        "target += multi_normal_lpdf({row} | {mean}, {matrix});",
        "{row} ~ multi_student_t(3 + t, {mean}, {matrix});",
        "{row} ~ multi_normal_prec({mean}, {matrix});",
        "{row} ~ multi_normal_cholesky({mean}, cholesky_decompose({matrix}));",
        "target += -0.5 * quad_form_sym(inverse_spd({matrix}), {row} - {mean}) - 0.5 * log_determinant_spd({matrix});",
        "target += -0.5 * dot_self(mdivide_left_tri_low(cholesky_decompose({matrix}), {row} - {mean}));",
        "target += -0.5 * dot_product({row}, {matrix} \\ ({row} - {mean}));",
        "target += -0.5 * dot_product({row}, mdivide_left_spd({matrix}, {mean}));",
    ),
    "factor": (
        "{row} ~ multi_normal_cholesky({mean}, {matrix});",
        "target += normal_lpdf(mdivide_left_tri_low({matrix}, {row}) | {mean}, 1);",
        "target += -0.5 * dot_self({matrix} * {mean} - {row});",
        "target += std_normal_lpdf(mdivide_left_tri_low({matrix}, mdivide_left_tri_low({matrix}, {row} - {mean})));",
    ),
}
_LOOPS = (
    "for (n in 1:N) {{ {local} {density} }}",
    "for (n in 2:N) {{ {local} {density} u[n] ~ normal(u[n - 1], 1); }}",
    "for (n in 1:N) {{ if (f[n] == 1) {{ {local} {density} }} }}",
    "for (j in 1:2) for (n in 1:N) {{ {local} {density} }}",
    "for (n in 1:N) {{ {local} if (f[n] == 0) target += u[n]; {density} }}",
    "if (J > 1) for (n in 1:N) {{ {local} {density} }}",
)


_OF_COMPONENT = {
    "covariance": (
        "spread(A, s * j)",
        "quad_form_diag(D, s + j)",
        "add_diag(tcrossprod(A), j)",
        "D",
        "tcrossprod(A) * j",
    ),
    "factor": ("cholesky_decompose(spread(A, s * j))", "diag_pre_multiply(s + j, cholesky_decompose(D))"),
}
_TERMS = {
    "covariance": (
        "multi_normal_lpdf({row} | {mean}, {matrix})",
        "multi_student_t_lpdf({row} | 3 + t, {mean}, {matrix})",
        "-0.5 * dot_product({row}, {matrix} \\ ({row} - {mean}))",
        "multi_normal_cholesky_lpdf({row} | {mean}, cholesky_decompose({matrix}))",
    ),
    "factor": (
        "multi_normal_cholesky_lpdf({row} | {mean}, {matrix})",
        "-dot_self(mdivide_left_tri_low({matrix}, {row} - {mean})) - sum(log(diagonal({matrix})))",
    ),
}
_MIXTURES = (
    "for (n in 1:N) {{ vector[J] lp; for (j in 1:J) {{ {local} lp[j] = {term} - j; }} target += log_sum_exp(lp); }}",
    "for (n in 1:N) for (j in 1:J) {{ {local} target += u[n] * {term}; }}",
    "for (n in 1:N) for (j in 1:J) if (j != g[n]) {{ {local} target += {term}; }}",
    "for (n in 1:N) {{ real best = negative_infinity(); for (j in 1:J) {{ {local} best = fmax(best, {term}); }} target += best; }}",
    "for (j in 1:J) for (n in 2:N) {{ {local} target += {term} + u[n - 1]; }}",
)


def _mixture(choose: random.Random) -> tuple[str, str]:
    """What stands ahead of a nest over rows and components, and the nest."""
    kind = choose.choice(("covariance", "factor"))
    made = choose.choice(_OF_COMPONENT[kind])
    ahead, local, matrix = f"array[J] matrix[K, K] S; for (j in 1:J) S[j] = {made};", "", "S[j]"
    match choose.randrange(3):
        case 0:
            ahead, local, matrix = "", f"matrix[K, K] C = {made};", "C"
        case 1:
            ahead, matrix = "", made
    row, mean = choose.choice(_ROWS[:-1]), choose.choice(("b[j]", "m * j", "b[j] + m * u[n]", "A * y[n]"))
    term = choose.choice(_TERMS[kind]).format(row=row, mean=mean, matrix=matrix)
    return ahead, choose.choice(_MIXTURES).format(local=local, term=term)


def outcome_program(seed: int) -> str:
    """The program of a seed."""
    choose = random.Random(seed)
    if choose.random() < 0.4:
        ahead, rows = _mixture(choose)
        return _HEAD.replace("{ahead}", ahead).replace("{rows}", rows)
    made, kind = choose.choice(_MATRICES)
    row, mean = choose.choice(_ROWS), choose.choice(_MEANS)
    ahead, local, matrix = f"matrix[K, K] S = {made};", "", "S"
    match choose.randrange(4):
        case 0:
            ahead, local = "", ahead
        case 1:
            ahead, matrix = "", made
        case 2 if choose.random() < 0.4:
            ahead, matrix = f"array[J] matrix[K, K] S; for (j in 1:J) S[j] = {made};", "S[g[n]]"
    if row == "r":
        local += " vector[K] r; for (i in 1:K) r[i] = w[i, n] + x[n, i];"
    if mean == "c":
        local += " vector[K] c = m; c[k[n]] += u[n];"
    density = choose.choice(_DENSITIES[kind]).format(row=row, mean=mean, matrix=matrix)
    rows = choose.choice(_LOOPS).format(local=local, density=density)
    if choose.random() < 0.2 and matrix != "S[g[n]]":
        whole = {"covariance": "y ~ multi_normal(b[g], {});", "factor": "y ~ multi_normal_cholesky(b[g], {});"}[kind]
        rows += "\n  " + whole.format(made)
    return _HEAD.replace("{ahead}", ahead).replace("{rows}", rows)


def outcome_data(seed: int) -> dict[str, Any]:
    """Data for the program of a seed, or of any."""
    numbers = np.random.default_rng(seed)
    rows, outcomes, groups = (int(numbers.choice(sizes)) for sizes in ([0, 1, 2, 7, 60], [1, 2, 3, 4, 9], [1, 2, 5]))
    factor = np.tril(numbers.normal(size=(outcomes, outcomes))) + 2 * np.eye(outcomes)
    return {
        "N": rows,
        "K": outcomes,
        "J": groups,
        "y": numbers.normal(size=(rows, outcomes)).tolist(),
        "x": numbers.normal(size=(rows, outcomes)).tolist(),
        "g": numbers.integers(1, groups + 1, size=rows).tolist(),
        "f": (numbers.random(rows) < numbers.choice([0.0, 0.5, 1.0])).astype(int).tolist(),
        "k": numbers.integers(1, outcomes + 1, size=rows).tolist(),
        "D": (factor @ factor.T).tolist(),
    }
