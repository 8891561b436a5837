"""Calls of the kernels of the C runtime, and the cases that their pullbacks are tried on."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ulam.library.kernels import FAST, KERNELS
from ulam.runtime.c_library import library
from ulam.runtime.native import Context

Floats = NDArray[np.float64]
ELEMENTS = {"f64": np.float64, "i32": np.int32, "i64": np.int64}
SCALARS = {"f64": ctypes.c_double, "i32": ctypes.c_int32, "i64": ctypes.c_int64}


_CANARY = 17


def room_for(count: int, kind: Any = np.float64) -> NDArray[Any]:
    """Memory of so many numbers, and what nothing may write behind."""
    return np.full(count + _CANARY, 77, kind)


def is_kept_behind(memory: NDArray[Any]) -> bool:
    """Whether nothing was written behind such memory."""
    return bool((memory[-_CANARY:] == 77).all())


def call(name: str, context: Context, *arguments: Any) -> None:
    """Calls a kernel with arrays and integers, which are not looked at."""
    function = getattr(library(), f"ulam_{name}")
    function.restype = None
    function(
        ctypes.c_void_p(context.address),
        *(
            ctypes.c_void_p(a.ctypes.data) if isinstance(a, np.ndarray) else ctypes.c_int64(a) for a in arguments
        ),
    )  # fmt: skip


class KernelError(Exception):
    pass


def column_major(x: Any) -> NDArray[Any]:
    return np.array(np.asarray(x).T, order="C").ravel() if np.ndim(x) == 2 else np.atleast_1d(np.array(x))


fast = False
"""Whether the versions of levels 3 and 4 are called, where there are any."""


def _symbol(name: str) -> str:
    return f"ulam_{name}{'_fast' * (fast and name in FAST)}"


def run(name: str, inputs: list[Any], sizes: dict[str, int], values: list[float] | None = None) -> list[NDArray[Any]]:
    """All buffer arguments, in order, after the call: inputs first as they are, outputs filled."""
    context = Context()
    buffers, arguments = _arguments(name, inputs, sizes, values or [])
    function = getattr(library(), _symbol(name))
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
    assert kernel.pullback is not None
    function = getattr(library(), _symbol(kernel.pullback))
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
for _n in (1, 4, 11, 20, 45):
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
    for _m in (1, 3):
        _case("normal_terms", [positive_definite(1, _n), random(2, _n, _m)], {"n": _n, "m": _m}, symmetric, np.asarray)
for _name in ("eigenvalues_sym", "eigendecompose_sym"):
    _case(_name, [positive_definite(1, 4) + np.diag([0.0, 3, 6, 9])], {"n": 4}, symmetric)
for _m, _n in ((4, 4), (6, 3), (3, 6)):
    _case("singular_values", [random(3, _m, _n)], {"m": _m, "n": _n}, tolerance=1e-8)
    _case("svd", [random(3, _m, _n)], {"m": _m, "n": _n}, tolerance=1e-7)
    _case("qr_thin", [random(3, _m, _n) + 2 * np.eye(_m, _n)], {"m": _m, "n": _n})
for _r, _t, _n in ((1, 1, 1), (3, 4, 2), (2, 3, 4)):
    _case(
        "gaussian_dlm_filter",
        [random(1, _r, _t), random(2, _n, _r), random(3, _n, _n), random(4, _r) ** 2, positive_definite(5, _n),
         random(6, _n), positive_definite(7, _n)],
        {"r": _r, "t": _t, "n": _n},
    )  # fmt: skip


def reduced_rows(shared: int) -> Floats:
    """As runtime/c/reduced_rows.h has them: a triangle of as many rows as it has columns."""
    rows, width = shared + 1, (shared + 8) // 8 * 8
    found, best = np.zeros((rows, width)), np.zeros((1, width))
    found[:, : shared + 1], best[0, :shared] = random(8, rows, shared + 1), random(9, shared)
    found = np.triu(found)
    columns = np.zeros((rows, width))
    columns[:, :rows] = found[:, :rows].T
    return np.concatenate([found, best, *([columns] if width <= 16 else [])]).ravel()


for _shared, _own in ((3, 2), (12, 0), (7, 1), (21, 1), (40, 0)):
    _tables = [reduced_rows(_shared), random(3, 16 * _own * (_own + _shared + 2))]
    _case(
        "reduced_squares",
        [*_tables, random(4, _shared), random(5, 16 * _own)],
        {"s": _tables[0].size, "t": _tables[1].size, "shared": _shared, "own": _own, "groups": 16},
        np.zeros_like, np.zeros_like, np.asarray, np.asarray,
    )  # fmt: skip
for _columns in (1, 2, 5):
    _numbers = (_columns + 1) * (_columns + 2) // 2 + _columns
    _tables = [random(6, 16 * _numbers)]
    _case(
        "kind_squares",
        [*_tables, random(7, 16 * _columns)],
        {"t": _tables[0].size, "columns": _columns, "room": 16},
        np.zeros_like, np.asarray,
    )  # fmt: skip
# states, times, what sources and states make of the column of moves, whether each time has its own
_RECURSIONS = ((2, 5, 2, 1, 1), (3, 4, 3, 1, 4), (6, 3, 6, 1, 1), (4, 3, 1, 0, 3), (1, 3, 0, 0, 1))
for _k, _t, _by_from, _by_to, _u in _RECURSIONS:
    _c = 1 + (_k - 1) * (_by_from + _by_to)
    _case(
        "log_recursion",
        [3 * random(1, _k), 3 * random(2, _t, _k), 3 * random(3, _u, _c)],
        {"t": _t, "k": _k, "c": _c, "u": _u, "by_from": _by_from, "by_to": _by_to, "by_row": _k, "by_state": 1,
         "asked": _t},
    )
_case("sort_asc", [np.array([3.0, 1.0, 2.0])], {"n": 3})
_case("sort_desc", [np.array([3.0, 1.0, 2.0])], {"n": 3})
