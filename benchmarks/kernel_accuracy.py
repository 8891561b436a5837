"""Gradients of functions of matrices against extended precision, at ill-conditioned and degenerate points.

    python benchmarks/kernel_accuracy.py [--only NAME]            (needs mpmath)

For each function and matrix: the largest error of a gradient's entry, relative to the largest entry; how far the exact
gradient moves if every entry of the matrix moves by half a unit in the last place (the largest of three such moves);
and the quotient of the two. A quotient far above 100 is an error that the condition of the function does not explain.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np

import ulam

DIGITS = 90
MOVES = 3
Function = Callable[[Any], Any]

WEIGHTS = np.cos(1.3 * np.arange(25.0)).reshape(5, 5)


def weighted(x: Any) -> Any:
    """The sum of an mpmath matrix's entries times WEIGHTS."""
    return mp.fsum(mp.mpf(float(WEIGHTS[i, j])) * x[i, j] for i in range(x.rows) for j in range(x.cols))


def symmetrized(a: Any) -> Any:
    return (a + a.T) / 2


def svd_sum(a: Any) -> Any:
    values = mp.eigsy(a.T * a, eigvals_only=True)
    return mp.fsum((i + 1) * mp.sqrt(v) for i, v in enumerate(sorted(values, reverse=True)))


def eigenvalue_sum(a: Any) -> Any:
    values = mp.eigsy(symmetrized(a), eigvals_only=True)
    return mp.fsum((i + 1) * v for i, v in enumerate(sorted(values)))


def solved(a: Any, transposed: bool = False) -> Any:
    """A^-1 B, or A^-1 B'."""
    b = mp.matrix(WEIGHTS[: a.rows, : a.rows].tolist())
    return a**-1 * (b.T if transposed else b)


def lower(a: Any) -> Any:
    """The triangle that is read of a factor."""
    return mp.matrix([[a[i, j] if j <= i else mp.mpf(0) for j in range(a.rows)] for i in range(a.rows)])


def normal(a: Any) -> Any:
    """The log density of a multivariate normal with covariance A."""
    n = a.rows
    d = mp.matrix([mp.mpf(float(WEIGHTS[i, 0])) - mp.mpf(float(WEIGHTS[i, 1])) for i in range(n)])
    return -((d.T * a**-1 * d)[0] + mp.log(mp.det(a)) + n * mp.log(2 * mp.pi)) / 2


# name: (Stan expression, the same in mpmath, symmetric?)
FUNCTIONS: dict[str, tuple[str, Function, bool]] = {
    "inverse": ("sum(B .* inverse(A))", lambda a: weighted(a**-1), False),
    "inverse_spd": ("sum(B .* inverse_spd(A))", lambda a: weighted(symmetrized(a) ** -1), True),
    "mdivide_left": ("sum(B .* (A \\ B))", lambda a: weighted(solved(a)), False),
    "mdivide_left_spd": ("sum(B .* mdivide_left_spd(A, B))", lambda a: weighted(solved(symmetrized(a))), True),
    "cholesky": ("sum(B .* cholesky_decompose(A))", lambda a: weighted(mp.cholesky(symmetrized(a))), True),
    "log_determinant": ("log_determinant(A)", lambda a: mp.log(abs(mp.det(a))), False),
    "log_determinant_spd": ("log_determinant_spd(A)", lambda a: mp.log(mp.det(symmetrized(a))), True),
    "determinant": ("determinant(A)", mp.det, False),
    "matrix_exp": ("sum(B .* matrix_exp(A))", lambda a: weighted(mp.expm(a)), False),
    "tcrossprod": ("sum(B .* tcrossprod(A))", lambda a: weighted(a * a.T), False),
    "eigenvalues": ("dot_product(linspaced_vector(n, 1, n), eigenvalues_sym(A))", eigenvalue_sum, True),
    "singular_values": ("dot_product(linspaced_vector(n, 1, n), singular_values(A))", svd_sum, False),
    "multi_normal": (
        "multi_normal_lpdf(col(B, 1) | col(B, 2), A)",
        lambda a: normal(symmetrized(a)),
        True,
    ),
    "resolvent_by_eigenvectors": (
        "sum(B .* (eigenvectors_sym(A) * diag_pre_multiply(inv(1 + eigenvalues_sym(A)), eigenvectors_sym(A)')))",
        lambda a: weighted((symmetrized(a) + mp.eye(a.rows)) ** -1),
        True,
    ),
    "mdivide_right": ("sum(B .* (B / A))", lambda a: weighted((solved(a.T, True)).T), False),
    "mdivide_right_spd": (
        "sum(B .* mdivide_right_spd(B, A))",
        lambda a: weighted(solved(symmetrized(a), True).T),
        True,
    ),
    "mdivide_left_tri_low": ("sum(B .* mdivide_left_tri_low(A, B))", lambda a: weighted(solved(lower(a))), False),
    "mdivide_right_tri_low": (
        "sum(B .* mdivide_right_tri_low(B, A))",
        lambda a: weighted(solved(lower(a).T, True).T),
        False,
    ),
    "chol2inv": ("sum(B .* chol2inv(A))", lambda a: weighted((lower(a) * lower(a).T) ** -1), False),
    "crossprod": ("sum(B .* crossprod(A))", lambda a: weighted(a.T * a), False),
    "multiply": ("sum(B .* (A * B))", lambda a: weighted(a * mp.matrix(WEIGHTS[: a.rows, : a.rows].tolist())), False),
    "svd": (
        "sum(B .* (svd_U(A) * diag_pre_multiply(singular_values(A) ./ (1 + square(singular_values(A))), svd_V(A)')))",
        lambda a: weighted(a * (a.T * a + mp.eye(a.rows)) ** -1),
        False,
    ),
    "qr": ("sum(B .* qr_thin_R(A))", lambda a: weighted(mp.cholesky(a.T * a).T), False),
}


# differentiable kernel: the function above that calls it
KERNELS = {
    "multiply": "multiply",
    "tcrossprod": "tcrossprod",
    "crossprod": "crossprod",
    "cholesky_decompose": "cholesky",
    "chol2inv": "chol2inv",
    "normal_terms": "multi_normal",
    "mdivide_left_tri_low": "mdivide_left_tri_low",
    "mdivide_right_tri_low": "mdivide_right_tri_low",
    "mdivide_left": "mdivide_left",
    "mdivide_right": "mdivide_right",
    "mdivide_left_spd": "mdivide_left_spd",
    "mdivide_right_spd": "mdivide_right_spd",
    "inverse": "inverse",
    "inverse_spd": "inverse_spd",
    "determinant": "determinant",
    "log_determinant": "log_determinant",
    "log_determinant_spd": "log_determinant_spd",
    "eigenvalues_sym": "eigenvalues",
    "eigenvectors_sym": "resolvent_by_eigenvectors",
    "singular_values": "singular_values",
    "svd": "svd",
    "qr_thin": "qr",
    "matrix_exp": "matrix_exp",
}

# a kernel without rounding, or one whose pullback another row has: the test that has it
ELSEWHERE = {
    "sort_asc": "tests/library/test_kernels.py",
    "sort_desc": "tests/library/test_kernels.py",
    "eigendecompose_sym": "tests/library/test_kernel_degeneracy.py",
    "gaussian_dlm_filter": "tests/library/test_dynamic_linear_model.py",
    "reduced_squares": "tests/layouts/test_reduced_squares.py",
    "kind_squares": "tests/layouts/test_kind_squares.py",
    "form_values": "tests/layouts/test_form_values.py",
    "design_product": "tests/layouts/test_design_products.py",
    "design_products": "tests/layouts/test_design_products.py",
    "evaluate_pieces": "tests/runtime/test_pieces.py",
    "log_recursion": "tests/library/test_log_recursion.py",
}


def matrices(symmetric: bool) -> Iterator[tuple[str, np.ndarray]]:
    """Well- and ill-conditioned matrices, tiny and huge ones, and those of one row."""
    generator = np.random.default_rng(5)
    plain = generator.normal(size=(4, 4))
    hilbert = 1 / (1 + np.add.outer(np.arange(5.0), np.arange(5.0)))
    x = np.arange(5.0)
    smooth = np.exp(-((x[:, None] - x[None, :]) ** 2) / 200) + 1e-9 * np.eye(5)
    spread = np.diag([1e-8, 1.0, 1e4, 1e8]) @ (np.eye(4) + 0.1) @ np.diag([1e-8, 1.0, 1e4, 1e8])
    yield "one", np.array([[0.7]])
    yield "plain", plain @ plain.T + np.eye(4) if symmetric else plain
    yield "hilbert", hilbert
    yield "smooth kernel", smooth
    yield "spread scales", spread
    yield "tiny", (plain @ plain.T + np.eye(4)) * 2.0**-500
    yield "huge", (plain @ plain.T + np.eye(4)) * 2.0**250
    yield "nearly equal", np.eye(4) + 1e-13 * (plain + plain.T)
    if not symmetric:
        yield "nearly singular", np.outer(np.arange(1.0, 5), np.arange(2.0, 6)) + 1e-11 * plain
        yield "not normal", np.triu(np.full((4, 4), 1e5), 1) + np.diag([1.0, -1, 2, -2])


def gradient(f: Function, a: Any, symmetric: bool) -> Any:
    """All derivatives, by central differences in extended precision; of a symmetric matrix by both entries together."""
    n = a.rows
    out = mp.matrix(n, n)
    size = min(abs(a[i, j]) for i in range(n) for j in range(n) if a[i, j] != 0)
    step = size * mp.mpf(10) ** (-DIGITS // 3)
    for i in range(n):
        for j in range(i + 1) if symmetric else range(n):
            high, low = a.copy(), a.copy()
            for p, q in {(i, j), (j, i)} if symmetric else {(i, j)}:
                high[p, q] += step
                low[p, q] -= step
            out[i, j] = (f(high) - f(low)) / (2 * step)
    return out


def moved(a: np.ndarray, symmetric: bool, seed: int) -> Any:
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], a.shape)
    signs = np.tril(signs) + np.tril(signs, -1).T if symmetric else signs
    n = len(a)
    return mp.matrix(
        [[mp.mpf(float(a[i, j])) * (1 + float(signs[i, j]) * mp.mpf(2) ** -53) for j in range(n)] for i in range(n)]
    )


def largest(x: Any) -> Any:
    return max(abs(x[i, j]) for i in range(x.rows) for j in range(x.cols))


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of functions begin so")
    options = parser.parse_args()
    mp.mp.dps = DIGITS
    for name, (expression, function, symmetric) in FUNCTIONS.items():
        if not name.startswith(options.only):
            continue
        program = (
            f"data {{ int n; matrix[n, n] B; }} parameters {{ matrix[n, n] A; }} model {{ target += {expression}; }}"
        )
        for kind, a in matrices(symmetric):
            n = len(a)
            a = (a + a.T) / 2 if symmetric else a
            model = ulam.StanModel(program, data={"n": n, "B": WEIGHTS[:n, :n].tolist()})
            try:
                found = model.log_density_gradient(a.ravel(order="F"), propto=False)[1].reshape(n, n, order="F")
                exact = gradient(function, mp.matrix(a.tolist()), symmetric)
                others = [gradient(function, moved(a, symmetric, s), symmetric) for s in range(MOVES)]
            except (ulam.UlamError, ValueError, ZeroDivisionError) as problem:
                print(f"{name:28}{kind:18}{type(problem).__name__}: {str(problem)[:80]}", flush=True)
                continue
            if symmetric:
                found = np.tril(found) + np.triu(found, 1).T
            scale = largest(exact)
            if not 1e-290 < scale < 1e300:
                print(f"{name:28}{kind:18}beyond doubles: {mp.nstr(scale, 3)}", flush=True)
                continue
            if not np.isfinite(found).all():
                print(f"{name:28}{kind:18}not finite; exact {mp.nstr(scale, 3)}", flush=True)
                continue
            error = largest(exact - mp.matrix(found.tolist())) / scale
            condition = max(largest(exact - other) for other in others) / scale
            print(f"{name:28}{kind:18}error {mp.nstr(error, 2):10} condition {mp.nstr(condition, 2):10} "
                  f"quotient {mp.nstr(error / max(condition, mp.mpf(2) ** -53), 2)}", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
