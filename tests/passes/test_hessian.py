"""Second derivatives, by forward over reverse mode: against known ones and against differences of gradients."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from gradient_programs_library import PROGRAMS, point

from ulam.library.kernels import KERNELS
from ulam.runtime.c_library import library
from ulam.runtime.errors import Rejection
from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

Vector = np.ndarray


def test_quadratic_form() -> None:
    """A Gaussian's Hessian is minus its precision."""
    precision = np.array([[2.0, 0.4, -0.3], [0.4, 1.5, 0.2], [-0.3, 0.2, 0.9]])
    model = StanModel(
        "data { matrix[3, 3] P; } parameters { vector[3] x; } model { target += -0.5 * quad_form(P, x); }",
        {"P": precision},
    )
    value, gradient, hessian = model.log_density_hessian(np.array([0.3, -1.0, 2.0]))
    np.testing.assert_allclose(hessian, -precision, rtol=1e-14)
    np.testing.assert_allclose(gradient, -precision @ [0.3, -1.0, 2.0], rtol=1e-14)
    assert value == model.log_density(np.array([0.3, -1.0, 2.0]))


def test_rosenbrock() -> None:
    model = StanModel(
        "parameters { real x; real y; } model { target += -(100 * square(y - square(x)) + square(1 - x)); }"
    )
    x, y = -1.2, 1.0
    hessian = -np.array([[1200 * x * x - 400 * y + 2, -400 * x], [-400 * x, 200]])
    np.testing.assert_allclose(model.log_density_hessian(np.array([x, y]))[2], hessian, rtol=1e-14)
    product = model.log_density_hessian_vector_product(np.array([x, y]), np.array([0.5, -2.0]))[1]
    np.testing.assert_allclose(product, hessian @ [0.5, -2.0], rtol=1e-14)


def test_logistic_regression() -> None:
    """X' diag(p (1 - p)) X, and the prior's precision."""
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    model = StanModel(
        """data { int N; int K; matrix[N, K] x; array[N] int y; } parameters { vector[K] b; }
           model { b ~ normal(0, 2); y ~ bernoulli_logit(x * b); }""",
        {"N": 50, "K": 4, "x": x, "y": y},
    )
    b = rng.normal(size=4)
    p = 1 / (1 + np.exp(-x @ b))
    expected = -(x.T * (p * (1 - p))) @ x - np.eye(4) / 4
    np.testing.assert_allclose(model.log_density_hessian(b)[2], expected, rtol=1e-12)


def test_printed_once_and_errors() -> None:
    model = StanModel(
        'parameters { vector[4] x; } model { print("here"); x ~ normal(0, 1); if (x[1] > 5) reject("no"); }'
    )
    printed: list[str] = []
    model._show = printed.append  # pyright: ignore[reportPrivateUsage, reportAttributeAccessIssue]
    model.log_density_hessian(np.zeros(4))
    assert printed == ["here\n"]
    with pytest.raises(Rejection, match="no"):
        model.log_density_hessian(np.full(4, 6.0))
    with pytest.raises(Rejection, match="no"):
        model.log_density_hessian_vector_product(np.full(4, 6.0), np.ones(4))


def test_no_parameters() -> None:
    value, gradient, hessian = StanModel("model { target += 2; }").log_density_hessian(np.zeros(0), propto=False)
    assert (value, gradient.shape, hessian.shape) == (2.0, (0,), (0, 0))


# ---------------------------------------------------------------- against differences of gradients


def differences(gradient: Callable[[Vector], Vector], theta: Vector, direction: Vector, step: float) -> Vector:
    """Central differences of 6th order."""

    def across(reach: float) -> Vector:
        return gradient(theta + reach * direction) - gradient(theta - reach * direction)

    return (45 * across(step) - 9 * across(2 * step) + across(3 * step)) / (60 * step)


def check_product(name: str, model: StanModel, theta: Vector, propto: bool = True) -> None:
    """Along a direction drawn at random; of several steps of the differences, the one that agrees best."""
    direction = np.random.default_rng(11).normal(size=theta.size)
    direction /= max(1.0, float(np.linalg.norm(direction)))
    _, product = model.log_density_hessian_vector_product(theta, direction, propto=propto)

    def gradient(x: Vector) -> Vector:
        return model.log_density_gradient(x, propto=propto)[1]

    steps = (3e-2, 1e-2, 3e-3, 1e-3, 1e-4)
    found = [differences(gradient, theta, direction, step) for step in steps]
    errors = [np.abs(product - f).max(initial=0) / max(1.0, np.abs(f).max(initial=0)) for f in found]
    assert min(errors) < 2e-7, f"{name}: {product}, differences {found[int(np.argmin(errors))]}"


# Kernels, and what keeps records; of all else some, the rest when there is time.
WORDS = ("kernel", "while", "recurs", "break", "ode")
CHOSEN = [name for n, name in enumerate(PROGRAMS) if n % 24 == 0 or any(word in name for word in WORDS)]


@pytest.mark.parametrize("name", CHOSEN)
def test_against_differences(name: str) -> None:
    model = StanModel(*PROGRAMS[name])
    check_product(name, model, point(name, model.param_unc_num()))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in CHOSEN])
def test_more_against_differences(name: str) -> None:
    test_against_differences(name)


def test_other_kernels() -> None:
    model = StanModel(
        """data { matrix[3, 3] S; } parameters { matrix[4, 3] A; vector[5] v; real<lower=0> s; }
           model {
             matrix[3, 3] C = add_diag(crossprod(A), s);
             target += log_determinant_spd(C) + sum(square(tcrossprod(A))[1]);
             target += trace_quad_form(inverse_spd(C), S) + log1p(square(C[2, 3]));
             target += dot_product(square(sort_desc(v)), v) - dot_product(sort_asc(v), [1, 2, 3, 4, 5]);
           }""",
        {"S": np.eye(3) + 0.2},
    )
    check_product("other kernels", model, point("other kernels", 18))


def test_data_or_parameters() -> None:
    """A container that is data in one branch and varies in the other, in memory and handed to a recursive function."""
    model = StanModel(
        """functions {
             real total(vector x, int n) { if (n == 0) return 0; return square(x[n]) * total(x, n - 1) + exp(x[n]); }
           }
           data { int N; vector[N] x; int use; } parameters { vector[N] y; }
           model {
             vector[N] z = use ? x : y;
             array[2] vector[N] both = {x, y};
             target += total(z, N) * sum(y) + total(x, N) * y[1];
             for (k in 1:2) target += dot_product(both[k], square(y)) + total(both[k], N);
           }""",
        {"N": 3, "x": [0.3, -0.2, 0.5], "use": 1},
    )
    check_product("data or parameters", model, np.array([0.4, -0.3, 0.8]))


def test_kernels_have_tangents() -> None:
    """Each differentiable kernel has what `Kernel.tangent` says, and its pullback as well."""
    runtime = library()
    for name, kernel in KERNELS.items():
        if kernel.pullback is None:
            continue
        if kernel.tangent not in ("order", "linear", "none"):
            assert hasattr(runtime, f"ulam_{name}_dual" if kernel.tangent == "dual" else f"ulam_{kernel.tangent}"), name
            assert hasattr(runtime, f"ulam_{kernel.pullback}_dual"), kernel.pullback


@pytest.mark.parametrize(
    ("expression", "at", "gradient", "hessian"),
    [
        ("log_diff_exp(x[1], x[2])", (1, -800), (1, 0), ((0, 0), (0, 0))),
        ("log1m_exp(x[1]) + x[2]", (-800, 0), (0, 1), ((0, 0), (0, 0))),
        ("lmultiply(x[1], x[2])", (0, 2), (np.log(2), 0), ((0, 0.5), (0.5, 0))),
        ("log_mix(x[1], x[2], 1.0)", (1, 1 + np.log(2)), (0.5, 1), ((-0.25, 0.5), (0.5, 0))),
        ("log_mix(x[1], 1.0, x[2])", (0, 1), (0, 1), ((0, -1), (-1, 0))),
    ],
)
def test_where_something_vanishes_or_runs_over(
    expression: str, at: tuple[float, ...], gradient: tuple[float, ...], hessian: tuple[tuple[float, ...], ...]
) -> None:
    model = StanModel(f"parameters {{ vector[2] x; }} model {{ target += {expression}; }}", opt_level=0)
    _, first, second = model.log_density_hessian(np.array(at, dtype=float))
    np.testing.assert_allclose(first, gradient, rtol=1e-14, atol=1e-14)
    np.testing.assert_allclose(second, hessian, rtol=1e-14, atol=1e-14)
