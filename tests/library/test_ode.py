"""The ODE solvers: systems with known solutions, derivatives with respect to everything, Stan's steps, errors."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from xdsl.dialects import scf

import ulam
from ulam.dialects import rt
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler
from ulam.runtime.errors import Rejection

pytestmark = pytest.mark.usefixtures("quick_code")

VARIADIC = ["ode_rk45", "ode_ckrk", "ode_adams", "ode_bdf"]
FIXED = ["integrate_ode", "integrate_ode_rk45", "integrate_ode_adams", "integrate_ode_bdf"]
TIMES = [0.3, 0.5, 0.5, 2.0, 7.5]


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ULAM_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def model(code: str, **data: Any) -> ulam.StanModel:
    return ulam.StanModel(code, data=json.dumps(data))


def central_differences(function: Any, theta: np.ndarray, step: float = 1e-4) -> np.ndarray:
    return np.array(
        [(function(theta + step * e) - function(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    )


# ---------------------------------------------------------------- closed forms

OSCILLATOR = """
functions {
  vector oscillator(real t, vector y, real omega, tuple(real, array[] int) rest) {
    return [y[2] * rest.2[2], -square(omega) * y[1] - rest.1 * y[2]]';
  }
}
data { int N; array[N] real ts; }
parameters { vector[2] y0; real omega; real damping; }
transformed parameters {
  array[N] vector[2] y = SOLVER(oscillator, y0, 0.5, ts, ARGUMENTS omega, (damping, {7, 1}));
}
model { for (n in 1:N) target += y[n, 1] + 0.5 * n * y[n, 2]; }
"""


def oscillation(theta: np.ndarray, ts: np.ndarray) -> float:
    """Sum of what the program above adds to its target."""
    (x0, v0), omega, damping = theta[:2], theta[2], theta[3]
    s, rate = ts - 0.5, 0.5 * damping
    w = np.sqrt(omega**2 - rate**2)
    a, b = x0, (v0 + rate * x0) / w
    x = np.exp(-rate * s) * (a * np.cos(w * s) + b * np.sin(w * s))
    v = np.exp(-rate * s) * ((b * w - rate * a) * np.cos(w * s) - (a * w + rate * b) * np.sin(w * s))
    return float(np.sum(x + 0.5 * np.arange(1, len(ts) + 1) * v))


@pytest.mark.parametrize("solver", VARIADIC)
@pytest.mark.parametrize("tolerances", ["", "1e-9, 1e-9, 100000,"])
def test_oscillator(solver: str, tolerances: str) -> None:
    ts = np.array(TIMES) + 0.5
    name = f"{solver}_tol" if tolerances else solver
    m = model(OSCILLATOR.replace("SOLVER", name).replace("ARGUMENTS", tolerances), N=len(ts), ts=list(ts))
    theta = np.array([0.7, -0.4, 1.3, 0.2])
    value, gradient = m.log_density_gradient(theta)
    accuracy = 1e-7 if tolerances or solver in ("ode_adams", "ode_bdf") else 3e-5
    assert value == pytest.approx(oscillation(theta, ts), rel=accuracy)
    assert m.log_density(theta) == pytest.approx(value, rel=accuracy)
    expected = central_differences(lambda x: oscillation(x, ts), theta)
    np.testing.assert_allclose(gradient, expected, rtol=10 * accuracy, atol=10 * accuracy)


DECAY = """
functions {
  array[] real decay(real t, array[] real y, array[] real theta, data array[] real x_r, data array[] int x_i) {
    return {-theta[1] * y[1] + x_r[x_i[1]], theta[1] * y[1]};
  }
}
data { int N; array[N] real ts; array[2] real x_r; }
parameters { real<lower=0> k; real<lower=0> start; }
transformed parameters {
  array[N, 2] real y = SOLVER(decay, {start, 0}, 0, ts, {k}, x_r, {2});
}
model { target += sum(y[, 1]) - 2 * sum(y[, 2]); }
"""


@pytest.mark.parametrize("solver", FIXED)
def test_exponential_decay(solver: str) -> None:
    ts = np.array(TIMES)
    source = 0.4

    def density(theta: np.ndarray) -> float:
        k, start = np.exp(theta)
        first = source / k + (start - source / k) * np.exp(-k * ts)
        return float(np.sum(first - 2 * (start + source * ts - first)) + np.sum(theta))

    m = model(DECAY.replace("SOLVER", solver), N=len(ts), ts=TIMES, x_r=[9.0, source])
    theta = np.array([-0.3, 0.8])
    value, gradient = m.log_density_gradient(theta)
    assert value == pytest.approx(density(theta), rel=2e-6)
    np.testing.assert_allclose(gradient, central_differences(density, theta), rtol=1e-5)
    constrained = m.param_constrain(theta, include_tp=True)
    assert constrained[2] == pytest.approx(source / np.exp(-0.3) + (np.exp(0.8) - source / np.exp(-0.3))
                                           * np.exp(-np.exp(-0.3) * 0.3), rel=2e-6)  # fmt: skip


STIFF = """
functions {
  vector stiff(real t, vector y, real k) {
    vector[2] result;
    result[1] = -k * (y[1] - cos(t)) - sin(t);
    result[2] = y[1] - y[2];
    return result;
  }
}
data { int N; array[N] real ts; }
parameters { real log_k; vector[2] y0; }
transformed parameters { array[N] vector[2] y = ode_bdf(stiff, y0, 0, ts, exp(log_k)); }
model { for (n in 1:N) target += sum(y[n]); }
"""


def test_stiff_decay() -> None:
    ts = np.array(TIMES)

    def density(theta: np.ndarray) -> float:
        k, u, v = np.exp(theta[0]), theta[1], theta[2]
        first = np.cos(ts) + (u - 1) * np.exp(-k * ts)
        forced = 0.5 * (np.cos(ts) + np.sin(ts) - np.exp(-ts))
        second = v * np.exp(-ts) + forced + (u - 1) * (np.exp(-k * ts) - np.exp(-ts)) / (1 - k)
        return float(np.sum(first + second))

    m = model(STIFF, N=len(ts), ts=TIMES)
    for rate in (0.5, 9.0, 14.0):
        theta = np.array([rate, 3.0, -0.5])
        value, gradient = m.log_density_gradient(theta)
        assert value == pytest.approx(density(theta), rel=1e-8)
        np.testing.assert_allclose(gradient, central_differences(density, theta, 1e-5), rtol=1e-6, atol=1e-8)


MANY_STATES = """
functions {
  vector chain(real t, vector y, matrix A, real f) { return A * y + f * sin(t); }
}
data { int N; matrix[N, N] A; }
parameters { real f; vector[N] y0; }
model { target += sum(SOLVER(chain, y0, 0, {1.0, 2.0}, A, f)[2]); }
"""


@pytest.mark.parametrize("solver", VARIADIC)
def test_kernels_inside_and_systems_beyond_the_small(solver: str) -> None:
    n = 11
    generator = np.random.default_rng(3)
    matrix = -2 * np.eye(n) + 0.3 * generator.normal(size=(n, n))
    m = model(MANY_STATES.replace("SOLVER", solver), N=n, A=matrix.tolist())
    theta = generator.normal(size=n + 1)
    value, gradient = m.log_density_gradient(theta)
    # y = e^{At} y0 + f int e^{A(t-s)} sin(s) 1 ds, by diagonalisation
    w, v = np.linalg.eig(matrix)
    t = 2.0
    forced = (np.exp(w * t) - np.cos(t) - w * np.sin(t)) / (1 + w**2)
    propagator = (v * np.exp(w * t)) @ np.linalg.inv(v)
    response = (v * forced) @ np.linalg.inv(v) @ np.ones(n)
    expected = np.concatenate([[np.sum(response).real], propagator.real.sum(axis=0)])
    assert value == pytest.approx(float(expected @ theta), rel=1e-5, abs=1e-5)
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=2e-6)


# ---------------------------------------------------------------- derivatives

EVERYTHING = """
functions {
  real rate(real x) { real s = 1; int i = 0; while (i < 3) { s += x * 0.1; i += 1; } return s; }
  vector f(real t, vector y, matrix a, array[] vector b, real c) {
    vector[2] result = a * y + b[2];
    for (i in 1:2) result[i] += t > 0.7 ? c * tanh(y[i]) : c * rate(y[i]) - c;
    return result - 0.1 * t * y;
  }
}
parameters { vector[2] y0; real t0; ordered[3] ts; matrix[2, 2] a; array[2] vector[2] b; real c; }
model {
  array[3] vector[2] y = SOLVER(f, y0, t0 - 5, to_array_1d(ts), 1e-8, 1e-8, 100000, a, b, c);
  for (n in 1:3) target += (3 - n) * y[n, 1] + y[n, 2];
}
"""


@pytest.mark.parametrize("solver", VARIADIC)
def test_derivatives_with_respect_to_everything(solver: str) -> None:
    m = model(EVERYTHING.replace("SOLVER", f"{solver}_tol").replace("t > 0.7", "c > 0"))
    theta = np.random.default_rng(5).normal(scale=0.3, size=m.param_unc_num())
    _, gradient = m.log_density_gradient(theta)
    expected = central_differences(lambda x: m.log_density(x), theta)
    np.testing.assert_allclose(gradient, expected, rtol=2e-5, atol=2e-5)


NESTED = """
functions {
  vector inner(real t, vector y, real k) { return -k * y; }
  vector outer(real t, vector y, real k) { return ode_rk45(inner, y, 0, {0.5}, k)[1]; }
  real solved(real k, data real start) { return sum(ode_rk45(outer, [start]', 0, {1.0}, k)[1]); }
}
parameters { real k; }
model { target += solved(k, 2); target += ode_rk45(inner, [1, k]', 0, {2.0}, 0.3)[1, 2]; }
"""


def test_solver_in_a_solver_and_in_functions() -> None:
    def density(theta: np.ndarray) -> float:
        return float(2 * np.exp(np.exp(-theta[0] * 0.5)) + theta[0] * np.exp(-0.6))

    m = model(NESTED)
    theta = np.array([0.6])
    value, gradient = m.log_density_gradient(theta)
    assert value == pytest.approx(density(theta), rel=1e-5)
    assert gradient == pytest.approx(central_differences(density, theta), rel=1e-4)


# ---------------------------------------------------------------- Stan's steps

LOOSE = """
functions { vector f(real t, vector y, real a) { return [a * y[1] - y[1] * y[2], y[1] * y[2] - y[2]]'; } }
parameters { real a; }
transformed parameters {
  array[2] vector[2] y = ode_SOLVER_tol(f, [1, 0.5]', 0, {2.5, 6.0}, 1e-2, 1e-2, 1000, a);
}
model { target += y[2, 1]; }
"""


def boost_steps(solver: str, a: float, *, sensitivities: bool) -> np.ndarray:
    """The states at 6.0 by Boost's controlled Cash-Karp method, written once more; steps end at the times."""
    assert solver == "ckrk"
    nodes = [0, 0.2, 0.3, 0.6, 1, 0.875]
    rows = [
        [], [1 / 5], [3 / 40, 9 / 40], [3 / 10, -9 / 10, 6 / 5], [-11 / 54, 5 / 2, -70 / 27, 35 / 27],
        [1631 / 55296, 175 / 512, 575 / 13824, 44275 / 110592, 253 / 4096],
    ]  # fmt: skip
    weights = np.array([37 / 378, 0, 250 / 621, 125 / 594, 0, 512 / 1771])
    lower = np.array([2825 / 27648, 0, 18575 / 48384, 13525 / 55296, 277 / 14336, 1 / 4])

    def f(_: float, z: np.ndarray) -> np.ndarray:
        u, v = z[:2]
        value = [a * u - u * v, u * v - v]
        if sensitivities:
            value += [(a - v) * z[2] - u * z[3] + u, v * z[2] + (u - 1) * z[3]]
        return np.array(value)

    z = np.array([1, 0.5, 0, 0] if sensitivities else [1, 0.5])
    t, h = 0.0, 0.1
    for end in (2.5, 6.0):
        while end - t > np.finfo(float).eps:
            step = min(h, end - t)
            k: list[np.ndarray] = []
            for node, row in zip(nodes, rows, strict=True):
                k.append(f(t + node * step, z + step * sum((w * x for w, x in zip(row, k, strict=True)), 0 * z)))
            difference = step * np.abs((weights - lower) @ np.array(k))
            error = np.max(difference / (1e-2 + 1e-2 * (np.abs(z) + np.abs(step * k[0]))))
            if error > 1:
                h = step * max(0.9 * error ** (-1 / 3), 0.2)
            else:
                t, z = t + step, z + step * (weights @ np.array(k))
                h = max(h, step * 0.9 * max(5.0**-5, error) ** -0.2 if error < 0.5 else step)
    return z


def test_loose_tolerances_give_stans_steps() -> None:
    """Sensitivities take part in the control of the step size exactly where a gradient is taken."""
    m = model(LOOSE.replace("SOLVER", "ckrk"))
    theta = np.array([0.9])
    value, gradient = m.log_density_gradient(theta)
    with_sensitivities = boost_steps("ckrk", 0.9, sensitivities=True)
    assert value == pytest.approx(with_sensitivities[0], rel=1e-12)
    assert gradient[0] == pytest.approx(with_sensitivities[2], rel=1e-12)
    without = boost_steps("ckrk", 0.9, sensitivities=False)
    assert m.log_density(theta) == pytest.approx(without[0], rel=1e-12)
    assert m.param_constrain(theta, include_tp=True)[2] == pytest.approx(without[0], rel=1e-12)
    assert abs(without[0] - with_sensitivities[0]) > 1e-6


# ---------------------------------------------------------------- data only, errors

PREPARED = """
functions { vector f(real t, vector y, data real k) { return -k * y; } }
transformed data { array[2] vector[1] y = ode_rk45(f, [1]', 0, {1.0, 2.0}, 0.5); }
parameters { real x; }
model { target += x * y[2, 1] + x * ode_bdf(f, [1]', 0, {2.0}, 0.5)[1, 1]; }
generated quantities { real z = ode_ckrk(f, [x]', 0, {2.0}, 0.5)[1, 1]; }
"""


def test_data_and_generated_quantities() -> None:
    m = model(PREPARED)
    value, gradient = m.log_density_gradient(np.array([3.0]))
    assert gradient[0] == pytest.approx(2 * np.exp(-1), rel=1e-6)
    assert value == pytest.approx(3 * gradient[0])
    assert m.param_constrain(np.array([3.0]), include_gq=True, rng=m.new_rng(1))[1] == pytest.approx(
        3 * np.exp(-1), rel=1e-6
    )


ERRORS = """
functions { vector f(real t, vector y, vector k) { return k[1] * square(y); } }
data { array[2] real ts; real t0; real rel_tol; real abs_tol; int steps; }
parameters { vector[1] y0; vector[1] k; }
model { target += sum(SOLVER(f, y0, t0, ts, rel_tol, abs_tol, steps, k)[2]); }
"""
GOOD: dict[str, Any] = {"ts": [1.0, 2.0], "t0": 0.0, "rel_tol": 1e-6, "abs_tol": 1e-6, "steps": 1000}


@pytest.mark.parametrize("solver", VARIADIC)
@pytest.mark.parametrize(
    ("changed", "theta", "message"),
    [
        ({}, [np.inf, 0.1], "y0"),
        ({}, [1.0, np.nan], "finite"),
        ({"ts": [2.0, 1.0]}, [1.0, 0.1], "greater than or equal to 2"),
        ({"t0": 1.0}, [1.0, 0.1], "less than 1"),
        ({"rel_tol": 0.0}, [1.0, 0.1], "rel_tol"),
        ({"abs_tol": -1.0}, [1.0, 0.1], "abs_tol"),
        ({"steps": 0}, [1.0, 0.1], "max_num_steps"),
        ({"steps": 2}, [1.0, 0.1], "max_num_steps"),
        ({}, [2.0, 0.5], "must be (at most|greater)"),  # infinite at time 1
    ],
)  # fmt: skip
def test_errors(solver: str, changed: dict[str, Any], theta: list[float], message: str) -> None:
    m = model(ERRORS.replace("SOLVER", f"{solver}_tol"), **{**GOOD, **changed})
    for evaluate in (m.log_density_gradient, m.log_density):
        with pytest.raises(ulam.runtime.errors.Rejection, match=message):
            evaluate(np.array(theta))


def test_errors_name_the_line_of_the_call_or_of_the_function() -> None:
    code = ERRORS.replace("SOLVER", "ode_rk45_tol")
    with pytest.raises(Rejection, match="line 5"):
        model(code, **GOOD).log_density(np.array([np.nan, 1.0]))
    with pytest.raises(Exception, match="line 2.*"):
        model(code.replace("k[1]", "k[2]"), **GOOD).log_density_gradient(np.array([1.0, 1.0]))
    with pytest.raises(Exception, match="returns 2 elements"):
        model(code.replace("k[1] * square(y)", "[1, 2]'"), **GOOD).log_density_gradient(np.array([1.0, 1.0]))


def solutions(solver: str, count: int) -> str:
    """A program that solves so many systems."""
    systems = "".join(f"vector f{k}(real t, vector y, real a) {{ return -(a + {k}) * y; }} " for k in range(count))
    terms = "".join(f"target += sum({solver}(f{k}, y0, 0.0, {{1.5, 2.5}}, a)[2]); " for k in range(count))
    return f"functions {{ {systems}}} parameters {{ real a; vector[2] y0; }} model {{ {terms}}}"


def test_parts_of_solvers_are_there_once() -> None:
    """From the third system on what calls no function of the program is called."""
    level = CompileOptions(3)
    modules = [
        Compiler(solutions("ode_bdf", n), options=level).module_at("loops", "gradient_propto") for n in (1, 2, 4)
    ]
    one, two, four = (sum(1 for _ in module.walk()) for module in modules)
    assert four - two < 2 * 0.75 * one


@pytest.mark.parametrize("solver", ["ode_rk45", "ode_ckrk", "ode_adams", "ode_bdf"])
def test_steps_keep_no_memory(solver: str) -> None:
    """No loop hands memory on, so that what a step takes is given back at its end."""
    module = Compiler(solutions(solver, 2), options=CompileOptions(3)).module_at("lowered", "gradient_propto")
    loops = [op for op in module.walk() if isinstance(op, scf.WhileOp)]
    assert loops
    for loop in loops:
        assert not any(isinstance(value.type, rt.BufferType) for value in loop.before_region.block.args)
