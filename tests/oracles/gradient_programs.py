"""Small Stan programs, each named for the phenomenon whose gradient it tests, with data.

`PROGRAMS[name]` is (source, data). The parameters are always unconstrained points drawn by `point`.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

from typing import Any

import numpy as np

PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {}

DATA: dict[str, Any] = {
    "N": 4, "K": 3, "Z": 0,
    "x": [0.5, -1.2, 0.3, 2.0], "r": [1.5, -0.25, 0.75, 0.1], "s": 0.7,
    "idx": [3, 1, 4, 1, 2], "jdx": [2, 3, 2], "y": [1, 0, 2, 5], "b": [1, 0, 0, 1],
    "A": [[1.0, 0.2, -0.4], [0.5, -0.6, 0.3], [2.0, 0.1, 0.9], [-1.0, 1.1, 0.7]],
    "S": [[2.0, 0.3, 0.1], [0.3, 1.5, -0.2], [0.1, -0.2, 1.0]],
}  # fmt: skip
_DECLARATIONS = """data { int N; int K; int Z; vector[N] x; row_vector[N] r; real s; array[5] int idx; array[K] int jdx; array[N] int y;
  array[N] int b; matrix[N, K] A; matrix[K, K] S; }
"""


def case(name: str, source: str) -> None:
    """Adds a program; without a data block it gets the common data."""
    assert name not in PROGRAMS, name
    if "data {" in source.split("parameters")[0].replace("transformed data {", ""):
        PROGRAMS[name] = (source, DATA)
    else:
        PROGRAMS[name] = (_with_data(source), DATA)


def _with_data(source: str) -> str:
    if "functions {" in source:
        end = source.index("\n}\n") + 3
        return source[:end] + _DECLARATIONS + source[end:].lstrip()
    return _DECLARATIONS + source.lstrip()


def model(name: str, parameters: str, statements: str) -> None:
    """A program of parameters and a model."""
    case(name, f"parameters {{ {parameters} }}\nmodel {{\n{statements.strip()}\n}}\n")


def with_functions(name: str, functions: str, parameters: str, statements: str) -> None:
    """A program of functions, parameters and a model."""
    case(
        name,
        f"functions {{\n{functions.strip()}\n}}\nparameters {{ {parameters} }}\nmodel {{\n{statements.strip()}\n}}\n",
    )


def point(name: str, size: int) -> np.ndarray:
    """A point of the unconstrained space, always the same for a program."""
    seed = sum(ord(c) * (k + 1) for k, c in enumerate(name))
    return np.random.default_rng(seed).uniform(-1.0, 1.0, size)


# ---------------------------------------------------------------- operators

model(
    "scalar-arithmetic",
    "real a; real c;",
    "target += a + c - a * c / (2 + c) - -a + +c + (a * 3) / 2 + 2 ^ a + exp(c) ^ 1.5;",
)
model(
    "scalar-powers",
    "real a; real<lower=0> c;",
    "target += a ^ 2 + a ^ 3 + c ^ a + c ^ 0.5 + pow(c, -2) + a ^ 1 + square(a) + sqrt(c) + cbrt(c) + inv(c) + c ^ -1 + 2 ^ c;",
)
model(
    "scalar-functions",
    "real a; real<lower=0, upper=1> c;",
    """
target += sin(a) + cos(a) * tan(c) + asin(c) - acos(c) + atan(a) + atan2(a, c) + sinh(a) + cosh(a) + tanh(a) + asinh(a) + atanh(c);
target += log(c) + log1p(c) + log1m(c) + exp(a) + expm1(a) + inv_logit(a) + logit(c) + log_inv_logit(a) + log1m_inv_logit(a) + log1p_exp(a);
target += Phi(a) + Phi_approx(a) + erf(a) + erfc(a) + lgamma(c) + tgamma(c) + digamma(c) + inv_sqrt(c) + inv_square(c) + exp2(a) + log2(c) + log10(c);
target += fabs_(a) * 0 + abs(a) + fmin(a, c) + fmax(a, 0.1) + fdim(c, a) + hypot(a, c) + fma(a, c, a) + lbeta(c, 2) + lmultiply(2, c) + log_sum_exp(a, c) + log_diff_exp(c, c - 1);
target += step(a) + floor(c) + round(c) + trunc(a) + ceil(a) + inv_cloglog(a) + cloglog_(c) * 0;
""".replace("fabs_(a) * 0 + ", "").replace(" + cloglog_(c) * 0", ""),
)
model(
    "vector-elementwise",
    "vector[N] v; vector[N] w; real a;",
    """
vector[N] u = v + w .* x - v ./ (2 + exp(w)) + a * v - w / 3 + v * a + (a - v) + (w + 1) - -v;
target += sum(u) + sum(exp(v) .* w) + dot_product(u, v) + sum(v .^ 2) + sum(square(w) ^ 2);
""",
)
model(
    "row-vector-elementwise",
    "row_vector[N] v; row_vector[N] w; real a;",
    """
row_vector[N] u = v + w .* r - v ./ (2 + exp(w)) + a * v - w / 3 - a;
target += sum(u) + u * v' + (v * a) * x + dot_product(u, w);
""",
)
model(
    "matrix-elementwise",
    "matrix[N, K] M; matrix[N, K] L; real a;",
    """
matrix[N, K] B = M + L .* A - M ./ (2 + exp(L)) + a * M - L / 3 + (1 - M) + M * a;
target += sum(B) + sum(B .* M) + sum(square(B'));
""",
)
model(
    "array-of-real-functions",
    "array[N] real v; array[N, K] real w;",
    """
target += sum(exp(v)); array[N, K] real u = inv_logit(w);
for (i in 1:N) for (j in 1:K) target += u[i, j] * v[i];
""",
)
model(
    "products",
    "matrix[N, K] M; matrix[K, N] L; vector[K] v; row_vector[N] w;",
    """
vector[N] p = M * v; row_vector[K] q = w * M; matrix[N, N] B = M * L; matrix[N, N] C = p * w;
target += sum(square(p)) + q * v + sum(B .* C) + w * p + trace_((M * L) * p) * 0;
""".replace(" + trace_((M * L) * p) * 0", " + sum((M * L) * p)"),
)
model(
    "products-with-data",
    "vector[K] v; row_vector[N] w; matrix[K, K] M;",
    """
target += sum(square(A * v)) + sum(square(w * A)) + w * A * v + sum(square(A * M)) + sum(square(M * S)) + r * (A * v) + v' * S * v;
""",
)
model(
    "product-transposed",
    "matrix[N, K] M; vector[N] v; row_vector[K] w;",
    """
target += sum(M' * v .* w') + sum(square(M' * M)) + sum(square(M * M')) + (v' * M) * w' + sum(square(v * w)) + sum((M .* A)' * v);
""",
)
model(
    "product-of-lazy",
    "matrix[K, K] M; vector[K] v;",
    "target += sum(square((M + S) * (v + 1))) + sum(square(exp(M) * exp(M'))) + sum(square((v .* v)' * (M - 1)));",
)
model(
    "outer-product-chain",
    "vector[K] v; row_vector[K] w;",
    "matrix[K, K] B = (v + 1) * (w - 1); target += sum(B) + sum(square(B * v)) + w * B * v;",
)
model(
    "quadratic-forms",
    "matrix[K, K] M; vector[K] v; matrix[K, 2] B;",
    "target += quad_form(M, v) + sum(square(quad_form(M, B))) + trace_quad_form(M, B) + sum(square(quad_form_sym(M + M', B)));",
)
model(
    "crossproducts",
    "matrix[N, K] M; vector[K] v;",
    "target += sum(square(crossprod(M))) + sum(square(tcrossprod(M))) + sum(square(diag_pre_multiply(v, M'))) + sum(square(diag_post_multiply(M, v))) + sum(quad_form_diag(S, v));",
)
model(
    "reductions",
    "vector[N] v; matrix[N, K] M;",
    """
target += sum(v) + mean(v) + variance(v) + sd(v) + prod(v) + log_sum_exp(v) + max(v) + min(v) + dot_self(v) + norm2(v) + norm1(v) + distance(v, x) + squared_distance(v, x);
target += sum(M) + mean(M) + variance(M) + sd(M) + prod(M) + log_sum_exp(M) + max(M) + min(M);
""",
)
model(
    "cumulative",
    "vector[N] v; array[N] real a;",
    "target += sum(square(cumulative_sum(v))) + sum(square(cumulative_sum(a))) + dot_product(softmax(v), x) + dot_product(log_softmax(v), x);",
)
model(
    "columns-dots",
    "matrix[N, K] M;",
    "target += sum(square(columns_dot_product(M, A))) + sum(square(rows_dot_product(M, A))) + sum(square(columns_dot_self(M))) + sum(square(rows_dot_self(M)));",
)
model(
    "comparisons-and-logic",
    "real a; real c;",
    """
target += (a < c) * a + (a > c) * c + (a <= c) + (a >= c) + (a == c) + (a != c) + (!(a < c)) * a + (a < 0 && c < 5) * c + (a > 5 || c > -5) * a;
""",
)
model(
    "conditional-expression",
    "real a; real c;",
    "target += a < c ? square(a) : exp(c); target += s > 0 ? a * c : log(a); real d = a > 10 ? a : c < 10 ? c * a : a; target += d * d;",
)
model(
    "conditional-containers",
    "vector[N] v; real a;",
    "vector[N] u = a < 0.3 ? v .* v : exp(v); vector[N] w = a > 100 ? v : u * a; target += sum(u .* w) + sum((s > 0) ? v : u);",
)
model(
    "conditional-lazy-index",
    "vector[N] v;",
    "int n = 9; target += n <= N ? v[n] : v[1]; target += (n <= N && v[n] > 0) ? 1 : v[2]; target += (n > N || v[n] > 0) ? v[3] ^ 2 : 0;",
)
case(
    "integer-arithmetic",
    _DECLARATIONS
    + """transformed data {
  int big = 2147483647; int small = -big - 1; array[12] int k;
  k[1] = big + y[1] * 1; k[2] = 7 %/% 2; k[3] = -7 %/% 2; k[4] = 7 % -3; k[5] = -7 % 3; k[6] = 7 / -2; k[7] = small - y[1];
  k[8] = big * 2; k[9] = abs(-y[4]); k[10] = -small; k[11] = max(y) - min(y); k[12] = small %/% -y[1];
}
parameters { real a; }
model { for (n in 1:12) target += sin(n) * k[n] * 1e-9; target += a * k[3] + a * k[5] + k[4] + k[6]; }
""",
)
model(
    "integer-promotion",
    "real a; vector[N] v;",
    "target += a * y[3] + y[4] / a + dot_product(to_vector(y), v) + sum(v * y[3]) + y[4] / 2 + y[4] / 2.0 + sum(y) * a; real d = y[4]; target += d / 2 * a;",
)
model(
    "container-literals",
    "real a; real c; row_vector[K] w;",
    """
row_vector[3] u = [a, c, a * c]; vector[2] v = [c, a]'; matrix[2, 3] M = [u, w]; array[3] real q = {a, 2 * a, c}; array[2] vector[2] p = {v, v * a};
target += sum(square(u)) + sum(M .* M) + q[2] * q[3] + sum(p[1] .* p[2]) + sum(square([[a, c], [1, a]] * v)); array[2, 2] real z = {{a, c}, {c, 1}}; target += z[1, 2] * z[1, 1] + z[2, 2];
""",
)

# ---------------------------------------------------------------- reading parts

model(
    "index-single",
    "vector[N] v; row_vector[N] w; matrix[N, K] M; array[N] real a;",
    "target += v[2] * w[3] + M[2, 3] * M[4, 1] + a[1] ^ 2 + v[N] * v[idx[1]] + M[idx[2], jdx[1]] + a[y[1]];",
)
model(
    "index-row-and-column",
    "matrix[N, K] M;",
    "target += sum(square(M[2])) + sum(M[1] .* M[3]) + sum(exp(M[, 2])) + dot_product(M[, 1], x) + M[2] * M[3]' + sum(M[2, ]) * sum(M[:, 3]);",
)
model(
    "index-slices",
    "vector[N] v; matrix[N, K] M; array[N] real a;",
    """
target += sum(square(v[2:3])) + sum(exp(v[2:])) + sum(v[:3] .* v[2:]) + sum(square(M[2:3, 1:2])) + sum(exp(M[2:, 2])) + sum(M[1, :2]) ^ 2 + sum(a[2:4]) * a[1] + sum(v[3:2]) + sum(M[:, 2:]);
""",
)
model(
    "index-gathers",
    "vector[N] v; matrix[N, K] M; array[N] real a; row_vector[N] w;",
    """
target += sum(square(v[idx])) + sum(exp(M[idx, jdx])) + sum(M[idx, 2] .* v[idx]) + sum(square(M[2, jdx])) + sum(square(M[idx])) + sum(a[idx]) ^ 2 + w[idx] * v[idx] + sum(square(M[, jdx]));
""",
)
model(
    "index-gather-of-expression",
    "vector[N] v; vector[K] u;",
    "target += dot_product(exp(v)[idx], v[idx]) + sum((v .* x)[2:3]) + (A * u)[2] * sum((A * u)[idx]) + sum(v[idx][2:4]) + v[idx][2] + sum(v[{1, 1, 3}]);",
)
model(
    "index-nested-arrays",
    "array[2, 3] vector[N] q; array[3] matrix[N, K] M;",
    """
target += sum(square(q[1, 2])) + q[2, 3, 4] * q[1, 1, 1] + sum(q[2, 1][2:3]) + sum(exp(M[2])) + sum(M[1][2] .* M[3, 1]) + M[2, 3, 1] ^ 2 + sum(M[1, 2:3, 2]) ^ 2 + sum(M[3][idx, 2]) ^ 3;
for (k in 1:3) target += sum(square(q[, k][2])) + sum(M[k, , 1] .* q[1, k]);
""",
)
model(
    "index-array-gathers",
    "array[4] vector[2] q; array[4] matrix[2, 2] M;",
    "array[5] vector[2] p = q[idx]; for (i in 1:5) target += p[i, 1] * p[i, 2] * i; target += sum(square(M[jdx][2])) + sum(M[idx, 1, 2]) ^ 2 + M[idx[2:3], 2, 1][1] ^ 2 + sum(q[idx, 1]) ^ 2;",
)
model(
    "index-single-varies-in-loop",
    "vector[N] v; matrix[N, K] M;",
    "for (i in 1:N) for (j in 1:K) target += v[i] * M[i, j] * A[i, j]; for (n in 1:5) target += v[idx[n]] ^ n; for (i in 2:N) target += v[i] * v[i - 1] + v[N - i + 1] ^ 2;",
)
model(
    "head-tail-segment",
    "vector[N] v; matrix[N, K] M; array[N] real a;",
    "target += sum(square(head(v, 2))) + sum(square(tail(v, 3))) + sum(exp(segment(v, 2, 2))) + sum(square(block(M, 2, 1, 2, 3))) + sum(square(row(M, 2))) + sum(square(col(M, 3))) + sum(square(sub_col(M, 2, 1, 2))) + sum(square(sub_row(M, 2, 2, 2))) + sum(head(a, 2)) ^ 2;",
)
model(
    "reshapes",
    "vector[6] v; matrix[N, K] M; array[2, 3] real a;",
    """
matrix[2, 3] B = to_matrix(v, 2, 3); matrix[2, 3] C = to_matrix(v, 2, 3, 0); target += sum(B .* C) + sum(to_vector(M) .* to_vector(M')) + sum(to_row_vector(v)) ^ 2 + sum(square(to_matrix(a))) + sum(square(to_vector(to_array_1d(a)) .* v));
target += sum(square(to_matrix(M, 2, 6)[1])) + dot_product(to_vector(to_array_1d(M)), to_vector(A)) + sum(square(to_array_2d(M)[2]) .* {1.0, 2, 3}) * 0;
""".replace(" + sum(square(to_array_2d(M)[2]) .* {1.0, 2, 3}) * 0", ""),
)
model(
    "appends",
    "vector[K] v; row_vector[K] w; matrix[N, K] M; array[2] real a;",
    """
target += sum(square(append_row(v, v * 2))) + sum(square(append_col(w, w))) + sum(square(append_row(M, w))) + sum(square(append_col(M, M[, 1]))) + sum(square(append_row(M, A)))
  + sum(square(append_col(M, A))) + sum(square(append_row(1.5, v))) + sum(square(append_row(v, a[1]))) + sum(append_array(a, {v[1], w[2]})) ^ 2 + sum(square(append_col(v, M[1:3, 1])));
""",
)
model(
    "reps",
    "real a; vector[K] v; row_vector[K] w;",
    "target += sum(square(rep_vector(a, N) + x)) + sum(square(rep_matrix(v, 4) + A')) + sum(square(rep_matrix(w, 4) + A)) + sum(square(rep_matrix(a, N, K) + A)) + sum(square(to_vector(rep_array(a, 3)) + v)) + sum(rep_row_vector(a, N) .* r); array[2] vector[K] q = rep_array(v, 2); target += q[1, 2] * q[2, 1];",
)
model(
    "diagonals",
    "matrix[K, K] M; vector[K] v;",
    "target += sum(square(diagonal(M))) + sum(square(diag_matrix(v) * M)) + trace(M) ^ 2 + sum(square(add_diag(M, v))) + sum(square(add_diag(M, 2.5)));",
)
model(
    "reverse-and-rows",
    "vector[N] v; matrix[N, K] M;",
    "target += dot_product(reverse(v), x) + rows(M) * v[1] + cols(M) * v[2] + size(v) * v[3] + num_elements(M) * v[4];",
)

# ---------------------------------------------------------------- assigning parts

model(
    "assign-element-in-loop",
    "vector[N] v; real a;",
    "vector[N] u; for (i in 1:N) u[i] = a * v[i] + x[i]; target += sum(square(u)); for (i in 1:N) u[i] = u[i] * v[i]; target += sum(exp(u));",
)
model(
    "assign-read-before-and-after",
    "vector[N] v; real a;",
    "vector[N] u = v; real before = sum(u .* x); u[2] = a; real after = sum(square(u)); u[2] = u[1] * u[2]; target += before * after + sum(exp(u));",
)
model(
    "assign-overwritten",
    "vector[N] v; real a;",
    "vector[N] u; for (i in 1:N) { u[1] = v[i] * a; target += u[1] ^ 2; } u[2:N] = v[2:N]; u[3] = 1; u[4] = u[1]; u[1] = a; target += sum(square(u)) + dot_product(u, v);",
)
model(
    "assign-recurrence",
    "vector[N] v; real a;",
    "vector[N] u; u[1] = a; for (i in 2:N) u[i] = u[i - 1] * v[i] + sin(u[i - 1]); target += u[N] + sum(square(u));",
)
model(
    "assign-prefix-sum-in-place",
    "vector[N] v;",
    "vector[N] u = v; for (i in 2:N) u[i] += u[i - 1] * x[i]; for (i in 1:N - 1) u[i] *= u[i + 1]; target += sum(u .* v);",
)
model(
    "assign-slices",
    "vector[N] v; matrix[N, K] M; row_vector[K] w;",
    """
vector[N] u = x; u[2:3] = v[1:2] .* v[2:3]; u[4:] = v[:1]; matrix[N, K] B = A; B[2] = w .* M[1]; B[, 3] = v; B[3:4, 1:2] = M[1:2, 2:3] * 2; B[1, 2:] = w[1:2]; target += sum(square(u)) + sum(B .* M) + sum(exp(B));
""",
)
model(
    "assign-gathers",
    "vector[N] v; matrix[N, K] M; array[N] real a;",
    """
vector[N] u = x; u[{2, 4}] = v[{1, 3}]; u[{1, 1}] = v[{2, 3}]; matrix[N, K] B = A; B[{3, 1}, {2, 3}] = M[{1, 2}, {1, 1}]; B[2, jdx] = M[1]; B[{4, 4}, 1] = v[2:3]; array[N] real c = a; c[{2, 2}] = a[{3, 4}]; target += sum(square(u)) + sum(square(B)) + sum(B .* M) + c[2] * c[1];
""",
)
model(
    "assign-overlapping",
    "vector[N] v; matrix[K, K] M; array[3] real a;",
    """
vector[N] u = v; u[2:N] = u[1:N - 1]; u[{1, 2, 3}] = u[{3, 1, 2}]; matrix[K, K] B = M; B = B'; B[1] = B[, 2]'; B[, 1] = B[2]'; B[1:2, 1:2] = B[2:3, 2:3]; array[3] real c = a; c[1:2] = c[2:3]; u = reverse(u); u = u[{2, 1, 4, 3}]; target += dot_product(u, x) + sum(square(u)) + sum(B .* S) + sum(square(B)) + c[1] * c[2] * c[3];
""",
)
model(
    "assign-self-expression",
    "vector[N] v; matrix[K, K] M;",
    "vector[N] u = v; u[1] = 2 * u[1]; u = u .* u + u[1]; u[2:3] = u[2:3] .* u[1:2]; matrix[K, K] B = M; B[1, 2] = B[2, 1] * B[1, 2]; B = B * B; B[2] = B[2] * B; B += B'; B .*= M; target += sum(u) + sum(B); u += v; u *= 2; u ./= 3 + square(v); u -= 1; target += sum(square(u));",
)
model(
    "assign-nested-arrays",
    "array[2] vector[3] q; array[2, 2] matrix[2, 2] M;",
    """
array[2] vector[3] p = q; p[1, 2] = q[2, 3]; p[2] = q[1] .* p[1]; p[2][1] = 3; array[2, 2] matrix[2, 2] L = M; L[1, 2] = M[2, 1] * M[1, 1]; L[1, 1, 2] = M[1, 1, 1]; L[2, 2, , 1] = M[1, 2, 2]'; L[2, 1, 1, 2] = L[1, 1, 2, 2]; L[1] = L[2];
for (i in 1:2) { target += sum(square(p[i])); for (j in 1:2) target += sum(square(L[i, j])) * (i + 2 * j); }
""",
)
model(
    "assign-matrix-in-nested-loops",
    "vector[K] v; matrix[K, K] M;",
    """
matrix[K, K] C; for (i in 1:K) { C[i, i] = exp(v[i]); for (j in 1:i - 1) { C[i, j] = v[i] * v[j] * M[i, j]; C[j, i] = C[i, j]; } } target += sum(square(C)) + sum(C * v);
for (i in 1:K) for (j in 1:K) if (i < j) C[i, j] = C[j, i] * M[i, j]; target += sum(exp(C));
""",
)
model(
    "assign-cholesky-by-hand",
    "matrix[K, K] M;",
    """
matrix[K, K] C = S + 0.1 * M * M'; matrix[K, K] L = rep_matrix(0, K, K);
for (j in 1:K) { real d = C[j, j]; for (k in 1:j - 1) d -= square(L[j, k]); L[j, j] = sqrt(d); for (i in j + 1:K) { real t = C[i, j]; for (k in 1:j - 1) t -= L[i, k] * L[j, k]; L[i, j] = t / L[j, j]; } }
target += sum(log(diagonal(L))) + sum(square(L));
""",
)
model(
    "assign-in-branch",
    "vector[N] v; real a;",
    "vector[N] u = v; if (a < 0.5) u[1] = a * v[2]; else u[2] = v[1]; if (a > 50) u[3] = 0; for (i in 1:N) { if (v[i] > 0) u[i] = u[i] * v[i]; else if (i > 2) u[i] = exp(u[i]); } target += sum(square(u));",
)
model(
    "assign-accumulator-array",
    "vector[N] v; matrix[N, K] M;",
    "array[K] real acc = rep_array(0.0, K); for (n in 1:N) acc[jdx[1 + n % 3]] += v[n] * M[n, 1]; for (n in 1:5) acc[1] += v[idx[n]] ^ 2; target += sum(square(acc)) + acc[2] * acc[3];",
)
model(
    "assign-container-per-iteration",
    "vector[N] v; real a;",
    "real acc = 0; for (n in 1:N) { vector[K] u = rep_vector(v[n], K); u[2] = a * u[1]; u[3] = u[2] * u[2]; acc += sum(u) * acc + u[3]; } target += acc;",
)
model(
    "assign-after-use-in-density",
    "vector[N] v; real<lower=0> a;",
    "vector[N] u = v; u ~ normal(0, a); u[2] = u[1] * a; u ~ normal(x, 1); u[1:2] = u[3:4]; u ~ normal(1, a);",
)
model(
    "assign-whole-in-loop",
    "vector[N] v; matrix[K, K] M;",
    "vector[N] u = v; matrix[K, K] B = M; for (i in 1:3) { u = sin(u) .* v + i; B = B * M / 2; u[i] = u[i] * B[1, 2]; } target += sum(u) + sum(square(B));",
)
model(
    "assign-swap",
    "vector[N] v;",
    "vector[N] u = v; for (i in 1:N %/% 2) { real t = u[i]; u[i] = u[N + 1 - i]; u[N + 1 - i] = t * x[i]; } target += dot_product(u, x) + sum(square(u));",
)

# ---------------------------------------------------------------- loops

model(
    "loop-carried-scalars",
    "real a; vector[N] v;",
    "real p = a; real q = 1; for (i in 1:N) { real t = p * q; p = q + v[i]; q = t * a; } target += p * q;",
)
model(
    "loop-carried-container",
    "vector[N] v; matrix[N, N] M;",
    "vector[N] u = v; for (i in 1:3) { u = M * u + sin(u); target += u[i]; } target += sum(square(u));",
)
model(
    "loop-carried-swapped-containers",
    "vector[N] v; vector[N] w;",
    "vector[N] p = v; vector[N] q = w; for (i in 1:5) { vector[N] t = p; p = q .* v; q = t + w; } target += sum(p .* q);",
)
model(
    "nested-loops-kept",
    "vector[N] v; matrix[N, K] M;",
    "real acc = 1; for (i in 1:N) { real inner = v[i]; for (j in 1:K) { inner = inner * M[i, j] + exp(inner * 0.1); acc += inner * acc * 0.1; } acc *= sin(inner); } target += acc;",
)
model(
    "triple-loops-kept",
    "vector[N] v;",
    "real acc = v[1]; for (i in 1:2) for (j in i:3) for (k in j:4) acc = sin(acc * v[k]) + v[i] * v[j]; target += acc; for (i in 1:2) { real t = 1; for (j in 1:i) { real w = t; for (k in 1:j) w *= v[k] + t; t += w; } target += t * t; }",
)
model(
    "loop-target-and-carry",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { p = p * v[i]; target += square(p - x[i]); v[i] ~ normal(p, 1); } target += p;",
)
model(
    "loop-zero-trips",
    "vector[N] v; real a;",
    "real p = a; vector[N] u = v; for (i in 1:Z) { p = p * v[1]; u[1] = p; } for (i in 5:3) { p = exp(p); u[i] = 2; } for (i in 3:2) for (j in 1:N) target += u[j]; target += p * u[1];",
)
model(
    "loop-bounds-change-inside",
    "real a;",
    "int n = 3; real p = a; for (i in 1:n) { n = 10; p *= a + i; } target += p + n;",
)
model(
    "loop-local-arrays-of-containers",
    "vector[N] v;",
    "real acc = 0; for (i in 1:N) { array[2] vector[2] q; for (j in 1:2) { q[j][1] = v[i] * j; q[j][2] = q[j][1] ^ 2; } acc += dot_product(q[1], q[2]); } target += acc ^ 2;",
)
model(
    "loop-index-as-value",
    "vector[N] v;",
    "real acc = 0; for (i in 2:N) { int k = i * 2 - 1; acc += v[i] * k + v[(k % N) + 1] / i; } target += acc ^ 2;",
)
model(
    "foreach-vector",
    "vector[N] v; row_vector[K] w; matrix[2, 3] M; array[3] real a;",
    "real p = 1; for (e in v) p = p * e + 1; for (e in w) p += e ^ 2; for (e in M) p = p * 0.5 + sin(e) * p; for (e in a) { target += e * p; p = e; } for (e in x) target += e * p; target += p;",
)
model(
    "foreach-array-of-containers",
    "array[3] vector[2] q; array[2] matrix[2, 2] M; array[2, 2] real a;",
    "vector[2] acc = [1, 2]'; for (e in q) acc = acc .* e + 1; for (m in M) acc = m * acc; for (row in a) for (e in row) acc *= e + 1; target += sum(square(acc)); for (k in jdx) target += k * acc[1];",
)
with_functions(
    "loop-prefix-sum-feeds-sum",
    "real f(vector w, real a) { real t = 0; for (i in 1:num_elements(w)) t += square(w[i] - a) * exp(w[i]); return t; }",
    "vector[N] v; real a;",
    "target += f(cumulative_sum(v), a); target += f(cumulative_sum(v .* x), a);",
)
model(
    "while-counted",
    "real a; vector[N] v;",
    "int i = 1; real p = a; while (i <= N) { p = p * v[i] + sin(p); i += 1; } target += p ^ 2;",
)
model(
    "while-on-parameters",
    "real<lower=0> a; real c;",
    "real p = a; int n = 0; while (p < 20) { p = p * 1.7 + c * p * 0.1 + 0.5; n += 1; } target += p ^ 2 + n;",
)
model(
    "while-with-container",
    "vector[N] v; real<lower=0> a;",
    "vector[N] u = v; real p = a; while (p < 9) { u[1] = u[1] * u[2] + p; u[2:3] = u[3:4] .* v[1:2]; p = p * 2 + 0.1; } target += sum(square(u)) + p;",
)
model(
    "while-carried-whole-container",
    "vector[N] v; real<lower=0> a;",
    "vector[N] u = v; real p = a; while (p < 10) { u = sin(u) .* v + p; p = 2 * p + 0.1; } target += sum(u);",
)
model("while-zero-trips", "real a;", "real p = a; while (p > 100) p = p * a; target += p ^ 2;")
model(
    "while-nested",
    "real<lower=0> a; vector[N] v;",
    "real p = a; int i = 0; while (i < 3) { real q = p; int j = 0; while (j < i) { q = q * v[j + 1] + sin(p); j += 1; } p += sin(q); i += 1; } target += p;",
)
model(
    "while-in-for-and-for-in-while",
    "vector[N] v; real<lower=0> a;",
    "real p = a; for (i in 1:3) { int j = i; while (j > 0) { p = p * sin(v[i]) + j; j -= 1; } } int m = 0; while (m < 2) { for (i in 1:N) p = sin(p) * v[i] + p; m += 1; } target += p;",
)
model(
    "while-target",
    "vector[N] v; real a;",
    "int i = 1; while (i <= N) { target += square(v[i] - a); v[i] ~ normal(a, 2); i += 1; }",
)
model(
    "break-in-for",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:10) { if (p > 5) break; p = p * 1.5 + square(v[1 + i % N]) + 0.3; } target += p ^ 2;",
)
model(
    "continue-in-for",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { if (v[i] < 0) continue; p = p * v[i] + 1; target += p; } target += p ^ 2;",
)
model(
    "break-and-continue-nested",
    "matrix[N, K] M; real a;",
    "real p = a; for (i in 1:N) { for (j in 1:K) { if (M[i, j] < -0.6) break; if (M[i, j] < -0.2) continue; p = p * (1 + 0.1 * M[i, j]) + 1; } if (p > 30) break; } target += p;",
)
model(
    "break-in-while",
    "real<lower=0> a;",
    "real p = a; int n = 0; while (1) { n += 1; if (p > 10) break; if (n == 2) { p += a; continue; } p = p * p + 1; } target += p;",
)
model(
    "break-with-partial-assignment",
    "vector[N] v;",
    "vector[N] u = rep_vector(1, N); for (i in 1:N) { u[i] = v[i] ^ 2; if (i == 3) break; u[i] = u[i] * v[1]; } target += sum(u .* v);",
)
model(
    "break-in-foreach",
    "vector[N] v; array[3] vector[2] q;",
    "real p = 0; for (e in v) { if (e > 2) break; if (e < 0) continue; p += e * e; } for (w in q) { p += sum(w) * p; if (p > 1e3) break; } target += p;",
)
model(
    "branch-active",
    "real a; real c;",
    "real p; if (a < c) p = a * a; else p = exp(c); if (p > 0.2) { p *= c; } else if (p > 0.1) { p += a; } target += p ^ 2; if (a > 0) target += a * c; else { real t = c ^ 2; target += t * a; }",
)
model(
    "branch-active-containers",
    "vector[N] v; real a;",
    "vector[N] u; if (a < 0) { u = v .* v; } else { vector[N] t = exp(v); u = t + a; } vector[N] w = u; if (v[1] > 0) w = u .* u; target += sum(w) + sum(u);",
)
model(
    "branch-in-loop-kept",
    "vector[N] v; real a;",
    "real p = a; for (i in 1:N) { if (v[i] * p > 0) { real t = sin(p); p = t * v[i] + t ^ 2; } else { p = p * p + v[i]; } } target += p;",
)
model(
    "branch-on-data-in-loop",
    "vector[N] v; real a;",
    "for (i in 1:N) { if (b[i] == 1) target += log_inv_logit(a * v[i]); else if (y[i] > 1) y[i] ~ poisson_log(v[i]); else target += square(v[i] - a); }",
)
model(
    "blocks-and-shadowing",
    "real a; vector[N] v;",
    "real p = a; { real q = p * 2; { vector[N] u = v * q; p += sum(u); } p *= q; } { real q = p; target += q ^ 2; }",
)
model(
    "active-and-data-mixed-branch",
    "vector[N] v; real a;",
    "vector[N] u; if (s > 10) u = v; else u = x; vector[N] w; if (a < 0.2) w = x; else w = v .* x; target += sum(u .* v) + sum(square(w)); real p = 1; if (a > 0.1) p = a; target += p * p;",
)
model(
    "container-data-then-active-in-loop",
    "vector[N] v;",
    "vector[N] u = x; for (i in 1:3) { target += sum(u); u = u .* v; } vector[N] w = x; for (i in 1:2) w = w + x; target += sum(w .* v);",
)

# ---------------------------------------------------------------- functions

with_functions(
    "function-simple",
    "real f(real a, vector v) { return a * sum(v .* v); }",
    "real a; vector[N] v;",
    "target += f(a, v) + f(2, v) + f(a, x) + f(s, x) + f(f(a, v), v + 1);",
)
with_functions(
    "function-early-return",
    """
real f(real a) { if (a > 0.3) return a ^ 2; if (a > 0) { return exp(a); } else { real t = a * 3; if (t < -1) return t; } return sin(a); }
""",
    "vector[N] v; real a;",
    "for (i in 1:N) target += f(v[i]) * i; target += f(a) * f(-a);",
)
with_functions(
    "function-return-in-loop",
    """
real first_above(vector v, real t) { for (i in 1:num_elements(v)) { if (v[i] > t) return v[i] * t; for (j in 1:2) if (v[i] * j > 0.9) return v[i] ^ 2; } return t ^ 2; }
real steps(real a) { real p = a; while (p < 50) { p = p * 2 + 1; if (p > 13) return p * a; } return p; }
""",
    "vector[N] v; real<lower=0> a;",
    "target += first_above(v, 0.1) + first_above(v, 100) * a + first_above(x, a) + steps(a) + steps(60 * a);",
)
with_functions(
    "function-returns-containers",
    """
vector f(vector v, int n) { vector[n] u; for (i in 1:n) u[i] = v[i] * v[n + 1 - i]; return u; }
matrix g(vector v) { return v * v'; }
array[] vector h(vector v) { return {v, 2 * v, v .* v}; }
tuple_real(vector v) 
""".replace("tuple_real(vector v) \n", ""),
    "vector[N] v;",
    "target += sum(square(f(v, 3))) + sum(square(g(v) * f(f(v, N), N))) + sum(h(v)[3]) + sum(h(v[2:3])[2] .* v[:2]);",
)
with_functions(
    "function-void-and-lp",
    """
void check(real a) { if (a > 1e6) reject("too large: ", a); }
void add_lp(vector v, real m) { target += sum(square(v)) * m; v ~ normal(m, 2); }
real get_lp(real a) { target += a ^ 2; a ~ std_normal(); return a * 3; }
""",
    "vector[N] v; real a;",
    "check(a); add_lp(v, a); add_lp(x, a); real p = get_lp(a); target += p * get_lp(p); for (i in 1:2) add_lp(v[i:i + 1], v[i]);",
)
with_functions(
    "function-user-density",
    """
real mine_lpdf(vector v, real m, real t) { return normal_lpdf(v | m, t) + normal_lupdf(v | m, 1) - t ^ 2; }
real other_lpdf(real v, vector m) { real acc = 0; for (i in 1:num_elements(m)) acc += cauchy_lupdf(v | m[i], 1.5); return acc; }
real plain_lpmf(array[] int n, real l) { return poisson_lupmf(n | l) + poisson_lpmf(n | 2 * l); }
""",
    "vector[N] v; real a; real<lower=0> t;",
    "v ~ mine(a, t); target += mine_lpdf(v | a, t) + mine_lupdf(x | a, t); a ~ other(v); target += other_lupdf(a | x); y ~ plain(t); target += plain_lpmf(y | t) + plain_lupmf(y | 3.5);",
)
with_functions(
    "function-calls-functions",
    """
real sq(real a) { return a * a; }
real both(real a, real c) { real t = sq(a) + sq(c); return t > 1 ? sq(t) : t; }
vector map_(vector v, real a) { vector[num_elements(v)] u = v; for (i in 1:num_elements(v)) u[i] = both(u[i], a); return u; }
""",
    "vector[N] v; real a;",
    "target += sum(map_(v, a)) + sum(map_(map_(v, 1), a)) + both(a, 3);",
)
with_functions(
    "function-argument-is-variable",
    "real f(vector u, vector v) { return dot_product(u, v); }\nvector g(vector u) { vector[num_elements(u)] w = u; w[1] = w[2] * 2; return w; }",
    "vector[N] v;",
    "vector[N] u = v; u[1] = 2; real p = f(u, u); u[2] = v[1] * p; vector[N] q = g(u); u[2] = 0.5; target += f(u, q) + f(q[1:2], u[2:3]); u = g(u); target += sum(u);",
)
with_functions(
    "function-data-argument",
    "real f(data vector u, vector v, data real c) { return dot_product(u, v) * c; }",
    "vector[N] v;",
    "target += f(x, v, s) + f(x, v .* v, 2);",
)
with_functions(
    "function-int-results",
    "int count_(vector v) { int n = 0; for (e in v) if (e > 0) n += 1; return n; }\narray[] int order_(int n) { array[n] int k; for (i in 1:n) k[i] = n + 1 - i; return k; }",
    "vector[N] v;",
    "target += count_(v) * v[1] + sum(v[order_(3)] .* v[1:3]) + v[count_(x)];",
)
with_functions(
    "function-arrays-of-containers",
    "real f(array[] vector q, array[,] real a) { real t = 0; for (i in 1:size(q)) t += sum(q[i]) * a[i, 1]; return t; }\narray[,] real g(real a) { return {{a, 2 * a}, {a ^ 2, 1}}; }",
    "array[2] vector[3] q; real a;",
    "target += f(q, g(a)) + f({q[2], q[1]}, {{1, 2}, {a, 3}});",
)
with_functions(
    "function-many-locals",
    "real f(real a, real c) { real p = a; real q = c; for (i in 1:3) { real t = p * q; if (t > 0) { q = p + 1; p = t; } else { p = q * q; q = t - 1; } } return p * q; }",
    "real a; real c;",
    "target += f(a, c) * f(c, a); real z = 0; for (i in 1:2) z = f(sin(z), a); target += z * 1e-3;",
)

# ---------------------------------------------------------------- target

model(
    "target-of-containers",
    "vector[N] v; matrix[N, K] M; array[3] real a; row_vector[K] w;",
    "target += v; target += M .* A; target += a; target += w .* w; target += exp(v); target += {v[1] ^ 2, v[2]}; target += append_row(v, v);",
)
model(
    "target-in-branches-and-loops",
    "vector[N] v; real a;",
    "if (a > -5) { target += a ^ 2; for (i in 1:N) { if (v[i] > 0) target += v[i] ^ 3; else for (j in 1:i) target += v[j] * a; } }",
)
model(
    "target-read",
    "real a; vector[N] v;",
    "target += a ^ 2; target += target() * a; for (i in 1:N) { v[i] ~ normal(a, 1); } if (target() > -1000) target += target() ^ 2 * 0.01;",
)
model("target-unused-parameter", "real a; real unused; vector[N] nothing; real<lower=0> positive;", "target += a ^ 2;")
model("target-empty-model", "real a; real<lower=0, upper=2> c;", "")
model("parameters-none-active", "real a;", "target += s * sum(x); x ~ normal(0, 1);")
model(
    "zero-size-containers",
    "vector[Z] e; matrix[Z, 3] E; matrix[3, Z] F; array[Z] vector[2] q; simplex[1] one; real a;",
    "target += sum(e) + sum(E * F * E) + sum(F * E) * a + a ^ 2; e ~ normal(a, 1); for (k in q) target += sum(k); for (t in e) target += t; target += dot_product(e, e) + log_sum_exp(append_row(e, a)); vector[Z] u = e .* e; u[1:Z] = e; target += sum(u[:Z]);",
)
case("no-parameters", "model { target += sum(x) + normal_lpdf(s | 0, 1); }\n")
