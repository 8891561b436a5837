"""The kernels of the C runtime against NumPy and SciPy, every pullback against differences of the forward kernel."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import kernel_calls
import numpy as np
import pytest
from kernel_calls import (
    PULLBACKS,
    Floats,
    KernelError,
    close,
    column_major,
    conditioned,
    directional,
    lower,
    matrix,
    positive_definite,
    pull_back,
    random,
    run,
)

from ulam.library.kernels import FAST, KERNELS
from ulam.runtime.c_library import library

# ------------------------------------------------------------------------------------------------ the table itself


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernel_is_exported(name: str) -> None:
    kernel = KERNELS[name]
    for function in filter(None, (name, kernel.pullback)):
        assert getattr(library(), f"ulam_{function}")
        if function in FAST:
            assert getattr(library(), f"ulam_{function}_fast")
    sizes = {p.size for p in kernel.parameters if p.kind == "size"}
    for parameter in kernel.parameters:
        if parameter.is_buffer:
            assert set(re.findall(r"[a-z]\w*", parameter.size)) <= sizes | {"min", "value"}


# ------------------------------------------------------------------------------------------------ values


@pytest.fixture(params=["plain", "fast"], autouse=True)
def version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the kernels that have several, that of levels 0 to 2 and that of levels 3 and 4."""
    monkeypatch.setattr(kernel_calls, "fast", request.param == "fast")


SIZES = [0, 1, 2, 5, 31, 33, 70, 130]


PRODUCTS = [(1, 1, 1), (3, 4, 2), (7, 1, 5), (1, 9, 6), (6, 9, 1), (40, 3, 50), (64, 65, 66), (131, 70, 97),
            (200, 210, 190), (5, 0, 3), (0, 3, 2)]  # fmt: skip


EDGES = [*range(1, 18), 23, 24, 25, 31, 32, 33, 47, 48, 49, 72, 97]


def test_blocks_of_all_sizes() -> None:
    """Products, triangular systems and factors at the edges of vectors, blocks of registers, and blocks of caches."""
    for n in EDGES:
        for m, k in ((n, 7), (9, n), (n, n), (2, 300), (25, n)):
            a, b = random(m, m, k), random(n, k, n)
            *_, c = run("multiply", [a, b], {"m": m, "k": k, "n": n})
            close(matrix(c, m, n), a @ b, 1e-13)
            adjoint = random(k, m, n)
            of_a, of_b = pull_back("multiply", [a, b], {"m": m, "k": k, "n": n}, [column_major(adjoint)], [True, True])
            close(matrix(of_a, m, k), adjoint @ b.T, 1e-13)
            close(matrix(of_b, k, n), a.T @ adjoint, 1e-13)
        factor = lower(1, n)
        for m in (1, 2, 13, n):
            right = random(m, n, m)
            *_, x = run("mdivide_left_tri_low", [factor, right], {"n": n, "m": m})
            close(factor @ matrix(x, n, m), right, 1e-12)
            *_, x = run("mdivide_right_tri_low", [right.T, factor], {"n": n, "m": m})
            close(matrix(x, m, n) @ factor, right.T, 1e-12)
        *_, found = run("cholesky_decompose", [factor @ factor.T], {"n": n})
        close(matrix(found, n, n), np.linalg.cholesky(factor @ factor.T), 1e-12)


@pytest.mark.parametrize("n", [1, 5, 12, 30, 40])
@pytest.mark.parametrize("scale", [1e-300, 1e-285, 1e285, 1e300])
def test_cholesky_near_the_ends_of_the_numbers(n: int, scale: float) -> None:
    a = positive_definite(n, n)
    *_, found = run("cholesky_decompose", [a * scale], {"n": n})
    close(matrix(found, n, n) / np.sqrt(scale), np.linalg.cholesky(a), 1e-12)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.nan, np.inf])
@pytest.mark.parametrize(("n", "place"), [(1, 0), (3, 2), (11, 4), (31, 30), (70, 40)])
def test_pivots_that_are_none(n: int, place: int, bad: float) -> None:
    a = np.eye(n)
    a[place, place] = bad
    with pytest.raises(KernelError, match=rf"m is not positive definite \(pivot {place + 1} is -?[\w.]+\)"):
        run("cholesky_decompose", [a], {"n": n})


@pytest.mark.parametrize("n", [1, 8, 9, 16, 17, 32, 33, 65, 100])
def test_both_pullbacks_of_cholesky(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of all levels are the same function."""
    adjoint = column_major(random(n, n, n))
    found: list[Floats] = []
    for fast in (False, True):
        monkeypatch.setattr(kernel_calls, "fast", fast)
        found += pull_back("cholesky_decompose", [positive_definite(3, n)], {"n": n}, [adjoint], [True])
    close(found[1], found[0], 1e-11)


@pytest.mark.parametrize(("m", "k", "n"), PRODUCTS)
def test_multiply(m: int, k: int, n: int) -> None:
    a, b = random(1, m, k), random(2, k, n)
    *_, c = run("multiply", [a, b], {"m": m, "k": k, "n": n})
    close(matrix(c, m, n), a @ b, 1e-13)
    *_, c = run("tcrossprod", [a], {"m": m, "k": k})
    close(matrix(c, m, m), a @ a.T, 1e-13)
    *_, c = run("crossprod", [a], {"m": m, "k": k})
    close(matrix(c, k, k), a.T @ a, 1e-13)


@pytest.mark.parametrize("n", SIZES)
def test_cholesky(n: int) -> None:
    a = positive_definite(3, n)
    *_, factor = run("cholesky_decompose", [a], {"n": n})
    close(matrix(factor, n, n), np.linalg.cholesky(a), 1e-13)
    *_, log_det = run("log_determinant_spd", [a], {"n": n})
    close(log_det[0], np.linalg.slogdet(a)[1])
    *_, inverse = run("inverse_spd", [a], {"n": n})
    close(matrix(inverse, n, n), np.linalg.inv(a))
    *_, inverse = run("chol2inv", [np.linalg.cholesky(a)], {"n": n})
    close(matrix(inverse, n, n), np.linalg.inv(a))


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("m", [1, 4, 40])
def test_solving(n: int, m: int) -> None:
    triangle, general, spd = lower(4, n), conditioned(5, n), positive_definite(6, n)
    read = triangle + np.triu(np.full((n, n), 1e3), 1)  # the upper triangle must not matter
    left, right = random(7, n, m), random(8, m, n)
    for name, given, exact in [
        ("mdivide_left_tri_low", read, triangle), ("mdivide_left", general, general), ("mdivide_left_spd", spd, spd),
    ]:  # fmt: skip
        *_, x = run(name, [given, left], {"n": n, "m": m})
        close(matrix(x, n, m), np.linalg.solve(exact, left))
    for name, given, exact in [
        ("mdivide_right_tri_low", read, triangle), ("mdivide_right", general, general),
        ("mdivide_right_spd", spd, spd),
    ]:  # fmt: skip
        *_, x = run(name, [right, given], {"m": m, "n": n})
        close(matrix(x, m, n), np.linalg.solve(exact.T, right.T).T)


@pytest.mark.parametrize("n", SIZES)
def test_determinants_and_inverse(n: int) -> None:
    a = conditioned(9, n)[::-1].copy()
    *_, inverse = run("inverse", [a], {"n": n})
    close(matrix(inverse, n, n), np.linalg.inv(a))
    *_, log_det = run("log_determinant", [a], {"n": n})
    close(log_det[0], np.linalg.slogdet(a)[1])
    *_, det = run("determinant", [a], {"n": n})
    np.testing.assert_allclose(det[0], np.linalg.det(a), rtol=1e-11)


@pytest.mark.parametrize("n", SIZES)
def test_eigendecompose_sym(n: int) -> None:
    a = random(10, n, n)
    a = a + a.T
    _, vectors, values = run("eigendecompose_sym", [a], {"n": n})
    close(values, np.linalg.eigvalsh(a), 1e-13)
    v = matrix(vectors, n, n)
    close(v.T @ v, np.eye(n), 1e-13)
    close(v @ np.diag(values) @ v.T, a, 1e-13)
    close(run("eigenvalues_sym", [a], {"n": n})[1], values)


def test_eigenvectors_have_the_signs_of_stan() -> None:
    """Values of Stan Math 2.35; signs are free in mathematics, but users compare draws."""
    a = [[2.0, 0.3, -0.2], [0.3, 1.5, 0.4], [-0.2, 0.4, 1.0]]
    vectors = matrix(run("eigenvectors_sym", [a], {"n": 3})[1], 3, 3)
    expected = [
        [-0.2434209716879094, 0.33931635376531105, -0.9086311917438937],
        [0.5042022998083096, -0.7560147326925347, -0.41739880788024175],
        [-0.8285688090982701, -0.5597375599504196, 0.012945754911352136],
    ]
    close(vectors, expected, 1e-14)


@pytest.mark.parametrize("n", [79, 80, 81, 97, 113, 145])
def test_eigenvectors_at_the_edges_of_blocks(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes at which columns are reduced in blocks, and one more or less, of matrices that need few rotations or many.

    Below, both versions find the same rotations, so that vectors have the same signs; behind, rounding decides some.
    """
    full = random(11, n, n)
    basis = np.linalg.qr(full)[0]
    parted = full + full.T
    parted[: n // 2, n // 2 :] = parted[n // 2 :, : n // 2] = 0
    graded = basis @ np.diag(10.0 ** np.linspace(-12, 3, n)) @ basis.T
    symmetric = full + full.T
    for a in (symmetric, parted, (graded + graded.T) / 2, np.ones((n, n)), np.diag(full[0]), 1e-200 * symmetric):
        _, vectors, values = run("eigendecompose_sym", [a], {"n": n})
        v, scale = matrix(vectors, n, n), np.abs(a).max()
        close(values / scale, np.linalg.eigvalsh(a) / scale, 1e-12)
        close(v.T @ v, np.eye(n), 1e-12)
        close(a / scale @ v, v * (values / scale), 1e-12)
    both: list[Any] = []
    for fast in (False, True):
        monkeypatch.setattr(kernel_calls, "fast", fast)
        both.append(matrix(run("eigenvectors_sym", [symmetric], {"n": n})[1], n, n))
    signs = np.sign(np.sum(both[0] * both[1], axis=0))
    assert n >= 80 or np.all(signs == 1)
    close(both[0], both[1] * signs, 1e-9)


def test_eigenvalues_of_special_matrices() -> None:
    for a in (np.zeros((4, 4)), np.eye(5), np.diag([3.0, -1.0, 2.0]), np.ones((6, 6)), 1e-200 * np.ones((3, 3))):
        n = len(a)
        close(run("eigenvalues_sym", [a], {"n": n})[1], np.linalg.eigvalsh(a), 1e-13)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (5, 5), (9, 4), (4, 9), (40, 33), (3, 1), (1, 3), (0, 0)])
def test_svd_and_qr(m: int, n: int) -> None:
    a, k = random(11, m, n), min(m, n)
    _, s, u, v = run("svd", [a], {"m": m, "n": n})
    close(s, np.linalg.svd(a, compute_uv=False), 1e-13)
    close(matrix(u, m, k) @ np.diag(s) @ matrix(v, n, k).T, a, 1e-13)
    close(matrix(u, m, k).T @ matrix(u, m, k), np.eye(k), 1e-13)
    close(matrix(v, n, k).T @ matrix(v, n, k), np.eye(k), 1e-13)
    _, q, r = run("qr_thin", [a], {"m": m, "n": n})
    upper = matrix(r, k, n)
    close(matrix(q, m, k) @ upper, a, 1e-13)
    close(matrix(q, m, k).T @ matrix(q, m, k), np.eye(k), 1e-13)
    assert np.all(np.diag(upper) >= 0) and np.all(np.tril(upper, -1) == 0)


def test_svd_of_deficient_rank() -> None:
    a = np.outer(np.arange(1.0, 5), np.arange(1.0, 4))
    _, s, u, v = run("svd", [a], {"m": 4, "n": 3})
    close(matrix(u, 4, 3).T @ matrix(u, 4, 3), np.eye(3), 1e-13)
    close(matrix(u, 4, 3) @ np.diag(s) @ matrix(v, 3, 3).T, a, 1e-13)


@pytest.mark.parametrize("scale", [1e-8, 0.1, 1.0, 20.0])
def test_matrix_exp(scale: float) -> None:
    linalg = pytest.importorskip("scipy.linalg")
    a = scale * random(12, 6, 6)
    close(matrix(run("matrix_exp", [a], {"n": 6})[1], 6, 6), linalg.expm(a), 1e-12 * max(1, scale))


def test_sorting() -> None:
    x = np.array([3.0, -1.0, 2.0, 2.0, np.inf, -np.inf, -0.5])
    n = len(x)
    _, out, order = run("sort_asc", [x], {"n": n})
    assert list(out) == sorted(x) and list(x[order]) == list(out)
    _, out, order = run("sort_desc", [x], {"n": n})
    assert list(out) == sorted(x, reverse=True) and list(x[order]) == list(out)
    assert list(run("sort_indices_asc", [x], {"n": n})[1]) == list(np.argsort(x, kind="stable") + 1)
    ints = np.random.default_rng(0).integers(-5, 5, 101).astype(np.int32)
    assert list(run("sort_asc_int", [ints], {"n": 101})[1]) == sorted(ints)
    assert list(run("sort_desc_int", [ints], {"n": 101})[1]) == sorted(ints, reverse=True)
    assert list(run("sort_indices_desc_int", [ints], {"n": 101})[1]) == list(np.argsort(-ints, kind="stable") + 1)


@pytest.mark.parametrize("lower", [False, True])
def test_matrix_exp_far_from_normal(lower: bool) -> None:
    """[[1, c], [0, -1]] has no digit to lose: powers stay small, whatever c is."""
    c = 1e6
    a, expected = np.array([[1.0, c], [0.0, -1.0]]), np.array([[np.e, c * np.sinh(1)], [0.0, np.exp(-1)]])
    weights = np.array([[0.0, 1.0], [0.0, 0.0]])
    if lower:
        a, expected, weights = a.T, expected.T, weights.T
    *_, found = run("matrix_exp", [a], {"n": 2})
    np.testing.assert_allclose(matrix(found, 2, 2), expected, rtol=1e-14, atol=1e-14)
    (adjoint,) = pull_back("matrix_exp", [a], {"n": 2}, [column_major(weights)], [True])
    slopes = matrix(adjoint, 2, 2).T if lower else matrix(adjoint, 2, 2)
    by_diagonal = [c * (np.e - np.sinh(1)) / 2, c * (np.sinh(1) - np.exp(-1)) / 2]
    np.testing.assert_allclose(np.diag(slopes), by_diagonal, rtol=1e-13)
    assert slopes[0, 1] == pytest.approx(np.sinh(1), rel=1e-13)


# ------------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("name", "inputs", "sizes", "message"),
    [
        ("cholesky_decompose", [[[1.0, 0.5], [0.4, 1.0]]], {"n": 2}, r"m\[1,2\] = 0.5, but m\[2,1\] = 0.4"),
        ("cholesky_decompose", [[[1.0, 2.0], [2.0, 1.0]]], {"n": 2}, "not positive definite"),
        ("cholesky_decompose", [[[np.nan, 0.0], [0.0, 1.0]]], {"n": 2}, "not positive definite"),
        ("cholesky_decompose", [-np.eye(70) + 2 * np.diag(np.arange(70) < 69)], {"n": 70}, "pivot 70 is -1"),
        ("inverse_spd", [[[0.0]]], {"n": 1}, "not positive definite"),
        ("mdivide_left_spd", [[[-1.0]], [[1.0]]], {"n": 1, "m": 1}, "not positive definite"),
        ("eigenvalues_sym", [[[1.0, 2.0], [3.0, 1.0]]], {"n": 2}, "not symmetric"),
        ("sort_asc", [[1.0, np.nan]], {"n": 2}, r"\[2\] is nan"),
    ],
)
def test_rejections(name: str, inputs: list[Any], sizes: dict[str, int], message: str) -> None:
    with pytest.raises(KernelError, match=message):
        run(name, inputs, sizes)


# ------------------------------------------------------------------------------------------------ pullbacks


@pytest.mark.parametrize(
    ("name", "inputs", "sizes", "shapes", "tolerance"),
    PULLBACKS,
    ids=[f"{case[0]}-{'x'.join(map(str, case[2].values()))}" for case in PULLBACKS],
)
def test_pullback(
    name: str, inputs: list[Floats], sizes: dict[str, int], shapes: list[Callable[[Floats], Floats]], tolerance: float
) -> None:
    kernel = KERNELS[name]
    buffers = [p for p in kernel.parameters if p.is_buffer]
    outputs = [b for b, p in zip(run(name, inputs, sizes), buffers, strict=True) if p.kind != "in"]
    written = [p for p in buffers if p.kind != "in"]
    weights: list[Floats | None] = [
        random(20 + i, b.size) if p.kind == "out" else None
        for i, (b, p) in enumerate(zip(outputs, written, strict=True))
        if p.element == "f64"
    ]

    def objective(moved: list[Floats]) -> float:
        results = [b for b, p in zip(run(name, moved, sizes), buffers, strict=True) if p.kind != "in"]
        reals = [b for b, p in zip(results, written, strict=True) if p.element == "f64"]
        return sum(float(w @ r) for w, r in zip(weights, reals, strict=True) if w is not None)

    adjoints = pull_back(name, inputs, sizes, weights, [True] * len(inputs))
    for i, (x, shape) in enumerate(zip(inputs, shapes, strict=True)):
        direction = shape(random(40 + i, *x.shape)) / np.sqrt(x.size)
        moved = directional(lambda t, i=i, x=x, d=direction: objective([*inputs[:i], x + t * d, *inputs[i + 1 :]]))
        expected = float(adjoints[i] @ column_major(np.tril(direction) if i == 0 and reads_lower(name) else direction))
        assert moved == pytest.approx(expected, rel=tolerance, abs=tolerance)
        inactive = pull_back(name, inputs, sizes, weights, [j == i for j in range(len(inputs))])
        np.testing.assert_array_equal(inactive[i], adjoints[i])
        assert all(not inactive[j].any() for j in range(len(inputs)) if j != i)


def reads_lower(name: str) -> bool:
    """Whether the kernel reads the lower triangle of its first argument, so that the adjoint is there alone."""
    return name in ("cholesky_decompose", "normal_terms")


@pytest.mark.parametrize("name", sorted(name for name, kernel in KERNELS.items() if kernel.pullback))
def test_pullback_of_nothing(name: str) -> None:
    """Without adjoints of outputs, nothing is written."""
    case = next((c for c in PULLBACKS if c[0] == name), None)
    if case is None:
        # eigendecompose_sym by another name; one that calls compiled code (test_pieces.py); three of tests/layouts
        assert name in ("eigenvectors_sym", "evaluate_pieces", "form_values", "design_product", "design_products")
        return
    _, inputs, sizes, _, _ = case
    outputs = [p for p in KERNELS[name].parameters if p.kind in ("out", "kept") and p.element == "f64"]
    for adjoint in pull_back(name, inputs, sizes, [None] * len(outputs), [True] * len(inputs)):
        assert not adjoint.any()
