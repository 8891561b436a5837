"""Pullbacks of decompositions where eigenvalues, singular values or pivots are equal, nearly equal or zero.

What is differentiated does not depend on which of the possible eigenvectors or singular vectors were found, so its
derivative is known in closed form, and is as well-conditioned as the function.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernel_calls import column_major, matrix, positive_definite, pull_back, random, run
from numpy.typing import NDArray

Floats = NDArray[Any]


def smooth_kernel(n: int, jitter: float) -> Floats:
    """exp(-(i - j)^2 / 40) with `jitter` on the diagonal: most eigenvalues lie within rounding of it."""
    x = np.arange(n)
    return np.exp(-((x[:, None] - x[None, :]) ** 2) / 40.0) + jitter * np.eye(n)


def pulled_resolvent(a: Floats, b: Floats) -> Floats:
    """The adjoint of A for f(A) = tr(B (A + I)^-1) = sum of (V' B V)_ii / (w_i + 1), through its eigenvectors."""
    n = len(a)
    _, vectors, values = run("eigendecompose_sym", [a], {"n": n})
    v = matrix(vectors, n, n)
    inside = v.T @ b @ v
    vectors_adj = column_major((b + b.T) @ v / (values + 1))
    values_adj = -np.diag(inside) / (values + 1) ** 2
    (adjoint,) = pull_back("eigendecompose_sym", [a], {"n": n}, [vectors_adj, values_adj], [True])
    return matrix(adjoint, n, n)


def resolvent_adjoint(a: Floats, b: Floats) -> Floats:
    """The same in closed form: -(A + I)^-1 B (A + I)^-1, made symmetric."""
    inverse = np.linalg.inv(a + np.eye(len(a)))
    return -inverse @ (b + b.T) / 2 @ inverse


@pytest.mark.parametrize("jitter", [1e-5, 1e-9, 0.0])
def test_clustered_eigenvalues(jitter: float) -> None:
    """Along changes of A that the cluster does not feel, the gradient keeps its digits."""
    n = 30
    a, b = smooth_kernel(n, jitter), random(3, n, n)
    adjoint, expected = pulled_resolvent(a, b), resolvent_adjoint(a, b)
    x = np.arange(n)
    for scale in (10.0, 40.0, 200.0):
        direction = np.exp(-((x[:, None] - x[None, :]) ** 2) / scale)
        smooth = a @ direction @ a  # its part within the cluster is as small as the eigenvalues are
        assert np.sum(adjoint * smooth) == pytest.approx(np.sum(expected * smooth), rel=1e-9)
    assert np.sum(adjoint * a) == pytest.approx(np.sum(expected * a), rel=1e-9)
    np.testing.assert_allclose(adjoint, adjoint.T, atol=1e-13 * np.max(np.abs(adjoint)))


def test_equal_blocks() -> None:
    """Eigenvalues of equal blocks are equal to the last bit: within the blocks the gradient is right, and what it is
    between them is not known."""
    block = positive_definite(1, 3)
    a, b = np.kron(np.eye(2), block), random(5, 6, 6)
    adjoint, expected = pulled_resolvent(a, b), resolvent_adjoint(a, b)
    within = np.kron(np.eye(2), np.ones((3, 3))).astype(bool)
    np.testing.assert_allclose(adjoint[within], expected[within], rtol=1e-10)
    assert np.isnan(adjoint[~within]).all()


@pytest.mark.parametrize("n", [1, 2, 5])
def test_functions_of_equal_eigenvalues(n: int) -> None:
    """The sum of the eigenvalues, all of them equal."""
    a = 3 * np.eye(n)
    (adjoint,) = pull_back("eigenvalues_sym", [a], {"n": n}, [np.ones(n), None], [True])
    np.testing.assert_array_equal(matrix(adjoint, n, n), np.eye(n))
    diagonal = np.diag(np.arange(1.0, n + 1))  # no eigenvector of a multiple of I is coupled by a diagonal matrix
    np.testing.assert_allclose(pulled_resolvent(a, diagonal), resolvent_adjoint(a, diagonal), rtol=1e-14)


SINGULAR_VALUES = {
    "close": [2.0, 2.0 * (1 + 3e-14), 1.0, 0.5],
    "small": [1.0, 1e-9, 1e-9 * (1 + 1e-8), 1e-12],
    "small and close": [1.0, 1e-7, 1e-7 * (1 + 1e-13), 1e-7 * (1 - 1e-13)],
}


@pytest.mark.parametrize("name", sorted(SINGULAR_VALUES))
def test_clustered_singular_values(name: str) -> None:
    """f(A) = sum(B .* A (A'A + I)^-1), along changes that keep close singular values together."""
    k = 4
    left, _ = np.linalg.qr(random(1, k, k))
    right, _ = np.linalg.qr(random(2, k, k))
    a, b = left * SINGULAR_VALUES[name] @ right.T, random(3, k, k)
    _, s, u, v = run("svd", [a], {"m": k, "n": k})
    u, v = matrix(u, k, k), matrix(v, k, k)
    g, slope = s / (1 + s**2), (1 - s**2) / (1 + s**2) ** 2
    weights = [slope * np.einsum("ik,ij,jk->k", u, b, v), column_major(b @ v * g), column_major(b.T @ u * g)]
    (adjoint,) = pull_back("svd", [a], {"m": k, "n": k}, weights, [True])
    inverse = np.linalg.inv(a.T @ a + np.eye(k))
    for direction in (a, a @ a.T @ a):
        change = direction @ inverse - a @ inverse @ (direction.T @ a + a.T @ direction) @ inverse
        actual = np.sum(matrix(adjoint, k, k) * direction)
        assert actual == pytest.approx(np.sum(b * change), rel=1e-9)


def test_unused_vectors_of_zero_singular_values() -> None:
    """A vector of a singular value of 0 that nothing depends on makes no NaN."""
    a = np.zeros((4, 3))
    a[0, 0], a[1, 1] = 2.0, 1.0
    u_adj = np.zeros((4, 3))
    u_adj[:, :2] = random(1, 4, 2)
    (adjoint,) = pull_back("svd", [a], {"m": 4, "n": 3}, [np.ones(3), column_major(u_adj), None], [True])
    assert np.isfinite(matrix(adjoint, 4, 3)[:, :2]).all()


def cofactors(a: Floats) -> Floats:
    n = len(a)
    minors = [[np.linalg.det(np.delete(np.delete(a, i, 0), j, 1)) for j in range(n)] for i in range(n)]
    return np.array(minors).reshape(n, n) * (-1.0) ** np.add.outer(np.arange(n), np.arange(n))


@pytest.mark.parametrize(
    "a",
    [
        np.zeros((1, 1)),
        np.zeros((3, 3)),
        np.array([[1.0, 2.0], [2.0, 4.0]]),
        np.array([[0.0, 0.0, 1.0], [0.0, 3.0, 2.0], [0.0, 5.0, 4.0]]),
        np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]),
        np.outer([1.0, 2.0, 3.0, 4.0], [1.0, 1.0, 2.0, 2.0]),
        1e-200 * np.array([[1.0, 2.0], [2.0, 4.0]]),
        np.diag([1e100, 1e-160, 3e80]),
    ],
    ids=["zero-1", "zero-3", "rank-1", "zero-column", "nearly", "rank-1-of-4", "tiny", "wide"],
)
def test_determinant_of_singular_matrices(a: Floats) -> None:
    (adjoint,) = pull_back("determinant", [a], {"n": len(a)}, [np.ones(1)], [True])
    expected = cofactors(a)
    scale = max(np.max(np.abs(expected)), np.max(np.abs(a)) ** (len(a) - 1), 1e-40)
    np.testing.assert_allclose(matrix(adjoint, len(a), len(a)), expected, atol=1e-13 * scale, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1e8, 1e150, 1e300])
def test_matrix_exp_is_linear_in_the_adjoint(scale: float) -> None:
    a, weights = random(1, 4, 4), random(2, 4, 4)
    (plain,) = pull_back("matrix_exp", [a], {"n": 4}, [column_major(weights)], [True])
    (scaled,) = pull_back("matrix_exp", [a], {"n": 4}, [column_major(weights) * scale], [True])
    np.testing.assert_allclose(scaled / scale, plain, rtol=1e-12)
