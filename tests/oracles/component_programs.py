"""Random programs of outcomes that are independent given their means, as people write them.

    program, data = component_program(seed), component_data(seed)

Means are in columns or rows of a matrix, in vectors of an array, or made where they are read: of coefficients and data,
of a product of matrices, with coefficients of groups. Outcomes are taken row by row, one after the other, element by
element, or all at once, with one scale, one of each outcome, or such as may not be positive. Data have no, one or many
rows, one to six outcomes.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
from typing import Any

import numpy as np

_HEAD = """data {
  int N; int K; int D; int J; matrix[N, D] X; array[N] vector[D] z; vector[N] x; array[N] int<lower=1, upper=J> g;
  matrix[N, K] Y; matrix[K, N] T; array[N] vector[K] y; array[K] vector[N] c;
}
parameters {
  vector[K] a; matrix[K, D] B; matrix[D, K] C; matrix[J, D] G; real b; vector<lower=0>[K] s; real<lower=0> t;
}
model {
  a ~ std_normal(); to_vector(B) ~ std_normal(); to_vector(C) ~ std_normal(); to_vector(G) ~ std_normal();
  s ~ exponential(1); t ~ exponential(1);
  {means}
  {outcomes}
}
"""
_BY_COLUMNS = (
    "matrix[K, N] m; for (n in 1:N) m[ , n] = {row};",
    "matrix[K, N] m; for (n in 1:N) for (k in 1:K) m[k, n] = {element};",
    "matrix[K, N] m; for (k in 1:K) for (n in 1:N) m[k, n] = {element};",
    "matrix[K, N] m = rep_matrix(a, N); for (n in 1:N) m[ , n] += {row};",
    "matrix[K, N] m = C' * X';",
)
_BY_ROWS = (
    "matrix[N, K] m; for (n in 1:N) m[n] = ({row})';",
    "matrix[N, K] m = X * C;",
    "matrix[N, K] m = X * B' + rep_matrix(a', N);",
    "matrix[N, K] m = x * a';",
    "matrix[N, K] m; for (k in 1:K) m[ , k] = a[k] * x + X * C[ , k];",
    "matrix[N, K] m; for (n in 1:N) for (k in 1:K) m[n, k] = {element};",
)
_ROW = ("a * x[n]", "a + B * z[n]", "a + a * x[n] + b", "B * z[n] - x[n]", "rep_vector(X[n] * G[g[n]]', K)", "exp(a) * x[n]")
_ELEMENT = ("a[k] * x[n]", "a[k] + B[k] * z[n]", "b * x[n] - a[k]", "X[n] * G[g[n]]' + a[k]", "a[k] * a[k] + x[n]")
_SCALE = ("t", "s", "exp(a) + 0.1", "s - 0.3", "s * t")
_OF_COLUMNS = (
    "for (n in 1:N) y[n] ~ normal(m[ , n], {scale});",
    "for (k in 1:K) T[k] ~ normal(m[k], {one});",
    "for (k in 1:K) for (n in 1:N) T[k, n] ~ normal(m[k, n], {one});",
    "to_vector(T) ~ normal(to_vector(m), t);",
    "for (k in 1:K) target += normal_lpdf(c[k] | m[k], {one}) - a[k];",
)
_OF_ROWS = (
    "for (n in 1:N) y[n] ~ normal(m[n], {scale});",
    "for (k in 1:K) c[k] ~ normal(m[ , k], {one});",
    "for (n in 1:N) for (k in 1:K) target += normal_lpdf(Y[n, k] | m[n, k], {one});",
    "to_vector(Y) ~ normal(to_vector(m), t);",
    "for (k in 2:K) Y[ , k] ~ normal(m[ , k] + b, {one});",
)
_AT_ONCE = (
    "for (k in 1:K) c[k] ~ normal(a[k] * x + X * B[k]', {one});",
    "for (n in 1:N) y[n] ~ normal({row}, {scale});",
    "for (k in 1:K) Y[ , k] ~ normal(rows_dot_product(X, G[g]) + a[k], {one});",
    "x ~ normal((X .* G[g]) * rep_vector(1, D), t);",
    "vector[N] m; for (n in 1:N) m[n] = X[n] * C[ , 1] + X[n] * G[g[n]]'; x ~ normal(m, t); x ~ logistic(m, t);",
    "for (k in 1:K) for (n in k:N) T[k, n] ~ normal({element}, {one});",
    "for (k in 1:K) if (k != 2) c[k] ~ normal(X * C[ , k], {one});",
)


def component_program(seed: int) -> str:
    """The program of a seed."""
    choose = random.Random(seed)
    means, outcomes = choose.choice(((_BY_COLUMNS, _OF_COLUMNS), (_BY_ROWS, _OF_ROWS), (("",), _AT_ONCE)))
    scale = choose.choice(_SCALE)
    one = scale.replace("exp(a)", "exp(a[k])").replace("s", "s[k]") if scale != "t" else scale
    values = {"row": choose.choice(_ROW), "element": choose.choice(_ELEMENT), "scale": scale, "one": one}
    made = [choose.choice(table).format(**values) for table in (means, outcomes)]
    return _HEAD.replace("{means}", made[0]).replace("{outcomes}", made[1])


def component_data(seed: int) -> dict[str, Any]:
    """Data for the program of a seed, or of any."""
    numbers = np.random.default_rng(seed)
    rows, outcomes, columns, groups = (
        int(numbers.choice(sizes)) for sizes in ([0, 1, 9, 70, 200], [1, 2, 3, 6], [1, 2, 4], [1, 3])
    )
    y = numbers.normal(size=(rows, outcomes)) + numbers.choice([0.0, 100.0])
    return {
        "N": rows, "K": outcomes, "D": columns, "J": groups,
        "X": (design := numbers.normal(size=(rows, columns))).tolist(), "z": design.tolist(),
        "x": numbers.normal(size=rows).tolist(), "g": numbers.integers(1, groups + 1, size=rows).tolist(),
        "Y": y.tolist(), "y": y.tolist(), "T": y.T.tolist(), "c": y.T.tolist(),
    }  # fmt: skip
