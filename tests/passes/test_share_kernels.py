"""`share-kernels`: one decomposition where several of its parts are asked for, and nothing else than before."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

pytestmark = pytest.mark.usefixtures("quick_code")

HEAD = "data { int n; matrix[n, n] A; } parameters { real<lower=0> s; vector[n] z; } model { "
SYMMETRIC = "matrix[n, n] S = add_diag(A * s, 1 + s); "

SHARED = {
    "values and vectors": (
        SYMMETRIC + "target += -dot_self(eigenvectors_sym(S)' * z ./ eigenvalues_sym(S)); ", ["eigendecompose_sym"],
    ),
    "vectors, then values in a branch": (
        SYMMETRIC + "target += -dot_self(eigenvectors_sym(S) * z); if (s > 0.1) target += -sum(eigenvalues_sym(S)); ",
        ["eigendecompose_sym"],
    ),
    "parts of a singular value decomposition": (
        "matrix[n, n] B = A + s * A'; target += -dot_self((svd_U(B) .* svd_V(B)) * z) - sum(svd_U(B) * z); ", ["svd"],
    ),
    "the same factor twice": (
        SYMMETRIC + "target += -dot_self(cholesky_decompose(S) * z); target += -sum(cholesky_decompose(S) * z); ",
        ["cholesky_decompose"],
    ),
    "results of which a copy changes": (
        SYMMETRIC + "matrix[n, n] V = eigenvectors_sym(S); V[1, 1] += s; target += -sum(V * z); "
        "target += -sum(eigenvectors_sym(S) * z) - sum(eigenvalues_sym(S)); ",
        ["eigendecompose_sym"],
    ),
}  # fmt: skip

APART = {
    "an input that changes": (
        SYMMETRIC + "vector[n] w = eigenvalues_sym(S); S[1, 1] += s; target += -sum(w) - sum(eigenvectors_sym(S) * z); "
    ),
    "one in a loop that changes its input": (
        SYMMETRIC + "for (i in 1 : 2) { target += -sum(eigenvalues_sym(S)); S[1, 1] += s; } "
        "target += -sum(eigenvectors_sym(S) * z); "
    ),
}


def decompositions(program: str, level: int) -> list[str]:
    """The kernels of the forward sweep, in order."""
    unit = Compiler(program, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    calls = [line.partition("@ulam_")[2].partition("(")[0] for line in unit.splitlines() if " call " in line]
    calls = [call.removesuffix("_fast") for call in calls]
    return [call for call in calls if re.fullmatch(r"eigen[a-z_]+sym|svd|cholesky_decompose", call)]


@pytest.mark.parametrize("body", [body for body, _ in SHARED.values()] + [*APART.values()])
def test_gradients_are_those_of_level_1(body: str) -> None:
    generator = np.random.default_rng(3)
    n = 4
    A = generator.normal(size=(n, n))
    data = {"n": n, "A": A @ A.T}
    program = HEAD + body + "s ~ normal(1, 1); z ~ std_normal(); }"
    plain, shared = (ulam.StanModel(program, data, opt_level=level) for level in (1, 3))
    for _ in range(3):
        point = generator.normal(size=n + 1)
        value, gradient = plain.log_density_gradient(point)
        found, found_gradient = shared.log_density_gradient(point)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", SHARED)
def test_one_decomposition(name: str) -> None:
    body, expected = SHARED[name]
    program = HEAD + body + "}"
    assert decompositions(program, 3) == expected
    assert len(decompositions(program, 1)) > 1


@pytest.mark.parametrize("name", APART)
def test_what_is_not_the_same_stays(name: str) -> None:
    program = HEAD + APART[name] + "}"
    assert sorted(decompositions(program, 3)) == sorted(decompositions(program, 1))
