"""Recursive functions: values against closed forms, gradients against central differences, errors, deep recursion."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.errors import FatalError, Rejection

pytestmark = pytest.mark.usefixtures("quick_code")

FUNCTIONS = """
functions {
  int factorial(int n) { if (n <= 1) return 1; return n * factorial(n - 1); }
  real power(real x, int n) { return n == 0 ? 1 : x * power(x, n - 1); }
  real fibonacci(real x, int n) { if (n < 2) return x * n; return sin(fibonacci(x, n - 1)) + fibonacci(x, n - 2) * x; }
  int is_odd(int n);
  int is_even(int n) { if (n == 0) return 1; return is_odd(n - 1); }
  int is_odd(int n) { if (n == 0) return 0; return is_even(n - 1); }
  vector reversed(vector v) {
    int n = size(v);
    if (n <= 1) return v;
    return append_row(v[n], reversed(v[1:n - 1]));
  }
  matrix power_of(matrix m, int n) {
    if (n == 0) return identity_matrix(rows(m));
    matrix[rows(m), cols(m)] half = power_of(m, n %/% 2);
    return n % 2 ? half * half * m : half * half;
  }
  real pong(real x, vector v, int n);
  real ping(real x, vector v, int n) { return n == 0 ? x : pong(x * v[1], v * 0.9, n - 1); }
  real pong(real x, vector v, int n) { return n == 0 ? -x : ping(x + v[2], v .* v, n - 1); }
  real loops(real x, int n, vector w) {
    real s = 0;
    if (n == 0) return sum(w) * x;
    for (i in 1:n) s += loops(x * w[i], i - 1, w) * i;
    return s;
  }
  real meanwhile(real x, int n) {
    real y = x;
    int k = 0;
    while (y < 10 && k < n) { y = y + meanwhile(y * 0.5, n - 1) * 0.1 + 1; k += 1; }
    return y * y;
  }
  real mixed(vector v, array[] int k, int n) {
    if (n == 0) return sum(v) * k[1];
    return mixed(v .* v, {k[1] + 1, k[2]}, n - 1) * k[2];
  }
  vector partly(vector v, vector d, int n) {
    vector[size(v)] a = v;
    if (n == 0) return d;
    if (n == 1) a = d;
    for (i in 1:size(v)) a[i] = a[i] * sum(partly(v * 0.5, d, n - 1));
    return a;
  }
  tuple(real, vector) paired(tuple(real, vector) t, int n) {
    if (n == 0) return t;
    return paired((t.1 * t.2[1], t.2 * t.1 + 1), n - 1);
  }
  real chain_lpdf(real y, real x, int n) {
    if (n == 0) return normal_lupdf(y | x, 1);
    return normal_lupdf(y | x, n) + chain_lupdf(y | x * 2, n - 1);
  }
  void steps_lp(real x, int n) {
    if (n == 0) return;
    x ~ normal(0, n);
    target += sin(x * n);
    steps_lp(x * 1.1, n - 1);
  }
  real reads_lp(real x, int n) {
    real t = target();
    if (n == 0) return t;
    target += t * x;
    return x * reads_lp(x * t, n - 1) + target();
  }
  real checked(vector v, int n) { return n == 0 ? v[5] : checked(v, n - 1); }
  real rejecting(real x, int n) { if (n == 0) reject("too small: ", x); return rejecting(x, n - 1); }
  real chatty(real x, int n) { print(n); return n == 0 ? x : chatty(x, n - 1); }
  real walk_rng(real x, int n) { return n == 0 ? x : walk_rng(x + std_normal_rng(), n - 1); }
  int endless(int n) { return n == -1 ? 0 : 1 + endless(n + 1); }
  real deep(real x, int n) { return n == 0 ? x : sin(deep(x + 1, n - 1)); }
}
"""


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def model(text: str, data: Any = None, level: int = 3) -> ulam.StanModel:
    return ulam.StanModel(FUNCTIONS + text, data, opt_level=level)


def differences(m: ulam.StanModel, theta: np.ndarray) -> np.ndarray:
    result = np.empty_like(theta)
    for i in range(len(theta)):
        step = np.zeros_like(theta)
        step[i] = 1e-5
        up, down = (m.log_density(theta + s, propto=False) for s in (step, -step))
        result[i] = (up - down) / 2e-5
    return result


# ---------------------------------------------------------------- values


def test_values_in_all_blocks() -> None:
    m = model("""
        data { int n; }
        transformed data {
          int td = factorial(n);
          vector[3] turned = reversed([1.0, 2, 3]');
        }
        parameters { vector[3] w; }
        transformed parameters { real cube = power(w[1], 3); }
        model { target += dot_product(reversed(w), turned); }
        generated quantities {
          int even = is_even(7);
          int odd = is_odd(7);
          int f = factorial(6);
          int fixed = td;
          vector[3] r = reversed(w);
          matrix[2, 2] p = power_of([[1, 1], [1, 0]], 10);
        }
    """, {"n": 5})  # fmt: skip
    w = np.array([2.0, 3.0, 5.0])
    assert m.log_density(w) == 5 * 3 + 3 * 2 + 2 * 1
    names = m.param_names(include_tp=True, include_gq=True)
    values = m.param_constrain(w, include_tp=True, include_gq=True, rng=m.new_rng(1))
    got = dict(zip(names, values, strict=True))
    assert (got["cube"], got["even"], got["odd"], got["f"], got["fixed"]) == (8, 0, 1, 720, 120)
    assert [got[f"r.{i}"] for i in (1, 2, 3)] == [5, 3, 2]
    assert [got[f"p.{i}"] for i in ("1.1", "2.1", "1.2", "2.2")] == [89, 55, 55, 34]


def test_density_passes_the_dropping_on() -> None:
    m = model("parameters { real x; } model { x ~ chain(1.5, 2); }")
    x = np.array([0.3])

    def exponent(mean: float, scale: float) -> float:
        return -0.5 * ((0.3 - mean) / scale) ** 2

    dropped = exponent(1.5, 2) + exponent(3, 1) + exponent(6, 1)
    full = dropped - math.log(2) - 1.5 * math.log(2 * math.pi)
    assert m.log_density(x, propto=True) == pytest.approx(dropped, rel=1e-14)
    assert m.log_density(x, propto=False) == pytest.approx(full, rel=1e-14)


def test_target_of_recursive_functions() -> None:
    m = model("parameters { real x; } model { steps_lp(x, 2); target += reads_lp(x, 1); }")
    x = 0.3
    before = -0.5 * (x / 2) ** 2 + math.sin(2 * x) - 0.5 * (x * 1.1) ** 2 + math.sin(x * 1.1)
    after = before + before * x
    expected = after + x * after + after
    assert m.log_density(np.array([x])) == pytest.approx(expected, rel=1e-14)


def test_prints_and_draws_come_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    m = model("""
        parameters { real x; }
        model { target += chatty(x, 3); }
        generated quantities { real w = walk_rng(x, 9); }""")  # fmt: skip
    assert m.log_density(np.array([2.0])) == 2.0
    assert capsys.readouterr().out.split() == ["3", "2", "1", "0"]
    draws = [m.param_constrain(np.array([2.0]), include_gq=True, rng=m.new_rng(s))[1] for s in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


# ---------------------------------------------------------------- gradients

GRADIENTS = {
    "scalar": ("parameters { real x; } model { target += power(x, 3); }", [1.5]),
    "two calls": ("parameters { real x; } model { target += fibonacci(x, 7); }", [0.7]),
    "container": ("parameters { vector[4] w; } model { target += dot_product(reversed(w), [1, 2, 3, 4]'); }",
                  [1, 2, 3, 4]),
    "mutual": ("parameters { real x; vector[2] v; } model { target += ping(x, v, 5) * x; }", [0.7, 1.1, 1.2]),
    "in a loop of the function": ("parameters { real x; vector[4] w; } model { target += loops(x, 4, w); }",
                                  [0.7, 1.1, 1.2, 0.3, 0.4]),
    "in a while": ("parameters { real x; } model { target += meanwhile(x, 3); }", [0.7]),
    "matrix": ("parameters { real x; } model { target += sum(power_of([[x, 1], [2, x * x]], 5)); }", [0.7]),
    "in loops and branches of the model": ("""
        transformed data { vector[3] y = [1, 2, 3]'; }
        parameters { real x; }
        model {
          real s = 0;
          for (i in 1:3) target += fibonacci(x * y[i], i);
          for (i in 1:3) y[i] ~ normal(power(x, i), 1);
          for (i in 1:4) s += fibonacci(x, i) * s + 1;
          if (x > 0) target += power(x, 2) * s;
        }""", [0.7]),
    "carried container": ("""
        parameters { real x; vector[3] w; }
        model { vector[3] u = w; for (i in 1:3) u = reversed(u) * x + w; target += sum(u .* w); }""", [0.7, 1, 2, 3]),
    "data, parameters or both": ("""
        transformed data { vector[3] y = [1, 2, 3]'; }
        parameters { real x; vector[3] p; }
        model {
          target += mixed(y, {1, 2}, 2) * x + mixed(p, {2, 3}, 3) + mixed(x > 0 ? y * x : p, {1, 1}, 1);
          target += sum(partly(p, y, 3)) + sum(partly(p, p, 2)) + sum(partly(y, y, 2)) + sum(partly(y, p, 2));
        }""", [0.3, 0.1, 0.2, 0.3]),
    "tuples": ("parameters { vector[3] p; } model { target += sum(paired((p[1], p), 3).2) + paired((p[1], p), 3).1; }",
               [0.1, 0.2, 0.3]),
    "target": ("parameters { real x; } model { steps_lp(x, 3); target += reads_lp(x, 3); x ~ chain(x * x, 3); }",
               [0.3]),
}  # fmt: skip


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name: str, level: int) -> None:
    text, point = GRADIENTS[name]
    m = model(text, level=level)
    theta = np.asarray(point, dtype=float)
    value, gradient = m.log_density_gradient(theta, propto=False)
    assert value == pytest.approx(m.log_density(theta, propto=False), rel=1e-12)
    expected = differences(m, theta)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


ADJOINT = (
    "ode_adjoint_tol_ctl(f, [p[1]]', 0.0, {1.0, 2.0}, 1e-8, [1e-8]', 1e-8, [1e-8]', 1e-8, 1e-8, 100000, 100, 1, 2, 2"
)
CURVE = {
    "called again and again": """
        real curve(real x, vector v, int n) {
          return n == 0 ? x + v[1] : curve(x * v[2], 0.9 * v, n - 1) + 0.1 * x^2;
        }""",
    "written out": """
        real curve0(real x, vector v) { return x + v[1]; }
        real curve1(real x, vector v) { return curve0(x * v[2], 0.9 * v) + 0.1 * x^2; }
        real curve(real x, vector v, int n) { return curve1(x * v[2], 0.9 * v) + 0.1 * x^2; }""",
}  # fmt: skip
SOLVED = {
    "differential equation": ("vector f(real t, vector y, vector v) { return [curve(y[1], v, 2) - t]'; }",
                              "sum(ode_{method}(f, [p[1]]', 0.0, {{1.0, 2.0}}, p)[2])"),
    "algebraic equation": ("vector f(vector y, vector v) { return [curve(y[1], v, 2) - 2]'; }",
                           "sum(solve_newton(f, [0.5]', p))"),
    "integral": ("""real f(real x, real xc, array[] real v, data array[] real d, data array[] int k) {
                      return curve(x, to_vector(v), 2);
                    }""",
                 "integrate_1d(f, 0, p[2], {{p[1], p[2]}}, {{0.0}}, {{0}})"),
    "Laplace approximation": ("""real f(vector z, vector v, real u) {
                                  return -u * curve(z[1], v, 2)^2 - 0.1 * curve(z[2], v, 2)^4;
                                }
                                matrix k(vector v, real u) { return diag_matrix([1, curve(1, v, 2)]'); }""",
                              "laplace_marginal(f, (p, 1), 2, k, (p, 1))"),
    "slope": ("""vector f(vector y, vector v) { return [curve(y[1], v, 2) - 2]'; }
                 vector g(real t, vector y, vector v) { return [y[1] - solve_newton(f, [0.5]', v)[1]]'; }""",
              "sum(ode_rk45(g, [p[1]]', 0.0, {{1.0}}, p)[1])"),
}  # fmt: skip


LONG = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "method", "level"),
    [
        *((name, "rk45", 0) for name in SOLVED),
        *((name, "rk45", 3) for name in ("algebraic equation", "integral")),
        *(pytest.param(name, "rk45", 3, marks=LONG) for name in ("differential equation", "Laplace approximation")),
        *(
            pytest.param("differential equation", method, level, marks=LONG)
            for method in ("bdf", "adjoint")
            for level in (0, 3)
        ),
    ],
)
def test_functions_of_solvers(name: str, method: str, level: int) -> None:
    """Differentiated in place, by reverse or by forward mode, they are what they are when they are written out."""
    function, term = SOLVED[name]
    term = term.format(method=method)
    if method == "adjoint":
        term = term.replace("ode_adjoint(f, [p[1]]', 0.0, {1.0, 2.0}", ADJOINT)
    found = []
    for curve in CURVE.values():
        m = ulam.StanModel(
            f"functions {{ {curve} {function} }} parameters {{ vector[2] p; }} model {{ target += {term}; }}",
            opt_level=level, cache=False,
        )  # fmt: skip
        theta = np.array([0.3, 0.7])
        of_second_order = (m.log_density_hessian(theta)[2],) if level == 0 and name in {"integral", "slope"} else ()
        found.append((*m.log_density_gradient(theta), *of_second_order))
    for recursive, written in zip(*found, strict=True):
        np.testing.assert_allclose(recursive, written, rtol=1e-9)


def test_gradient_of_deep_recursion() -> None:
    m = model("parameters { real x; } model { target += deep(x, 10000); }")
    x, derivative = 1.0 + 10000, 1.0
    for _ in range(10000):
        derivative *= math.cos(x)
        x = math.sin(x)
    value, gradient = m.log_density_gradient(np.array([1.0]))
    assert value == pytest.approx(x, rel=1e-12)
    assert gradient[0] == pytest.approx(derivative, rel=1e-9)


def test_memory_is_given_back() -> None:
    """2^16 calls that each take a vector would need 32 MB."""
    m = model("""
        parameters { vector[3] w; }
        model { target += loops(1, 16, append_row(w, rep_vector(1, 13))); }
    """)
    before = m.log_density(np.ones(3))
    assert before == pytest.approx(m.log_density(np.ones(3)))
    assert math.isfinite(before)


# ---------------------------------------------------------------- errors


@pytest.mark.parametrize("entry", ["log_density", "log_density_gradient"])
def test_errors_come_through_all_calls(entry: str) -> None:
    m = model("parameters { vector[3] v; } model { target += checked(v, 4); }")
    with pytest.raises(FatalError, match="5"):
        getattr(m, entry)(np.zeros(3))
    m = model("parameters { real x; } model { target += rejecting(x, 4); }")
    with pytest.raises(Rejection, match="too small: 0.5"):
        getattr(m, entry)(np.array([0.5]))


def test_recursion_without_end_is_an_error() -> None:
    m = model("""
        parameters { real x; }
        model { target += deep(x, 100); if (x > 3) target += endless(0) + deep(x, 1000000000); }""")  # fmt: skip
    for entry in (m.log_density, m.log_density_gradient):
        with pytest.raises(FatalError, match="calls itself too often"):
            entry(np.array([4.0]))
        entry(np.array([1.0]))  # the model is still of use


@pytest.mark.parametrize("kilobytes", [64, 256, 1024])
def test_recursion_without_end_in_threads_with_small_stacks(kilobytes: int) -> None:
    m = model("parameters { real x; } model { target += deep(x, 1000000000); }")
    with pytest.raises(FatalError, match="calls itself too often"):
        m.log_density_gradient(np.array([4.0]))
    errors: list[str] = []

    def run() -> None:
        try:
            m.log_density_gradient(np.array([4.0]))
        except FatalError as error:
            errors.append(str(error))

    before = threading.stack_size(kilobytes * 1024)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert len(errors) == 1 and "calls itself too often" in errors[0]


def test_endless_recursion_on_data_is_a_data_time_error() -> None:
    with pytest.raises(FatalError, match="calls itself too often"):
        model("transformed data { int n = endless(0); } parameters { real x; } model { }")
