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
