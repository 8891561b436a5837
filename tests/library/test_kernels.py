"""The kernels of the C runtime against NumPy and SciPy, every pullback against differences of the forward kernel."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ulam.library.kernels import KERNELS
from ulam.runtime.c_library import library
from ulam.runtime.native import Context

Floats = NDArray[np.float64]
ELEMENTS = {"f64": np.float64, "i32": np.int32, "i64": np.int64}
SCALARS = {"f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64}


class KernelError(Exception):
    pass


def column_major(x: Any) -> NDArray[Any]:
    return np.array(np.asarray(x).T, order="C").ravel() if np.ndim(x) == 2 else np.atleast_1d(np.array(x))


def run(name: str, inputs: list[Any], sizes: dict[str, int], values: list[float] | None = None) -> list[NDArray[Any]]:
    """All buffer arguments, in order, after the call: inputs first as they are, outputs filled."""
    context = Context()
    buffers, arguments = _arguments(name, inputs, sizes, values or [])
    function = getattr(library(), f"ulam_{name}")
    function.restype = ctypes.c_int32
    status = function(ctypes.c_void_p(context.address), *arguments)
    if KERNELS[name].throws and status:
        raise KernelError(context.message)
    return buffers


def _arguments(
    name: str, inputs: list[Any], sizes: dict[str, int], values: list[float]
) -> tuple[list[NDArray[Any]], list[Any]]:
    given, scalars = iter(inputs), iter(values)
    buffers: list[NDArray[Any]] = []
    arguments: list[Any] = []
    for parameter in KERNELS[name].parameters:
        if parameter.kind == "size":
            arguments.append(ctypes.c_int64(sizes[parameter.size]))
        elif parameter.kind == "value":
            arguments.append(SCALARS[parameter.element](next(scalars)))
        else:
            count = eval(parameter.size, {"min": min}, dict(sizes))
            element = ELEMENTS[parameter.element]
            if parameter.kind == "in":
                buffer = column_major(next(given)).astype(element)
                assert buffer.size == count
            else:
                buffer = np.full(count, np.nan if element is np.float64 else -99, element)
            buffers.append(buffer)
            arguments.append(ctypes.c_void_p(buffer.ctypes.data))
    return buffers, arguments


def pull_back(
    name: str, inputs: list[Any], sizes: dict[str, int], adjoints_out: list[Floats | None], active: list[bool]
) -> list[Floats]:
    """Adjoints of the f64 inputs, for adjoints of the outputs (in order, kept ones included)."""
    kernel = KERNELS[name]
    buffers = run(name, inputs, sizes)
    _, arguments = _arguments(name, inputs, sizes, [])
    places = iter(buffers)
    arguments = [
        ctypes.c_void_p(next(places).ctypes.data) if p.is_buffer else argument
        for p, argument in zip(kernel.parameters, arguments, strict=True)
    ]
    adjoints: list[Floats] = []
    of_outputs, of_inputs = iter(adjoints_out), iter(active)
    every: list[Floats | None] = []
    for buffer, parameter in zip(buffers, [p for p in kernel.parameters if p.is_buffer], strict=True):
        if parameter.element != "f64":
            continue
        if parameter.kind == "in":
            adjoint = np.zeros(buffer.size)
            adjoints.append(adjoint)
            every.append(adjoint if next(of_inputs) else None)
        else:
            every.append(next(of_outputs))
    function = getattr(library(), f"ulam_{kernel.pullback}")
    function.restype = None
    context = Context()
    pointers = [ctypes.c_void_p(a.ctypes.data if a is not None else None) for a in every]
    function(ctypes.c_void_p(context.address), *arguments, *pointers)
    return adjoints


def random(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape)


def positive_definite(seed: int, n: int) -> Floats:
    a = random(seed, n, n)
    return a @ a.T / n + np.eye(n)


def lower(seed: int, n: int) -> Floats:
    return np.tril(random(seed, n, n)) * 0.3 / np.sqrt(max(n, 1)) + np.diag(1 + np.arange(n) / max(n, 1))


def conditioned(seed: int, n: int) -> Floats:
    return random(seed, n, n) / np.sqrt(max(n, 1)) + 2 * np.eye(n)


def matrix(buffer: NDArray[Any], rows: int, columns: int) -> Floats:
    return buffer.reshape(columns, rows).T


def close(actual: Any, expected: Any, tolerance: float = 1e-12) -> None:
    scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance * scale)


# ------------------------------------------------------------------------------------------------ the table itself


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_kernel_is_exported(name: str) -> None:
    kernel = KERNELS[name]
    assert getattr(library(), f"ulam_{name}")
    if kernel.pullback:
        assert getattr(library(), f"ulam_{kernel.pullback}")
    sizes = {p.size for p in kernel.parameters if p.kind == "size"}
    for parameter in kernel.parameters:
        if parameter.is_buffer:
            assert set(re.findall(r"[a-z]\w*", parameter.size)) <= sizes | {"min", "value"}


# ------------------------------------------------------------------------------------------------ values

SIZES = [0, 1, 2, 5, 31, 33, 70, 130]


PRODUCTS = [(1, 1, 1), (3, 4, 2), (7, 1, 5), (1, 9, 6), (6, 9, 1), (40, 3, 50), (64, 65, 66), (131, 70, 97),
            (200, 210, 190), (5, 0, 3), (0, 3, 2)]  # fmt: skip


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


def directional(f: Callable[[float], float]) -> float:
    """f'(0) by a six-point rule."""
    h = 2e-3
    return sum(w * (f(i * h) - f(-i * h)) for i, w in ((1, 45.0), (2, -9.0), (3, 1.0))) / (60 * h)


def symmetric(direction: Floats) -> Floats:
    return direction + direction.T


PULLBACKS: list[tuple[str, list[Floats], dict[str, int], list[Callable[[Floats], Floats]], float]] = []


def _case(name: str, inputs: list[Floats], sizes: dict[str, int], *shapes: Callable[[Floats], Floats],
          tolerance: float = 1e-9) -> None:  # fmt: skip
    PULLBACKS.append((name, inputs, sizes, list(shapes) or [np.asarray] * len(inputs), tolerance))


_case("multiply", [random(1, 3, 4), random(2, 4, 2)], {"m": 3, "k": 4, "n": 2})
_case("multiply", [random(1, 30, 24), random(2, 24, 20)], {"m": 30, "k": 24, "n": 20})
_case("multiply", [random(1, 5, 4), random(2, 4, 1)], {"m": 5, "k": 4, "n": 1})
_case("multiply", [random(1, 1, 4), random(2, 4, 6)], {"m": 1, "k": 4, "n": 6})
_case("tcrossprod", [random(1, 4, 3)], {"m": 4, "k": 3})
_case("crossprod", [random(1, 4, 3)], {"m": 4, "k": 3})
_case("matrix_exp", [random(1, 4, 4)], {"n": 4})
_case("inverse", [conditioned(1, 5)], {"n": 5})
_case("determinant", [conditioned(1, 4)], {"n": 4})
_case("log_determinant", [conditioned(1, 4)], {"n": 4})
for _n in (1, 4, 20, 45):
    _case("cholesky_decompose", [positive_definite(1, _n)], {"n": _n}, symmetric)
    _case("mdivide_left_tri_low", [lower(1, _n), random(2, _n, 3)], {"n": _n, "m": 3}, np.tril, np.asarray)
    _case("mdivide_right_tri_low", [random(2, 3, _n), lower(1, _n)], {"n": _n, "m": 3}, np.asarray, np.tril)
    _case("mdivide_left", [conditioned(1, _n), random(2, _n, 3)], {"n": _n, "m": 3})
    _case("mdivide_right", [random(2, 3, _n), conditioned(1, _n)], {"n": _n, "m": 3})
    _case("mdivide_left_spd", [positive_definite(1, _n), random(2, _n, 3)], {"n": _n, "m": 3}, symmetric, np.asarray)
    _case("mdivide_right_spd", [random(2, 3, _n), positive_definite(1, _n)], {"n": _n, "m": 3}, np.asarray, symmetric)
    _case("inverse_spd", [positive_definite(1, _n)], {"n": _n}, symmetric)
    _case("log_determinant_spd", [positive_definite(1, _n)], {"n": _n}, symmetric)
    _case("chol2inv", [lower(1, _n)], {"n": _n}, np.tril)
for _name in ("eigenvalues_sym", "eigendecompose_sym"):
    _case(_name, [positive_definite(1, 4) + np.diag([0.0, 3, 6, 9])], {"n": 4}, symmetric)
for _m, _n in ((4, 4), (6, 3), (3, 6)):
    _case("singular_values", [random(3, _m, _n)], {"m": _m, "n": _n}, tolerance=1e-8)
    _case("svd", [random(3, _m, _n)], {"m": _m, "n": _n}, tolerance=1e-7)
    _case("qr_thin", [random(3, _m, _n) + 2 * np.eye(_m, _n)], {"m": _m, "n": _n})
_case("sort_asc", [np.array([3.0, 1.0, 2.0])], {"n": 3})
_case("sort_desc", [np.array([3.0, 1.0, 2.0])], {"n": 3})


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
        expected = float(adjoints[i] @ column_major(np.tril(direction) if reads_lower(name) else direction))
        assert moved == pytest.approx(expected, rel=tolerance, abs=tolerance)
        inactive = pull_back(name, inputs, sizes, weights, [j == i for j in range(len(inputs))])
        np.testing.assert_array_equal(inactive[i], adjoints[i])
        assert all(not inactive[j].any() for j in range(len(inputs)) if j != i)


def reads_lower(name: str) -> bool:
    """Whether the kernel reads the lower triangle of a symmetric argument, so that the adjoint is there alone."""
    return name == "cholesky_decompose"


@pytest.mark.parametrize("name", sorted(name for name, kernel in KERNELS.items() if kernel.pullback))
def test_pullback_of_nothing(name: str) -> None:
    """Without adjoints of outputs, nothing is written."""
    case = next((c for c in PULLBACKS if c[0] == name), None)
    if case is None:
        assert name == "eigenvectors_sym"  # eigendecompose_sym by another name
        return
    _, inputs, sizes, _, _ = case
    outputs = [p for p in KERNELS[name].parameters if p.kind in ("out", "kept") and p.element == "f64"]
    for adjoint in pull_back(name, inputs, sizes, [None] * len(outputs), [True] * len(inputs)):
        assert not adjoint.any()
