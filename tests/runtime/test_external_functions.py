"""External functions: declared in a program without a body, given from Python or C, with their derivatives."""

from __future__ import annotations

import ctypes
import pickle
import shutil
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import ArgumentError

PROGRAM = """
functions {
  real f(real x, vector y, data matrix A, int n);
  vector g(vector a, real s);
  array[,] int pattern(array[] int k, int n);
}
data {
  matrix[2, 3] A;
  array[2] int k;
}
transformed data {
  array[2, 3] int p = pattern(k, 3);
}
parameters {
  real x;
  vector[3] y;
}
transformed parameters {
  vector[3] z = g(y, x);
}
model {
  target += f(x, z, A, p[2, 3]) + f(x, z, A, 1);
  target += -0.5 * dot_self(y) - 0.5 * square(x);
}
generated quantities {
  real q = f(1.0, y, A, 3);
}
"""
DATA = {"A": [[0.0, 1, 2], [3, 4, 5]], "k": [1, 2]}
POINT = np.array([0.3, -0.2, 0.5, 1.1])

C_SOURCE = """
#include <stdint.h>
int f(double x, const double *y, int64_t n, const double *A, int64_t rows, int64_t columns, int k, double *result) {
  double sum = 0;
  if (x > 5) return x > 6 ? 7 : 1;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) sum += A[i + rows * j] * y[j];
  *result = k * x * sum + x * x;
  return 0;
}
int f_pullback(double x, const double *y, int64_t n, const double *A, int64_t rows, int64_t columns, int k,
               double adjoint, double *dx, double *dy) {
  double sum = 0;
  for (int64_t j = 0; j < columns; ++j)
    for (int64_t i = 0; i < rows; ++i) {
      sum += A[i + rows * j] * y[j];
      dy[j] += adjoint * k * x * A[i + rows * j];
    }
  *dx = adjoint * (k * sum + 2 * x);
  return 0;
}
"""


def f(x: float, y: Any, A: Any, n: int) -> float:
    return n * x * (A @ y).sum() + x**2


def f_pullback(x: float, y: Any, A: Any, n: int, adjoint: float) -> tuple[Any, ...]:
    return adjoint * (n * (A @ y).sum() + 2 * x), adjoint * n * x * A.sum(axis=0)


def g(a: Any, s: float) -> Any:
    return np.sin(a) * s


def g_pullback(a: Any, s: float, adjoint: Any) -> tuple[Any, ...]:
    return np.cos(a) * s * adjoint, (np.sin(a) * adjoint).sum()


def pattern(k: Any, n: int) -> Any:
    return np.add.outer(k, np.arange(n))


GIVEN = {
    "f": ulam.external(f, f_pullback),
    "g": ulam.external(g, g_pullback, shape="a"),
    "pattern": ulam.external(pattern, shape=("size(k)", "n")),
}


def expected(point: Any) -> float:
    x, y = point[0], point[1:]
    A, z = np.array(DATA["A"]), g(y, x)
    return f(x, z, A, 4) + f(x, z, A, 1) - 0.5 * y @ y - 0.5 * x * x


def expected_gradient(point: Any) -> Any:
    steps = np.eye(4) * 1e-6
    return np.array([(expected(point + h) - expected(point - h)) / 2e-6 for h in steps])


@pytest.fixture(scope="module")
def c_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    folder = tmp_path_factory.mktemp("external")
    (folder / "f.c").write_text(C_SOURCE)
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", folder / "f.so", folder / "f.c"], check=True)
    return folder / "f.so"


@pytest.mark.parametrize("level", [0, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 2, 4))])
def test_values_gradients_and_quantities_at_each_level(level: int) -> None:
    model = ulam.StanModel(PROGRAM, DATA, opt_level=level, external=GIVEN)
    value, gradient = model.log_density_gradient(POINT)
    assert value == pytest.approx(expected(POINT), rel=1e-14)
    assert gradient == pytest.approx(expected_gradient(POINT), abs=1e-8)
    assert model.log_density(POINT) == value
    quantities = model.param_constrain(POINT, include_tp=True, include_gq=True, rng=model.new_rng(1))
    assert quantities[4:7] == pytest.approx(g(POINT[1:], POINT[0]), rel=1e-15)


def test_c_functions_and_pointers_give_the_same(c_library: Path) -> None:
    opened = ctypes.CDLL(str(c_library))
    wanted = ulam.StanModel(PROGRAM, DATA, external=GIVEN).log_density_gradient(POINT)
    for given, lines in (  # `lines`: the other way to link
        (ulam.external(f"{c_library}:f", f"{c_library}:f_pullback"), False),
        (ulam.external(opened.f, opened.f_pullback), True),
        (ulam.external(ctypes.cast(opened.f, ctypes.c_void_p).value, f_pullback), False),
    ):
        model = ulam.StanModel(PROGRAM, DATA, external={**GIVEN, "f": given}, lines=lines, opt_level=0)
        value, gradient = model.log_density_gradient(POINT)
        assert value == pytest.approx(wanted[0], rel=1e-14) and gradient == pytest.approx(wanted[1], rel=1e-13)


def test_a_status_of_c_is_a_rejection_or_fatal(c_library: Path) -> None:
    given = ulam.external(f"{c_library}:f", f"{c_library}:f_pullback")
    model = ulam.StanModel(PROGRAM, DATA, external={**GIVEN, "f": given}, opt_level=0)
    with pytest.raises(ulam.Rejection, match=r"f: the external function returned status 1 \(in 'model.stan', line 22"):
        model.log_density([5.5, 0, 0, 0])
    with pytest.raises(ulam.FatalError, match="f: the external function returned status 7"):
        model.log_density([6.5, 0, 0, 0])


SQUARE = """
functions { real f(real x); }
parameters { real x; }
model { target += -f(x); }
"""


def square(x: float) -> float:
    if x > 5:
        raise ValueError("too large")
    if x > 4:
        raise ulam.Rejection("beyond four")
    return x * x


def square_pullback(x: float, adjoint: float) -> float:
    if 3 < x < 3.5:
        raise KeyError("no slope")
    return 2 * x * adjoint


@pytest.fixture(scope="module")
def squared() -> ulam.StanModel:
    return ulam.StanModel(SQUARE, external={"f": ulam.external(square, square_pullback)})


def test_exceptions_of_python_are_chained(squared: ulam.StanModel) -> None:
    told = r"f: ValueError: too large \(in 'model.stan', line 4, column 20\)"
    with pytest.raises(ulam.FatalError, match=told) as caught:
        squared.log_density_gradient([6.0])
    assert isinstance(caught.value.__cause__, ValueError)
    with pytest.raises(ulam.Rejection, match="f: beyond four") as caught:
        squared.log_density([4.5])
    assert isinstance(caught.value.__cause__, ulam.Rejection)
    with pytest.raises(ulam.FatalError, match="KeyError: 'no slope'"):  # the value is fine there
        squared.log_density_gradient([3.2])
    assert squared.log_density([3.2]) == -3.2 * 3.2


def test_a_function_that_is_not_given(squared: ulam.StanModel) -> None:
    told = r"'f' is declared but not defined(.|\n)*int f\(double x, double \*result\)"
    with pytest.raises(ulam.CompileError, match=told):
        ulam.StanModel(SQUARE)


def test_a_function_without_a_derivative_takes_data_only() -> None:
    with pytest.raises(ulam.CompileError, match="'f' was given without a derivative, so its arguments must be data"):
        ulam.StanModel(SQUARE, external={"f": square})
    text = SQUARE.replace("-f(x)", "f(2.0) - square(x)") + "generated quantities { real q = f(x); }"
    model = ulam.StanModel(text, external={"f": square})
    assert model.log_density_gradient([1.0])[1] == -2.0
    assert model.param_constrain([3.0], include_gq=True, rng=model.new_rng(1))[1] == 9.0
    # a function of the program does not say with what it is called: the gradient does
    hidden = SQUARE.replace("f(real x); }", "f(real x); real g(real x) { return f(x); } }").replace("-f(x)", "-g(x)")
    with pytest.raises(ulam.CompileError, match="was given without a derivative"):
        ulam.StanModel(hidden, external={"f": square}).log_density_gradient([1.0])


def test_second_derivatives_are_an_error(squared: ulam.StanModel) -> None:
    with pytest.raises(ulam.CompileError, match="second derivatives of the external function 'f' are not known"):
        squared.log_density_hessian([1.0])


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((), "the result of the external function 'g' has 1 sizes, but none was given"),
        ("b", "'b' is no size of the result"),
        ("cols(n)", r"'cols\(n\)' is no size"),
        (("a", "a"), "has 1 sizes, but 2 sizes were given"),
    ],
)
def test_shapes_that_cannot_be(shape: Any, message: str) -> None:
    program = "functions { vector g(vector a, int n); } model { vector[2] z = g([1, 2]', 2); }"
    with pytest.raises(ulam.CompileError, match=message):
        ulam.StanModel(program, external={"g": ulam.external(g, shape=shape)})


def test_results_of_wrong_shapes_and_types() -> None:
    program = "functions { vector g(vector a, int n); } generated quantities { vector[2] z = g([1, 2]', 2); }"
    for result, told in ((np.zeros(3), r"has shape \(3,\), but must have \(2,\)"), ("no", "could not convert|shape")):
        model = ulam.StanModel(program, external={"g": ulam.external(lambda a, n, r=result: r, shape="a")}, opt_level=0)
        with pytest.raises(ulam.FatalError, match=told):
            model.param_constrain([], include_gq=True, rng=model.new_rng(1))


def test_in_threads_pickles_traces_and_samples(squared: ulam.StanModel) -> None:
    found: list[float] = []

    def work() -> None:
        found.append(squared.log_density_gradient([1.5])[1][0])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [-3.0] * 4
    copy = pickle.loads(pickle.dumps(squared))
    assert copy.log_density([2.0]) == -4.0
    trace = squared.track_density([1.5])
    assert "f(" in str(trace.trace) or any("f" in str(child) for child in trace.children)
    fit = squared.sample(chains=2, draws=20, warmup=0, step_size=0.1, seed=3, init=0.5)
    assert fit["x"].shape == (2, 20)


def test_kept_code_has_no_addresses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another function of the same form is called where its own key finds code that was made for the first."""
    monkeypatch.setenv("ULAM_CACHE_DIR", str(tmp_path / "cache"))
    scale: Callable[[float], Any] = lambda by: ulam.external(ctypes.CFUNCTYPE(  # noqa: E731
        ctypes.c_int, ctypes.c_double, ctypes.POINTER(ctypes.c_double))(lambda x, r: r.__setitem__(0, by * x) or 0))
    program = "functions { real f(real x); } model { target += f(2.0); }"
    for by in (2.0, 3.0):
        assert ulam.StanModel(program, external={"f": scale(by)}, opt_level=0).log_density([], propto=False) == 2 * by
    versions = [ulam.external(square, version=version) for version in ("1", "2", "1")]
    names = []
    for given in versions:
        ulam.StanModel(program, external={"f": given}, opt_level=0)
        names.append(len(list((tmp_path / "cache").rglob("*.ulam"))))
    assert names[1] > names[0] and names[2] == names[1]


DECAY = """
functions { real decay(real rate, vector t); }
data { int N; vector[N] t; }
parameters { real<lower=0> rate; }
model { target += decay(rate, t) - rate; }
"""


def decays(external: Any, **options: Any) -> tuple[float, float]:
    model = ulam.StanModel(DECAY, {"N": 2, "t": [1.0, 2.0]}, external={"decay": external}, opt_level=0, **options)
    value, gradient = model.log_density_gradient([0.0], jacobian=False)
    return value, float(gradient[0])


def test_the_c_functions_of_the_guide(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from ulam.tools import ulam_main

    if (compiler := shutil.which("cc")) is None:
        pytest.skip("needs a C compiler")
    guide = (Path(__file__).resolve().parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
    (tmp_path / "decay.c").write_text(guide.split("```c\n")[1].split("```")[0])
    (tmp_path / "decay.stan").write_text(DECAY)
    path = tmp_path / "decay.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", path, tmp_path / "decay.c"], check=True)
    assert decays(ulam.external(f"{path}:decay", f"{path}:decay_pullback")) == (-10.0, -19.0)
    words = ["log-density", str(tmp_path / "decay.stan"), "-d", '{"N": 2, "t": [1, 2]}', "--unconstrained", "0", "-O0"]
    assert ulam_main.main([*words, "--no-jacobian", "--external", f"{path}:decay"]) == 0
    assert capsys.readouterr().out == '{"log_density": -10.0, "gradient": [-19.0]}\n'
    assert ulam_main.main([*words, "--external", f"{path}:nothing"]) == 2
    assert "has no function 'nothing'" in capsys.readouterr().err


@pytest.mark.embed
def test_functions_of_numba() -> None:
    numba = pytest.importorskip("numba")
    real, reals, size = numba.types.double, numba.types.CPointer(numba.types.double), numba.types.int64

    @numba.cfunc(numba.types.int32(real, reals, size, reals))
    def decay(rate: float, t: Any, t_size: int, result: Any) -> int:
        result[0] = -((rate * numba.carray(t, t_size).sum()) ** 2)
        return 0

    @numba.cfunc(numba.types.int32(real, reals, size, real, reals, reals))
    def pullback(rate: float, t: Any, t_size: int, adjoint: float, rate_adjoint: Any, t_adjoint: Any) -> int:
        total = numba.carray(t, t_size).sum()
        rate_adjoint[0] = -2 * rate * total * total * adjoint
        for i in range(t_size):
            t_adjoint[i] = -2 * rate * rate * total * adjoint
        return 0

    assert decays(ulam.external(decay, pullback)) == (-10.0, -19.0)


def test_an_interrupt_waits_for_the_function() -> None:
    import os
    import signal

    ended: list[float] = []

    def slow(x: float) -> float:
        try:
            os.kill(os.getpid(), signal.SIGINT)
            return x
        finally:  # Python raises in here
            ended.append(x)

    model = ulam.StanModel(SQUARE, external={"f": ulam.external(slow, square_pullback)}, opt_level=0)
    with pytest.raises(KeyboardInterrupt):
        model.optimize(init={"x": 2.0})
    assert len(ended) == 1
    assert ulam.StanModel(SQUARE, external={"f": ulam.external(square, square_pullback)}).log_density([2.0]) == -4.0


CONTAINERS = """
functions { array[] matrix f(array[] matrix a, array[] vector b, row_vector r, array[,] int k); }
data { array[2] matrix[2, 3] a; }
parameters { array[2] vector[3] b; row_vector[2] r; }
model {
  array[2] matrix[2, 3] y = f(a, b, r, {{1, 2}, {3, 4}});
  array[2] matrix[2, 3] z;
  for (i in 1:2) {
    target += sum(y[i] .* a[i]);
    z[i] = y[i] * b[1, 1];
  }
  y = f(z, b, r, {{1, 2}, {3, 4}});
  target += y[1, 2, 3] - y[2, 1, 2];
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
def test_containers_are_laid_out_as_told(level: int) -> None:
    k = np.array([[1, 2], [3, 4]])

    def scaled(a: Any, b: Any, r: Any, k: Any) -> Any:
        return a * b[:, None, :] * r[None, :, None] + k.sum()

    def pullback(a: Any, b: Any, r: Any, k: Any, g: Any) -> tuple[Any, ...]:
        along = (g * a * r[None, :, None]).sum(1), (g * a * b[:, None, :]).sum((0, 2))
        return g * b[:, None, :] * r[None, :, None], *along

    a = np.random.default_rng(1).normal(size=(2, 2, 3))
    given = {"f": ulam.external(scaled, pullback, shape="a")}
    model = ulam.StanModel(CONTAINERS, {"a": a.tolist()}, opt_level=level, external=given)
    point = np.linspace(-1, 1, 8)
    b, r = point[:6].reshape(2, 3), point[6:]
    y = scaled(a, b, r, k)
    last = scaled(y * b[0, 0], b, r, k)
    assert model.log_density(point) == pytest.approx((y * a).sum() + last[0, 1, 2] - last[1, 0, 1], rel=1e-12)
    assert_is_gradient(model, point)


NESTED = """
functions {
  real h(real x, real y);
  real repeated(real x, int n) { return n == 0 ? h(x, x) : repeated(h(x, 0.5), n - 1); }
}
parameters { real x; vector[4] v; }
model {
  for (i in 1:4) {
    if (v[i] > 0) target += h(v[i], x); else target += h(x, square(v[i]));
  }
  real s = x;
  int n = 0;
  while (n < 3) { s = h(s, v[1]); n += 1; }
  target += s + repeated(x, 3);
}
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 2, 3])
def test_loops_branches_and_recursion(level: int) -> None:
    def h(x: float, y: float) -> float:
        return np.sin(x) * np.cos(y) + x

    def pullback(x: float, y: float, adjoint: float) -> tuple[float, float]:
        return adjoint * (np.cos(x) * np.cos(y) + 1), -adjoint * np.sin(x) * np.sin(y)

    model = ulam.StanModel(NESTED, opt_level=level, external={"h": ulam.external(h, pullback)})
    assert_is_gradient(model, np.array([0.3, 0.5, -0.4, 1.2, -2.0]))


def assert_is_gradient(model: ulam.StanModel, point: Any) -> None:
    steps = np.eye(point.size) * 1e-6
    differences = [(model.log_density(point + h) - model.log_density(point - h)) / 2e-6 for h in steps]
    assert model.log_density_gradient(point)[1] == pytest.approx(differences, abs=1e-7)


@pytest.mark.parametrize("address", [0, -1, ctypes.CFUNCTYPE(ctypes.c_int)()])
def test_no_function_at_an_address(address: Any) -> None:
    with pytest.raises(ArgumentError, match="an address that is none"):
        ulam.external(address)
