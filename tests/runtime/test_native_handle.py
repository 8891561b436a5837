"""The log density as a C function: called from ctypes, from threads, from C, and after the model is gone."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.c_library import library_path
from ulam.runtime.native_handle import FATAL_ERROR, GONE, REJECTED, WRONG_SIZE, NativeHandle

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTION = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p
)

PROGRAM = """
data { int N; vector[N] y; array[3] int k; }
parameters { real mu; real<lower=0> sigma; }
model {
  if (mu > 10) reject("mu is ", mu);
  if (mu < -10) target += k[to_int(4)];
  y ~ normal(mu, sigma);
}
""".replace("to_int(4)", "N + 1")
DATA = {"N": 3, "y": [0.5, -1.0, 2.0], "k": [1, 2, 3]}


def call(handle: NativeHandle, x: Any, n: int | None = None) -> tuple[int, float, Any]:
    point, gradient, lp = np.array(x, float), np.full(np.size(x), np.nan), ctypes.c_double(np.nan)
    status = FUNCTION(handle.address)(
        point.size if n is None else n, point.ctypes.data, gradient.ctypes.data, ctypes.addressof(lp), handle.user_data
    )
    return status, lp.value, gradient


@pytest.fixture
def model() -> ulam.StanModel:
    return ulam.StanModel(PROGRAM, DATA)


@pytest.mark.parametrize("propto", [True, False])
@pytest.mark.parametrize("jacobian", [True, False])
def test_value_and_gradient(model: ulam.StanModel, propto: bool, jacobian: bool) -> None:
    handle = model.native_handle(propto=propto, jacobian=jacobian)
    assert handle.n == 2
    for x in ([0.3, -0.2], [5.0, 1.0]):
        expected = model.log_density_gradient(np.array(x), propto=propto, jacobian=jacobian)
        status, lp, gradient = call(handle, x)
        assert status == 0 and lp == expected[0] and (gradient == expected[1]).all()


def test_what_cannot_be_evaluated(model: ulam.StanModel) -> None:
    handle = model.native_handle()
    for x, expected in (([11.0, 0.0], REJECTED), ([-11.0, 0.0], FATAL_ERROR), ([0.0, -1e4], REJECTED)):
        status, lp, _ = call(handle, x)
        assert status == expected and np.isnan(lp)
        with pytest.raises(ulam.Rejection if expected == REJECTED else ulam.FatalError):
            model.log_density_gradient(np.array(x))
    for n in (0, 1, 3, 2**40):
        assert call(handle, [0.0, 0.0], n)[0] == WRONG_SIZE
    assert call(handle, [0.0, 0.0])[0] == 0


def test_checks_that_are_noticed_late() -> None:
    """A hot loop says that something is wrong, not what: the handle says whether another point would help."""
    program = """
      data { int N; vector[N] y; array[N] int k; }
      parameters { vector[4] x; }
      model { for (i in 1:N) y[i] ~ normal(0, x[k[i]]); }
    """
    n = 50
    model = ulam.StanModel(program, {"N": n, "y": [0.1] * n, "k": [1 + i % 4 for i in range(n)]})
    handle = model.native_handle()
    assert call(handle, [1.0, 1.0, 1.0, 1.0])[0] == 0
    assert call(handle, [1.0, 1.0, -1.0, 1.0])[0] == REJECTED


def test_errors_of_data_are_raised_at_once() -> None:
    model = ulam.StanModel(
        "data { real s; } parameters { real x; } model { 1 ~ normal(0, s); x ~ normal(0, 1); }", {"s": -1}
    )
    with pytest.raises(ulam.Rejection, match="sigma is -1"):
        model.native_handle()


def test_outlives_the_model() -> None:
    model = ulam.StanModel(PROGRAM, DATA)
    handle = model.native_handle()
    expected = call(handle, [0.3, 0.1])
    address, data, kept = handle.address, handle.user_data, handle.keep_alive
    del model, handle
    gc.collect()
    np.empty(1 << 20).fill(7)  # memory that was given back would be used again
    point, gradient, lp = np.array([0.3, 0.1]), np.empty(2), ctypes.c_double()
    status = FUNCTION(address)(2, point.ctypes.data, gradient.ctypes.data, ctypes.addressof(lp), data)
    assert (status, lp.value) == expected[:2] and (gradient == expected[2]).all()
    del kept


def test_sixteen_threads(model: ulam.StanModel) -> None:
    handle = model.native_handle()
    points = np.random.default_rng(1).normal(size=(16, 2)) * 4
    expected = [call(handle, x) for x in points]

    def work(k: int) -> bool:
        found = [call(handle, points[(k + i) % 16]) for i in range(200)]
        return all(
            a[0] == b[0] and np.array_equal(a[1], b[1], equal_nan=True) and np.array_equal(a[2], b[2], equal_nan=True)
            for a, b in zip(found, [expected[(k + i) % 16] for i in range(200)], strict=True)
        )

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(16)))


CALLER = r"""
#include <pthread.h>
#include <stddef.h>

typedef int (*density)(size_t n, const double *x, double *grad, double *lp, void *user);
typedef struct { density f; void *user; double start, sum; int failed; } job;

static void *ascend(void *argument) {
  job *own = argument;
  double x[2] = {own->start, 0.1}, g[2], lp;
  for (int i = 0; i < 2000; ++i) {
    if (own->f(2, x, g, &lp, own->user) != 0) { own->failed = 1; return NULL; }
    for (int k = 0; k < 2; ++k) x[k] += 0.01 * g[k];
  }
  own->sum = x[0] + x[1];
  return NULL;
}

int climb(density f, void *user, int count, double *ends) {
  pthread_t threads[16];
  job jobs[16];
  int failed = 0;
  for (int i = 0; i < count; ++i) {
    jobs[i] = (job){f, user, 0.1 * i, 0, 0};
    pthread_create(&threads[i], NULL, ascend, &jobs[i]);
  }
  for (int i = 0; i < count; ++i) {
    pthread_join(threads[i], NULL);
    ends[i] = jobs[i].sum;
    failed += jobs[i].failed;
  }
  return failed;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_threads_of_c(model: ulam.StanModel, tmp_path: Path) -> None:
    """Threads that Python knows nothing of."""
    source, library = tmp_path / "caller.c", tmp_path / "caller.so"
    source.write_text(CALLER)
    subprocess.run(["cc", "-O1", "-fPIC", "-shared", "-pthread", str(source), "-o", str(library)], check=True)
    handle = model.native_handle()
    ends = np.empty(16)
    climb = ctypes.CDLL(str(library)).climb
    climb.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
    assert climb(handle.address, handle.user_data, 16, ends.ctypes.data) == 0
    mode = model.optimize(jacobian=True).unconstrained
    assert ends == pytest.approx(np.full(16, mode.sum()), abs=1e-3)


def test_prints_go_to_standard_output(capfd: pytest.CaptureFixture[str]) -> None:
    model = ulam.StanModel('parameters { real x; } model { print("x is ", x); x ~ normal(0, 1); }')
    handle = model.native_handle()
    capfd.readouterr()
    assert call(handle, [0.5])[0] == 0
    assert capfd.readouterr().out == "x is 0.5\n"


# ---------------------------------------------------------------- the other functions


def test_value_alone(model: ulam.StanModel) -> None:
    handle, lp = model.native_handle(jacobian=False), ctypes.c_double(np.nan)
    for x, expected in (([0.3, -0.2], 0), ([11.0, 0.0], REJECTED), ([-11.0, 0.0], FATAL_ERROR)):
        point = np.array(x)
        status = handle.value_function(2, point.ctypes.data, None, ctypes.addressof(lp), handle.user_data)
        assert status == expected
        if not status:
            assert lp.value == model.log_density(point, jacobian=False)


def test_products_with_the_hessian(model: ulam.StanModel) -> None:
    handle, lp = model.native_handle(), ctypes.c_double(np.nan)
    x, v, product, gradient = np.array([0.3, -0.2]), np.array([2.0, -1.0]), np.empty(2), np.empty(2)
    arrays = [array.ctypes.data for array in (x, v, product, gradient)]
    assert handle.product_function(2, *arrays, ctypes.addressof(lp), handle.user_data) == 0
    assert (product == model.log_density_hessian_vector_product(x, v)[1]).all()
    assert lp.value == pytest.approx(model.log_density(x)) and np.allclose(gradient, model.log_density_gradient(x)[1])


def test_many_points(model: ulam.StanModel) -> None:
    """Points that are refused are infinite, without a gradient; a fatal error ends the call."""
    handle = model.native_handle()
    points = np.array([[0.3, -0.2], [11.0, 0.0], [1.0, 1.0]])
    lp, gradients = np.full(3, np.nan), np.full((3, 2), np.nan)

    def run(n: int) -> int:
        arrays = (points.ctypes.data, gradients.ctypes.data, lp.ctypes.data)
        return handle.batch_function(3, n, *arrays, handle.user_data)

    assert run(2) == 0 and run(3) == WRONG_SIZE
    for k in (0, 2):
        value, gradient = model.log_density_gradient(points[k])
        assert lp[k] == value and (gradients[k] == gradient).all()
    assert lp[1] == -np.inf and (gradients[1] == 0).all()
    points[1, 0] = -11
    assert run(2) == FATAL_ERROR


def test_tickets(model: ulam.StanModel) -> None:
    """A ticket is the handle's as long as that is there, and nobody's afterwards."""
    native = ctypes.CDLL(str(library_path()))
    native.ulam_native_by_ticket.argtypes = [ctypes.c_int64, ctypes.c_size_t, *[ctypes.c_void_p] * 3]
    x, gradient, lp = np.array([0.3, -0.2]), np.empty(2), ctypes.c_double()

    def run(ticket: int) -> int:
        return native.ulam_native_by_ticket(ticket, 2, x.ctypes.data, gradient.ctypes.data, ctypes.addressof(lp))

    handles = [model.native_handle() for _ in range(300)]
    tickets = [handle.ticket for handle in handles]
    assert len(set(tickets)) == 300 and handles[7].ticket == tickets[7]
    assert {run(ticket) for ticket in tickets} == {0} and lp.value == model.log_density_gradient(x)[0]
    del handles[100:200]
    assert {run(ticket) for ticket in tickets[100:200]} == {GONE} and run(tickets[99]) == run(tickets[200]) == 0
    again = model.native_handle()
    assert again.ticket not in tickets and run(again.ticket) == 0 and run(tickets[100]) == GONE
    assert {run(ticket) for ticket in (0, -1, 12345, 2**63 - 1, -(2**63))} == {GONE}


def test_a_handle_waits_for_calls_by_ticket(model: ulam.StanModel) -> None:
    """Freed while other threads call with its ticket: each call has the value, or finds nobody."""
    native = ctypes.CDLL(str(library_path()))
    native.ulam_native_by_ticket.argtypes = [ctypes.c_int64, ctypes.c_size_t, *[ctypes.c_void_p] * 3]
    x = np.array([0.3, -0.2])
    expected = model.log_density_gradient(x)[0]

    def call_until_gone(ticket: int) -> bool:
        gradient, lp = np.empty(2), ctypes.c_double()
        for _ in range(100_000):
            lp.value = 0
            arguments = (x.ctypes.data, gradient.ctypes.data, ctypes.addressof(lp))
            if (status := native.ulam_native_by_ticket(ticket, 2, *arguments)) == GONE:
                return True
            if status or lp.value != expected:
                return False
        return False

    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            handle = model.native_handle()
            calls = [pool.submit(call_until_gone, handle.ticket) for _ in range(4)]
            del handle
            assert all(each.result() for each in calls)


# ---------------------------------------------------------------- XLA's frames


class _Buffer(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t), ("extensions", ctypes.c_void_p), ("type", ctypes.c_int32),
        ("data", ctypes.c_void_p), ("rank", ctypes.c_int64), ("dims", ctypes.c_void_p),
    ]  # fmt: skip


def test_frames_that_are_not_of_this_log_density(model: ulam.StanModel) -> None:
    """What XLA hands over is compared with the model: other types, sizes and tickets are errors, never written to."""
    native = ctypes.CDLL(str(library_path()))
    handle, told = model.native_handle(), []

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def new_error(arguments: Any) -> int:
        told.append(ctypes.string_at(arguments[2]).decode())
        return 1

    functions = (ctypes.c_uint64 * 7)(56, 0, 24, 0, 3 << 32, 0, ctypes.cast(new_error, ctypes.c_void_p).value or 0)

    def run(shape: tuple[int, ...], ticket: int, kind: int = 12, results: int = 2, size: int = 168) -> int | None:
        x, gradient, lp = np.full(shape, 0.5), np.full(shape, np.nan), np.full(shape[:-1], np.nan)
        kept: list[Any] = []

        def buffers(arrays: list[Any]) -> tuple[int, int]:
            made = []
            for array in arrays:
                dims = (ctypes.c_int64 * array.ndim)(*array.shape)
                made.append(_Buffer(48, None, kind, array.ctypes.data, array.ndim, ctypes.addressof(dims)))
                kept.append(dims)
            items = (ctypes.c_void_p * len(made))(*map(ctypes.addressof, made))
            kinds = (ctypes.c_int32 * len(made))(*[1] * len(made))
            kept.extend([made, items, kinds])
            return ctypes.addressof(kinds), ctypes.addressof(items)

        number = ctypes.c_int64(ticket)
        scalar = (ctypes.c_uint64 * 2)(5, ctypes.addressof(number))
        attribute, kinds = (ctypes.c_void_p * 1)(ctypes.addressof(scalar)), (ctypes.c_int32 * 1)(3)
        frame = (ctypes.c_uint64 * 21)(
            size, 0, ctypes.addressof(functions), 0, 3,
            40, 0, 1, *buffers([x]), 40, 0, results, *buffers([lp, gradient]),
            48, 0, 1, ctypes.addressof(kinds), 0, ctypes.addressof(attribute),
        )  # fmt: skip
        native.ulam_xla_gradient.restype = ctypes.c_void_p
        error = native.ulam_xla_gradient(ctypes.byref(frame))
        if error is None:
            value, slope = model.log_density_gradient(np.full(2, 0.5))
            assert (lp == value).all() and (gradient == slope).all()
        else:
            assert np.isnan(gradient).all() and np.isnan(lp).all()
        return error

    for shape in ((2,), (5, 2), (2, 3, 2), (0, 2)):
        assert run(shape, handle.ticket) is None
    for shape in ((3,), (2, 1), (5, 3)):
        assert run(shape, handle.ticket) and "not the arguments" in told[-1]
    assert run((2,), handle.ticket, kind=11) and run((2,), handle.ticket, results=1)
    assert run((2,), handle.ticket + 1) and "keep a reference" in told[-1]
    assert run((2,), handle.ticket, size=80) and "another interface" in told[-1]
