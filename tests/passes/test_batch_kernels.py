"""`invariant-kernels`, `batch-kernels`: rows of several outcomes call their kernels once, and are what they were."""

from __future__ import annotations

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products, outcome
from xdsl.dialects import scf

import ulam
from ulam.dialects import rt
from ulam.passes.analysis.nesting import enclosing
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = """data { int N; int K; array[N] vector[K] y; int ask; }
parameters { vector[K] m; real<lower=0> t; matrix[K, K] A; matrix[K, N] w; matrix[N, K] v; vector[N] u; }
model {
  matrix[K, K] S = add_diag(tcrossprod(A), 0.5 + t);
"""
ROWS = {
    "vectors": "y ~ multi_normal(m, S);",
    "columns": "for (n in 1:N) col(w, n) ~ multi_normal(m, S);",
    "rows of a matrix": "for (n in 1:N) v[n] ~ multi_student_t(3 + t, m + y[n], S);",
    "a matrix of each row, the same": "for (n in 1:N) { matrix[K, K] C = A * A'; for (k in 1:K) C[k, k] += 1 + t; "
    "y[n] ~ multi_normal(m + w[ , n], C); }",
    "elements": "for (n in 1:N) { vector[K] r; for (k in 1:K) r[k] = w[k, n] * u[n]; "
    "r ~ multi_normal_cholesky(m, cholesky_decompose(S)); }",
    "a precision": "for (n in 1:N) y[n] ~ multi_normal_prec(m * u[n], S);",
    "equations": "for (n in 1:N) target += -dot_product(y[n], S \\ (m - w[ , n])) - log_determinant(S);",
    "equations of equations": "for (n in 1:N) { vector[K] z = mdivide_left_tri_low(cholesky_decompose(S), y[n] - m); "
    "target += -dot_self(mdivide_left_tri_low(cholesky_decompose(S), z .* z)); }",
    "a symmetric matrix": "for (n in 1:N) target += -dot_product(m, mdivide_left_spd(S, y[n] * u[n]));",
    "what is refused before": "for (n in 1:N) { u[n] ~ normal(0, t - 0.01); y[n] ~ multi_normal(m, S); }",
}
MIXTURES = {
    "covariances": "array[3] matrix[K, K] C; for (j in 1:3) C[j] = add_diag(S, j); for (n in 1:N) { vector[3] lp; "
    "for (j in 1:3) lp[j] = multi_normal_lpdf(y[n] | m * j, C[j]) - j; target += log_sum_exp(lp); }",
    "factors that components make": "for (n in 1:N) { array[3] real lp; "
    "for (j in 1:3) lp[j] = multi_normal_cholesky_lpdf("
    "col(w, n) | m * j, diag_pre_multiply(rep_vector(j + t, K), cholesky_decompose(S))); target += log_sum_exp(lp); }",
    "terms": "for (n in 1:N) for (j in 1:3) { matrix[K, K] C = add_diag(S, j); "
    "target += u[n] * dot_product(y[n], C \\ (m - j)); }",
}
APART = {
    "a row of the row before": "vector[K] r = m; for (n in 1:N) { r = mdivide_left_tri_low(cholesky_decompose(S), r) "
    "+ y[n]; target += -dot_self(r); }",
    "a matrix of its own": "for (n in 1:N) y[n] ~ multi_normal(m, add_diag(S, square(u[n])));",
    "rows that are left out": "for (n in 1:N) if (y[n, 1] > 0) y[n] ~ multi_normal(m, S);",
    "a row that changes behind": "for (n in 1:N) { vector[K] r = y[n]; for (j in 1:2) "
    "target += multi_normal_lpdf(r | m * j, add_diag(S, j)); r += m; target += -dot_self(r); }",
    "a matrix that changes": "for (n in 1:N) { y[n] ~ multi_normal(m, S); S[1, 1] += t; }",
}
NUMBERS = np.random.default_rng(3)
ALL = [(rows, size) for rows in (ROWS | MIXTURES | APART).values() for size in ((1, 1), (5, 3))]


def program(rows: str) -> str:
    return HEAD + rows + " u ~ std_normal(); to_vector(v) ~ std_normal(); }"


@pytest.mark.parametrize(("rows", "size"), ALL)
def test_outcomes_are_those_of_level_0(rows: str, size: tuple[int, int]) -> None:
    """Where a mean or an outcome is not finite, too."""
    data = {"N": size[0], "K": size[1], "y": NUMBERS.normal(size=size).tolist(), "ask": 0}
    first, second = (ulam.StanModel(program(rows), data, opt_level=level) for level in (0, 3))
    for at in (0, first.param_unc_num() - 1):
        assert_same_outcomes(first, second, at)
    assert_same_products(first, second, np.random.default_rng(5))


@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
def test_without_rows_loops_refuse_nothing(rows: str) -> None:
    """The matrix has no factor where t is -1: `0.5 + t` is what its diagonal has."""
    text, data = program(rows).replace("real<lower=0> t", "real t"), {"N": 0, "K": 2, "y": [], "ask": 0}
    point = np.array([0.0, 0.0, -1.0, *np.zeros(4)])
    first, second = (outcome(ulam.StanModel(text, data, opt_level=level), point) for level in (0, 3))
    assert isinstance(first, str) == isinstance(second, str) == ("for" not in rows)
    assert isinstance(second, str) or not second[1].any()


@pytest.mark.parametrize("rows", ROWS.values(), ids=list(ROWS))
def test_kernels_are_called_once(rows: str) -> None:
    compiler = Compiler(program(rows), "model.stan", CompileOptions(3))
    module = compiler.module_at("lowered", "gradient_propto")
    kernels = [op for op in evaluate_of(module, "").walk() if isinstance(op, rt.KernelOp)]
    assert kernels
    assert not [op.function.data for op in kernels if enclosing(op, scf.ForOp)]


@pytest.mark.parametrize("rows", MIXTURES.values(), ids=list(MIXTURES))
def test_kernels_are_called_for_each_component(rows: str) -> None:
    compiler = Compiler(program(rows), "model.stan", CompileOptions(3))
    module = compiler.module_at("lowered", "gradient_propto")
    loops = [enclosing(op, scf.ForOp) for op in evaluate_of(module, "").walk() if isinstance(op, rt.KernelOp)]
    around = [enclosing(loop, scf.ForOp) for loop in loops if loop is not None]
    assert around and not any(around)


def test_sizes_that_differ_are_told_before_a_kernel_reads() -> None:
    """The matrix is smaller than what is solved with it says: `ask` in place of K."""
    text = """data { int N; int K; int ask; array[N] vector[K] y; }
    parameters { matrix[ask, ask] A; real<lower=0> t; }
    model { for (n in 1:N) y[n] ~ multi_normal(rep_vector(0, K), add_diag(tcrossprod(A), 1 + t)); }"""
    data = {"N": 3, "K": 400, "ask": 2, "y": NUMBERS.normal(size=(3, 400)).tolist()}
    texts = []
    for level in (0, 3):
        model = ulam.StanModel(text, data, opt_level=level)
        with pytest.raises(ulam.UlamError) as raised:
            model.log_density_gradient(np.zeros(5))
        texts.append(str(raised.value))
    assert texts[0] == texts[1]
