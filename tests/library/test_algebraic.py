"""The algebraic solvers: systems with known roots, derivatives with respect to everything, errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ulam import StanModel
from ulam.runtime.errors import FatalError, Rejection
from ulam.trace import NestedCallNode, TraceContext

pytestmark = pytest.mark.usefixtures("quick_code")

SOLVERS = {
    "solve_newton": "solve_newton({f}, {y}, a, b)",
    "solve_newton_tol": "solve_newton_tol({f}, {y}, 1e-8, 1e-10, 100, a, b)",
    "solve_powell": "solve_powell({f}, {y}, a, b)",
    "solve_powell_tol": "solve_powell_tol({f}, {y}, 1e-10, 1e-10, 100, a, b)",
    "algebra_solver": "algebra_solver(fixed, {y}, to_vector({{a, b}}), {{0.5}}, {{2}})",
    "algebra_solver_newton": "algebra_solver_newton(fixed, {y}, to_vector({{a, b}}), {{0.5}}, {{2}}, 1e-8, 1e-9, 1000)",
}
FUNCTIONS = """functions {
  // roots (sqrt(a b), sqrt(b / a))
  vector system(vector y, real a, real b) { return [y[1] - a * y[2], y[1] * y[2] - b]'; }
  vector fixed(vector y, vector theta, data array[] real x_r, data array[] int x_i) {
    return x_r[1] * x_i[1] * system(y, theta[1], theta[2]);
  }
  vector far(vector y, real a, real b) { return [exp(y[1] / 4) - exp(a), y[2] ^ 3 - b, y[3] - y[1] * y[2]]'; }
  vector no_root(vector y, real a, real b) { return [square(y[1]) + 1 + a * a, y[2] - b]'; }
  vector flat(vector y, real a, real b) { return [y[1] ^ 3, y[2] ^ 3 - 0 * a * b]'; }
  vector singular(vector y, real a, real b) { return [square(y[1] - a), y[2] - b]'; }
  vector uneven(vector y, real a, real b) { return [y[1] - a]'; }
  vector undefined(vector y, real a, real b) { return [log(y[1] - 10) + a, y[2] - b]'; }
  vector rejecting(vector y, real a, real b) { if (y[1] > 0.5) reject("too far: ", y[1]); return y - a; }
}
"""


def model_with(call: str, level: int = 3) -> StanModel:
    block = f"parameters {{ real a; real b; }} model {{ vector[2] y = {call}; target += y[1] - 0.5 * y[2]; }}"
    return StanModel(FUNCTIONS + block, opt_level=level)


def of(name: str, f: str = "system", y: str = "[1.0, 1.0]'", level: int = 3) -> StanModel:
    return model_with(SOLVERS[name].format(f=f, y=y), level)


@pytest.mark.parametrize("name", SOLVERS)
@pytest.mark.parametrize("level", [0, 3])
def test_known_root(name: str, level: int) -> None:
    model = of(name, level=level)
    for a, b in ((2.0, 3.0), (0.3, 5.0)):
        value, gradient = model.log_density_gradient(np.array([a, b]))
        assert value == pytest.approx(np.sqrt(a * b) - 0.5 * np.sqrt(b / a), rel=1e-14)
        assert model.log_density(np.array([a, b])) == value
        expected = [0.5 * np.sqrt(b / a) + 0.25 * np.sqrt(b) * a**-1.5, 0.5 * np.sqrt(a / b) - 0.25 / np.sqrt(a * b)]
        np.testing.assert_allclose(gradient, expected, rtol=1e-13)
        hessian = model.log_density_hessian(np.array([a, b]))[2]
        mixed = 0.25 / np.sqrt(a * b) + 0.125 / np.sqrt(b) * a**-1.5
        diagonal = [-0.25 * np.sqrt(b) * a**-1.5 - 0.375 * np.sqrt(b) * a**-2.5,
                    -0.25 * np.sqrt(a) * b**-1.5 + 0.125 / np.sqrt(a) * b**-1.5]  # fmt: skip
        np.testing.assert_allclose(hessian, [[diagonal[0], mixed], [mixed, diagonal[1]]], rtol=1e-12)


def roots(f: str, y: str, a: float, b: float, name: str = "solve_powell") -> np.ndarray:
    program = (
        FUNCTIONS + "data { real a; real b; } generated quantities { vector[" + str(y.count(",") + 1) + "] y = "
        f"{SOLVERS[name].format(f=f, y=y)}; }}"
    )
    model = StanModel(program, {"a": a, "b": b})
    return model.param_constrain(np.zeros(0), include_gq=True, rng=model.new_rng(1))


@pytest.mark.parametrize("name", ["solve_newton", "solve_powell"])
def test_from_far_away(name: str) -> None:
    """Newton's steps alone overflow here; from a point where the Jacobian is singular, they are none."""
    np.testing.assert_allclose(roots("far", "[-8.0, 20.0, 5.0]'", 1.5, 2.0, name), [6, 2 ** (1 / 3), 6 * 2 ** (1 / 3)])
    np.testing.assert_allclose(roots("system", "[0.0, 1.0]'", 2.0, 3.0, name), np.sqrt([6, 1.5]))
    np.testing.assert_allclose(roots("singular", "[3.0, 0.0]'", 2.0, 3.0, name), [2, 3], atol=1e-3)
    np.testing.assert_allclose(roots("flat", "[1.0, -1.0]'", 2.0, 3.0, name), [0, 0], atol=1e-2)


def test_a_guess_that_is_the_root() -> None:
    assert roots("system", "[2.0, 1.0]'", 2.0, 2.0).tolist() == [2.0, 1.0]


def test_guesses_have_no_derivative() -> None:
    program = FUNCTIONS + (
        "parameters { real a; real b; vector[2] guess; } model { target += sum(solve_newton(system, guess, a, b)); }"
    )
    gradient = StanModel(program).log_density_gradient(np.array([2.0, 3.0, 1.0, 1.1]))[1]
    assert gradient[2:].tolist() == [0.0, 0.0] and (gradient[:2] != 0).all()


def test_large_systems() -> None:
    """More than 24 equations are solved by the runtime."""
    program = """functions {
      vector chain(vector y, vector x) { int n = num_elements(y); vector[n] r = 3 * y + 0.1 * y .* y - x;
        for (i in 2:n) r[i] += y[i - 1]; return r; }
    }
    parameters { vector[30] x; }
    model { target += dot_self(solve_newton(chain, rep_vector(0, 30), x)); }"""
    model = StanModel(program)
    x = np.linspace(-1, 2, 30)
    gradient = model.log_density_gradient(x)[1]
    steps = 1e-5 * np.eye(30)
    expected = [(model.log_density(x + e) - model.log_density(x - e)) / 2e-5 for e in steps]
    np.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("f", "kind", "message"),
    [
        ("no_root", Rejection, "norm_of_f is 1.* but must be at most the function tolerance"),
        ("undefined", Rejection, "norm_of_f is inf, but must be at most"),
        ("rejecting", Rejection, "too far: 1"),
        ("uneven", FatalError, "the function returns 1 elements, but its argument has 2"),
    ],
)
def test_no_root(f: str, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        of("solve_newton", f).log_density(np.array([0.5, 0.25]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("solve_newton(system, rep_vector(0, 0), a, b)", "must be at least 1"),
        ("solve_newton(system, [not_a_number(), 1]', a, b)", "y_guess.*must be finite"),
        ("solve_newton(system, [1, 1]', a, positive_infinity())", "must be finite"),
        ("solve_powell_tol(system, [1, 1]', -1, 1e-6, 100, a, b)", "must be nonnegative"),
        ("solve_powell_tol(system, [1, 1]', 1e-6, -1, 100, a, b)", "f_tol.*must be nonnegative"),
        ("solve_powell_tol(system, [1, 1]', 1e-6, 1e-6, 0, a, b)", "max_num_steps.*must be positive"),
        ("solve_powell_tol(system, [1, 1]', 1e-6, 1e-12, 2, a, b)", "must be at most max_num_steps, 2: no root"),
    ],
)
def test_bad_arguments(call: str, message: str) -> None:
    with pytest.raises(Rejection, match=message):
        model_with(call).log_density(np.array([2.0, 3.0]))


def test_trace() -> None:
    """Each Jacobian is one call of the system."""
    program = FUNCTIONS.rpartition("}")[0] + (
        "  real root(real a, real b) { return solve_newton(system, [1, 1]', a, b)[1]; }\n}"
    )
    model = StanModel(program)
    root: Any = model.track("root", 2.0, 3.0, context=TraceContext(enter={"*", "solve_newton"}))
    assert root.value == model.track("root", 2.0, 3.0).value == pytest.approx(np.sqrt(6), rel=1e-15)
    solver = next(node for node in root if isinstance(node, NestedCallNode))
    calls = [node for node in solver if isinstance(node, NestedCallNode)]
    assert 4 < len(calls) < 15 and abs(calls[-1].value).max() < 1e-14
    norms = [np.linalg.norm(call.value) for call in calls]
    assert norms[0] > norms[2] > norms[4]
    assert root.trace.adjoint() == pytest.approx({"a": 0.5 * np.sqrt(1.5), "b": 0.5 * np.sqrt(2 / 3)}, rel=1e-13)
