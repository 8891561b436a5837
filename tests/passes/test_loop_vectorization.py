"""Loop vectorization keeps what programs compute, and whether they fail: before and after, on small programs.

Most have loops without an iteration, indices out of range or sizes that differ among their data.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import translation_validation as validation
from xdsl.context import Context

from ulam.dialects.walk import ops_within
from ulam.emit.stan_text import print_module
from ulam.frontend.check.program import check_program
from ulam.frontend.lower.program import lower_program
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.passes.optimize.loop_vectorization import LoopVectorization
from ulam.passes.remarks import collect_remarks
from ulam.runtime.errors import Rejection
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

PASS = "loop-vectorization"

DATA: dict[str, Any] = {
    "N": 4, "M": 3, "K": 2, "L": 1, "U": 3, "Z": 0,
    "x": [0.5, -1.0, 0.25, 2.0], "y": [0.1, 0.2, -0.3, 0.4], "r": [1.0, 0.5, -0.5, 0.2],
    "a": [0.3, 0.1, 0.2, 0.7], "k": [3, 0, 1, 2], "b": [0, 1, 1, 0], "J": [2, 1, 3, 2], "t": [5, 4, 6, 3],
    "X": [[1.0, 2.0], [0.5, -0.5], [0.1, 0.2], [0.3, -0.4]], "s0": 1.5,
    "W": [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6], [0.7, 0.8, 0.9], [-0.1, -0.2, -0.3]],
    "V": [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6], [0.7, 0.8]],
}  # fmt: skip

HEAD = """
data {
  int<lower=0> N; int<lower=1> M; int K; int L; int U; int Z;
  vector[N] x; vector[N] y; row_vector[N] r; array[N] real a;
  array[N] int k; array[N] int b; array[N] int J; array[N] int t;
  matrix[N, K] X; matrix[N, M] W; array[N] vector[K] V; real s0;
}
parameters { real p; real q; real<lower=0> s; vector[M] z; vector[K] beta; row_vector[K] gamma; vector[N] w; }
"""

# Statements of the model block (or, with `|`, further blocks before it) that are vectorised as a whole.
WHOLE = {
    "normal": "for (n in 1:N) y[n] ~ normal(p + q * x[n], s);",
    "target lpdf": "for (n in 1:N) target += normal_lpdf(y[n] | p + q * x[n], s);",
    "target lupdf": "for (n in 1:N) target += normal_lupdf(y[n] | p, s) - student_t_lpdf(x[n] | 3, q, 1);",
    "all scalars": "for (n in 1:N) p ~ normal(q, s);",
    "weighted": "for (n in 1:N) target += 0.5 * normal_lpdf(y[n] | p, s) / s0;",
    "vector arguments": "for (n in 1:N) y[n] ~ student_t(exp(w[n]), p * x[n], s + square(x[n]));",
    "array arguments": "for (n in 1:N) a[n] ~ normal(r[n], exp(a[n]));",
    "arrays in arithmetic": "for (n in 1:N) y[n] ~ normal(p * a[n] + r[n] - k[n], s);",
    "ints": "for (n in 1:N) k[n] ~ poisson_log(p + q * x[n]);",
    "binomial": "for (n in 1:N) k[n] ~ binomial_logit(t[n], p + q * x[n]);",
    "bernoulli": "for (n in 1:N) b[n] ~ bernoulli(inv_logit(p + w[n]));",
    "gather": "for (n in 1:N) y[n] ~ normal(z[J[n]], s);",
    "computed gather": "for (n in 1:N) y[n] ~ normal(x[t[n] - 2] + z[J[n]], s);",
    "gather of gather": "for (n in 1:M) y[n] ~ normal(z[J[J[n]]], s);",
    "slice": "for (n in 2:3) y[n] ~ normal(p * x[n], s);",
    "offset": "for (n in 2:N) y[n] ~ normal(p * y[n - 1] + x[1 + n - 1], s);",
    "runtime bounds": "for (n in L:U) y[n] ~ normal(p * x[n], 1);",
    "zero-trip": "for (n in 1:Z) y[n] ~ normal(0, -1);",
    "zero-trip throws": "for (n in 1:Z) y[n] ~ normal(0, log(p) + x[17]);",
    "zero-trip far": "vector[N] mu = x; for (n in 1:-5) mu[n] = p; target += mu;",
    "zero-trip mismatch": "for (n in 1:Z) y[n] ~ normal(X[n] * z, s);",
    "rows": "for (n in 1:N) y[n] ~ normal(X[n] * beta, s);",
    "rows too short": "for (n in 1:N) y[n] ~ normal(W[n] * beta, s);",
    "dot product": "for (n in 1:N) y[n] ~ normal(p + dot_product(X[n], gamma) + dot_product(beta, X[n]), s);",
    "array of arrays": "array[N, 2] real A; array[2] real f = {p, q}; for (n in 1:N) A[n] = f; target += A[1];",
    "rows with rows": "for (n in 1:N) y[n] ~ normal(dot_product(X[n], X[n + 0]), s);",
    "columns of a matrix": "for (n in 1:N) y[n] ~ normal(X[n, 1] + X[n, 2] * p, s);",
    "column out of range": "for (n in 1:N) y[n] ~ normal(X[n, 3], s);",
    "zero-trip column": "for (n in 1:Z) y[n] ~ normal(X[n, 3], s);",
    "multivariate": "for (n in 1:N) V[n] ~ multi_normal(beta, diag_matrix(rep_vector(s, K)));",
    "assign": "vector[N] mu; for (n in 1:N) mu[n] = p + q * x[n]; y ~ normal(mu, s);",
    "assign constant": "vector[N] mu; for (n in 1:N) mu[n] = p; y ~ normal(mu, s);",
    "assign row vector": "row_vector[N] mu; for (n in 1:N) mu[n] = p * x[n] + r[n]; y ~ normal(mu, s);",
    "assign array": "array[N] real mu; for (n in 1:N) mu[n] = p * x[n]; y ~ normal(mu, s);",
    "copies": "array[N] int c; array[N] real m; for (n in 1:N) { c[n] = J[n]; m[n] = a[n]; } m ~ normal(z[c], s);",
    "assign rows": "matrix[N, K] A; for (n in 1:N) A[n] = p * X[n] + X[n]; target += A;",
    "assign scaled rows": "matrix[N, K] A; for (n in 1:N) A[n] = w[n] * X[n]; target += exp(A);",
    "assign one row": "matrix[N, K] A; for (n in 1:N) A[n] = gamma; target += A;",
    "assign wrong rows": "matrix[N, M] A; for (n in 1:N) A[n] = gamma; target += A;",
    "zero-trip wrong rows": "matrix[N, M] A = W; for (n in 1:Z) A[n] = gamma; target += A;",
    "assign column": "matrix[N, K] A = X; for (n in 1:N) A[n, 2] = p * x[n]; target += A;",
    "compound": "vector[N] mu = p + x; for (n in 1:N) { mu[n] += z[J[n]] * a[n]; mu[n] *= q; } y ~ normal(mu, s);",
    "several": "vector[N] mu; for (n in 1:N) { mu[n] = p * x[n]; y[n] ~ normal(mu[n], s); target += mu[n]; }",
    "read then write": "vector[N] mu = x; for (n in 1:N) { y[n] ~ normal(mu[n], s); mu[n] = p; target += mu[n]; }",
    "local once": "for (n in 1:N) { real m = p + q * x[n]; y[n] ~ normal(m, s); }",
    "local often": "for (n in 1:N) { real m = p * x[n]; m = m + m * q; y[n] ~ normal(m, s); target += m; }",
    "local int": "for (n in 1:N) { int j = J[n]; y[n] ~ normal(z[j], exp(z[j])); }",
    "local constant": "for (n in 1:N) { real m = p * q; y[n] ~ normal(m, s + m * m); }",
    "sum": "real m = p; for (n in 1:N) m += x[n] * w[n]; target += -m * m;",
    "sum of ints": "int m = 2; for (n in 1:N) m += k[n]; target += -m * p;",
    "product": "for (n in 1:N) target += w[n] * x[n] - square(w[n]);",
    "same summand": "for (n in 2:N) target += -square(p);",
    "nested": "for (j in 1:M) for (n in 1:N) W[n, j] ~ normal(z[j] + x[n], s);",
    "nested rows": "matrix[N, M] A; for (n in 1:N) for (j in 1:M) A[n, j] = z[j] * W[n, j] + p; target += -square(A);",
    "nested reaching": "for (n in 1:N) for (j in 1:n) target += w[j] * x[n];",
    "rows of a matrix": "for (n in 1:N) { W[n] ~ normal(p, s); W[n] ~ cauchy(W[n], 1); }",
    "rows that differ": "for (n in 1:N) W[n] ~ normal(X[n], s);",
    "row and vector": "for (n in 1:N) W[n] ~ normal(z, s);",
    "rows by functions": "matrix[N, K] A; for (n in 1:N) A[n] = exp(X[n]) + fmax(X[n], p); target += -A;",
    "rows as wholes": "matrix[N, K] A; for (n in 1:N) A[n] = reverse(cumulative_sum(X[n])) * p; target += -A;",
    "scalar and vector": "for (n in 1:N) y[n] ~ normal(w, s);",
    "rows and scales": "for (n in 1:N) W[n] ~ normal(x[n], s);",
    "nested scalar": "for (n in 1:N) for (j in 1:M) W[n, j] ~ normal(p, s);",
    "groups": "for (j in 1:M) { int f = 1; int l = J[j]; for (n in f:l) y[n] ~ normal(z[j], s); }",
    "functions": "for (n in 1:N) y[n] ~ normal(fmax(x[n], p) + hypot(w[n], q) + pow(x[n], 2) + atan2(1, a[n]), s);",
    "quotients": "for (n in 1:N) y[n] ~ normal(x[n] / s + 1 / exp(w[n]) + x[n] / exp(a[n]) - -w[n], s);",
    "int function": "for (n in 1:N) target += lgamma(k[n] + 1.0) * p;",
    "distribution function": "for (n in 1:N) target += normal_lcdf(y[n] | p, s) + exponential_lccdf(exp(w[n]) | s);",
    "out of range": "for (n in 1:N + 1) y[n] ~ normal(p * x[n], s);",
    "below range": "for (n in 0:N) y[n] ~ normal(p * x[n], s);",
    "gather out of range": "for (n in 1:N) y[n] ~ normal(z[t[n]], s);",
    "offset out of range": "for (n in 1:N) y[n] ~ normal(p * x[n + 1], s);",
    "negative scale": "for (n in 1:N) y[n] ~ normal(p, p - 5);",
    "scales": "for (n in 1:N) y[n] ~ normal(p, x[n]);",
    "bound read twice": "int n1 = U; for (n in L:n1) { y[n] ~ normal(p, s); } n1 = 2; for (n in L:n1) target += w[n];",
    "bound assigned in loop": "int n1 = 2; for (n in 1:n1) { w[n] ~ normal(p, s); n1 = 1; } target += n1 * p;",
    "size assigned later": "int m = 3; vector[m] v = x[1:3]; m = 2; for (n in 1:m) v[n] = p * x[n]; target += v;",
    "size is a number": "vector[3] v; for (n in 1:3) v[n] = p * x[n]; target += v;",
    "size is an expression": "vector[N + 1] v; for (n in 1:1 + N) v[n] = p; target += -v;",
    "size by a function": "for (n in 1:num_elements(y)) y[n] ~ normal(p * x[n], s);",
    "shifted writes": "vector[N + 1] v = rep_vector(0, N + 1); for (n in 1:N) v[n + 1] = p * x[n]; target += -v;",
    "two places of one": "matrix[N, 2] v; for (n in 1:N) { v[n, 1] = p * x[n]; v[n, 2] = q * v[n, 1]; } target += -v;",
    "diagonal": "for (n in 1:K) target += X[n, n] * p;",
    "under a branch": "if (p > 0) for (n in 1:N) y[n] ~ normal(p * x[n], s);",
    "with a print around": 'print("before"); for (n in 1:N) y[n] ~ normal(p * x[n], p - 5); print("after");',
}  # fmt: skip

# What stays, all of it or a part, with a word of the reason.
STAYS = {
    "carried": ("vector[N] v = x; for (n in 2:N) v[n] = p * v[n - 1]; target += v;", "v[n - 1]"),
    "carried scalar": ("real v = 0; for (n in 1:N) { v = p * v + x[n]; target += v; }", "v is carried"),
    "aliased": ("vector[N] v = x; for (n in 1:N) v[n] = p * v[t[n] - 2]; target += v;", "v is not used at v[n]"),
    "written by gather": ("vector[M] v = z; for (n in 1:N) v[J[n]] += x[n]; target += -square(v);", "v is not used"),
    "whole read": ("vector[N] v = x; for (n in 1:N) v[n] = p * sum(v); target += v;", "all of v"),
    "print": ('for (n in 1:N) { print(n); y[n] ~ normal(p * x[n], s); }', "normal_lpdf may be an error"),
    "print and harmless": ('vector[N] v; for (n in 1:N) { v[n] = p * x[n]; print(v[n]); } target += v;', "print stays"),
    "break": ("for (n in 1:N) { if (n > U) break; y[n] ~ normal(p, s); }", "break or continue"),
    "branch": ("for (n in 1:N) { if (b[n]) target += w[n]; y[n] ~ normal(p, s); }", "a branch"),
    "reject": ('for (n in 1:N) { if (n > U) reject("too far"); y[n] ~ normal(p, s); }', "a branch"),
    "choice": ("for (n in 1:N) y[n] ~ normal(b[n] ? p : q, s);", "`?:`"),
    "number of the iteration": ("for (n in 1:N) y[n] ~ normal(p * n, s);", "n itself"),
    "mixture": ("for (n in 1:N) target += log_mix(.3, normal_lpdf(y[n] | p, s), std_normal_lpdf(y[n]));", "one number"),
    "weights": ("for (n in 1:N) target += x[n] * normal_lpdf(y[n] | p, s);", "weight of its own"),
    "target read": ("for (n in 1:N) { y[n] ~ normal(p, s); if (target() < -1e9) target += 1; }", "reads the target"),
    "profile": ('for (n in 1:N) { profile("a") { y[n] ~ normal(p, s); } }', "profile"),
    "int arithmetic": ("for (n in 1:N) y[n] ~ normal(p * (k[n] * 2), s);", "arrays of ints"),
    "array of vectors": ("for (n in 1:N) y[n] ~ normal(dot_product(V[n], beta), s);", "do not make a matrix"),
    "local container": ("for (n in 1:N) { vector[K] v = V[n] * p; target += v; }", "declared in the loop"),
    "strided": ("for (n in 1:2) y[n * 2] ~ normal(p, s);", "neither the iteration's number"),
    "truncated": ("for (n in 1:N) y[n] ~ normal(p, s) T[-1, ];", "a branch"),
    "stays between": (
        "vector[N] u; vector[N] v; for (n in 1:N) { u[n] = p * x[n]; if (b[n]) u[n] = 1; v[n] = u[n]; } target += v;",
        "a branch",
    ),
    "both sides": (
        "vector[N] u = x; vector[N] v = x; for (n in 1:N) {"
        " if (b[n]) u[n] = p; v[n] = u[n] * q; if (k[n]) v[n] = 2; } target += v;",
        "both before and after",
    ),
}  # fmt: skip

BLOCKS = {
    "transformed parameters": (
        "transformed parameters { vector[N] mu; for (n in 1:N) mu[n] = p + q * x[n]; }"
        " model { for (n in 1:N) y[n] ~ normal(mu[n], s); }"
    ),
    "generated quantities": (
        "model { } generated quantities { vector[N] mu; vector[N] v; real m = 0;"
        " for (n in 1:N) { mu[n] = p + q * x[n]; v[n] = normal_rng(mu[n], s); m += mu[n]; }"
        " array[N] real c; for (n in 1:N) c[n] = a[n]; }"
    ),
    "error in generated quantities": (
        "model { } generated quantities { vector[N] mu; print(1); for (n in 1:N) mu[n] = z[t[n]]; print(2); }"
    ),
    "user's function": (
        "model { for (n in 1:N) y[n] ~ normal(x[n], s); target += f(x, p); }",
        "functions { real f(vector v, real m) { int n1 = size(v); vector[n1] u; real h = 0;"
        " for (i in 1:n1) u[i] = v[i] * m; for (i in 1:size(v)) h += u[i] * v[i]; return h; } }",
    ),
    "brms": (
        "model { vector[N] mu = p + X * beta; for (n in 1:N) { mu[n] += z[J[n]] * a[n] + z[J[n]] * x[n]; }"
        " y ~ normal(mu, s); z ~ std_normal(); }"
    ),
}

TRANSFORMED_DATA = {
    "size reassigned": (
        "transformed data { int m = 2; vector[m] v; m = 3; for (n in 1:m) v[n] = n; }"
    ),
    "size reassigned before": (
        "transformed data { int m = 2; m = 3; vector[m] v; vector[m] u = rep_vector(2, m);"
        " for (n in 1:m) v[n] = u[n] * 2; print(v); }"
    ),
    "error": "transformed data { vector[N] v; for (n in 1:N) v[n] = y[t[n]]; print(v); }",
    "harmless": "transformed data { vector[N] v; for (n in 1:N) v[n] = exp(y[n]) * 2; print(v); }",
    "in a loop": (
        "transformed data { int m = 0; for (i in 1:2) { m += i; vector[m] v; for (n in 1:m) v[n] = y[m]; print(v); } }"
    ),
}  # fmt: skip


def _vectorised(text: str) -> tuple[str, list[str]]:
    """The program's text after the pass, and the pass's remarks."""
    source = Source(text, "model.stan")
    program = parse_program(source)
    check_program(program, source)
    module = lower_program(program, source)
    with collect_remarks() as remarks:
        LoopVectorization().apply(Context(), module)
    module.verify()
    inside = set(ops_within(module))
    users = {use.operation for op in inside for result in op.results for use in result.uses}
    assert users <= inside, "ops that are not in the program use what is in it"
    return print_module(module), [str(remark) for remark in remarks]


def _check(text: str) -> None:
    differences = validation.compare(text, DATA, PASS, numerics=validation.CLOSE)
    assert not differences, "\n".join(differences)


def _model(statements: str) -> str:
    return f"{HEAD}model {{ {statements} }}\n"


@pytest.mark.parametrize("name", WHOLE)
def test_whole(name: str) -> None:
    _check(_model(WHOLE[name]))


@pytest.mark.parametrize("name", STAYS)
def test_stays(name: str) -> None:
    statements, reason = STAYS[name]
    text, remarks = _vectorised(_model(statements))
    assert any("not done" in remark and reason in remark for remark in remarks), "\n".join(remarks)
    assert "for (n in" in text
    _check(_model(statements))


@pytest.mark.parametrize("name", BLOCKS)
def test_other_blocks(name: str) -> None:
    blocks = BLOCKS[name]
    _check(HEAD + blocks if isinstance(blocks, str) else blocks[1] + HEAD + blocks[0])


@pytest.mark.parametrize("name", TRANSFORMED_DATA)
def test_transformed_data(name: str) -> None:
    _check(HEAD.replace("parameters {", f"{TRANSFORMED_DATA[name]}\nparameters {{") + "model { p ~ normal(0, 1); }\n")


def test_what_was_not_taken_is_forgotten() -> None:
    # Statements that were written for all iterations in vain: later passes found their reads among the uses of v.
    _, remarks = _vectorised(_model("vector[2] v; for (n in 1:2) { v[n] = v[3 - n] * p; }"))
    assert any("not done" in remark for remark in remarks)
    for bound in ("L + U", "L"):
        _vectorised(_model(f"array[9] real v; for (n in 1:{bound}) {{ v[n] = exp(y[1]) * v[L]; print(v); }}"))


def test_no_loop_is_left() -> None:
    kept = {
        "computed gather",
        "nested",
        "nested rows",
        "nested reaching",
        "row and vector",
        "rows as wholes",
        "rows and scales",
        "scalar and vector",
        "groups",
        "diagonal",
        "bound assigned in loop",
    }
    for name, statements in WHOLE.items():
        text, remarks = _vectorised(_model(statements))
        assert ("for (" in text) == (name in kept), "\n".join((name, text, *remarks))


def test_static_matrices() -> None:
    """The brms model: `mu` is assigned whole, in its declaration and once more."""
    text, _ = _vectorised(HEAD + str(BLOCKS["brms"]))
    assert "mu = mu + (z[J] .* to_vector(a) + z[J] .* x);" in text
    assert "mu[" not in text


@pytest.mark.parametrize("scale", ["s", "p - 50"])
def test_empty_data(scale: str) -> None:
    """Without an observation nothing is checked."""
    program = f"""
data {{ int<lower=0> N; vector[N] y; matrix[N, 2] X; }}
parameters {{ real p; real<lower=0> s; vector[3] b; }}
model {{ for (n in 1:N) {{ y[n] ~ normal(X[n] * b, {scale}); }} }}
"""
    data = {"N": 0, "y": [], "X": []}
    assert not validation.compare(program, data, PASS, numerics=validation.CLOSE)
    assert math.isfinite(StanModel(program, data).log_density(np.array([0.1, 0.2, 0.3, 0.4, 0.5])))
    with pytest.raises(Rejection):
        StanModel(program.replace("X[n] * b", "0"), {"N": 1, "y": [1.0], "X": [[1, 2]]}).log_density(
            np.array([0.1, -1e6, 0.3, 0.4, 0.5])
        )


@pytest.mark.parametrize("statement", ["target += -log(s);", "{ y[n] ~ std_normal(); target += 2 * (1 - log(s)); }"])
def test_what_is_infinite_and_not_added(statement: str) -> None:
    """A sum of no terms is 0, also where each of them would be infinite."""
    data = "data { int<lower=0> N; vector[N] y; } parameters { real<lower=0> s; }"
    program = f"{data} model {{ for (n in 1:N) {statement} }}"
    for level in range(4):
        value, slopes = StanModel(program, {"N": 0, "y": []}, opt_level=level).log_density_gradient([-750.0])
        assert (value, slopes.tolist()) == (-750.0, [1.0])
