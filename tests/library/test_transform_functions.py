"""`X_jacobian`, `X_constrain` and `X_unconstrain`, called by programs, are the transforms of parameters."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.frontend.functions import signatures, support

pytestmark = pytest.mark.usefixtures("quick_code")

# The family of functions, the declared type, what is unconstrained, the value's type, further arguments.
TRANSFORMS = [
    ("simplex", "simplex[3]", "vector[2]", "vector[3]", ""),
    ("ordered", "ordered[3]", "vector[3]", "vector[3]", ""),
    ("positive_ordered", "positive_ordered[3]", "vector[3]", "vector[3]", ""),
    ("unit_vector", "unit_vector[3]", "vector[3]", "vector[3]", ""),
    ("sum_to_zero", "sum_to_zero_vector[3]", "vector[2]", "vector[3]", ""),
    ("sum_to_zero", "sum_to_zero_matrix[3, 4]", "matrix[2, 3]", "matrix[3, 4]", ""),
    ("stochastic_column", "column_stochastic_matrix[3, 2]", "matrix[2, 2]", "matrix[3, 2]", ""),
    ("stochastic_row", "row_stochastic_matrix[2, 3]", "matrix[2, 2]", "matrix[2, 3]", ""),
    ("cholesky_factor_corr", "cholesky_factor_corr[3]", "vector[3]", "matrix[3, 3]", ", 3"),
    ("cholesky_factor_cov", "cholesky_factor_cov[3, 2]", "vector[5]", "matrix[3, 2]", ", 3, 2"),
    ("corr_matrix", "corr_matrix[2]", "vector[1]", "matrix[2, 2]", ", 2"),
    ("cov_matrix", "cov_matrix[2]", "vector[3]", "matrix[2, 2]", ", 2"),
    ("lower_bound", "vector<lower=1>[2]", "vector[2]", "vector[2]", ", 1"),
    ("upper_bound", "matrix<upper=1>[2, 2]", "matrix[2, 2]", "matrix[2, 2]", ", 1"),
    ("lower_upper_bound", "real<lower=1, upper=3>", "real", "real", ", 1, 3"),
    ("offset_multiplier", "vector<offset=1, multiplier=3>[2]", "vector[2]", "vector[2]", ", 1, 3"),
]


@pytest.mark.parametrize("array", ["", "array[1, 2] "])
def test_functions_are_the_transforms_of_parameters(array: str) -> None:
    declared, free, transformed, back, again, model = "", "", "", "", "", ""
    for n, (family, type_, unconstrained, value, extra) in enumerate(TRANSFORMS):
        declared += f"{array}{type_} y{n};\n"
        free += f"{array}{unconstrained} u{n};\n"
        transformed += f"{array}{value} y{n} = {family}_jacobian(u{n}{extra});\n"
        again += f"{array}{value} c{n} = {family}_constrain(u{n}{extra});\n"
        kept = extra if "bound" in family or "multiplier" in family else ""
        back += f"{array}{unconstrained} b{n} = {family}_unconstrain(y{n}{kept});\n"
        sum_ = "{0}" if value == "real" else "sum(square(to_vector({0})))"
        each = [f"y{n}[1, {k}]" for k in (1, 2)] if array else [f"y{n}"]
        model += "".join(f"target += {k + 1} * {sum_.format(y)};\n" for k, y in enumerate(each))
    parameters = ulam.StanModel(f"parameters {{ {declared} }} model {{ {model} }}", opt_level=0)
    functions = ulam.StanModel(
        f"parameters {{ {free} }} transformed parameters {{ {transformed} }} model {{ {model} }} "
        f"generated quantities {{ {back} {again} }}",
        opt_level=0,
    )
    theta = np.random.default_rng(2).normal(size=parameters.param_unc_num())
    for jacobian in (True, False):
        expected = parameters.log_density_gradient(theta, jacobian=jacobian)
        found = functions.log_density_gradient(theta, jacobian=jacobian)
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-10, atol=1e-10)
    values = functions.param_constrain(theta, include_tp=True, include_gq=True, rng=functions.new_rng(1))
    by_name = dict(zip(functions.param_names(include_tp=True, include_gq=True), values, strict=True))
    constrained = dict(zip(parameters.param_names(), parameters.param_constrain(theta), strict=True))
    for name, value in by_name.items():
        if name[0] == "y":
            assert value == pytest.approx(constrained[name], rel=1e-13), name
        elif name[0] == "c":
            assert value == by_name[f"y{name[1:]}"], name
        elif name[0] == "b" and not name.startswith("b3"):  # any length gives the same unit vector
            assert value == pytest.approx(by_name[f"u{name[1:]}"], abs=1e-12), name


def test_all_signatures_are_there() -> None:
    for name in signatures.names():
        if name.endswith(("_constrain", "_unconstrain", "_jacobian")):
            found = signatures.overloads(name)
            assert found is not None
            assert [s for s in found.all() if not support.supports_call(name, s.arguments)] == [], name


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, np.nan), (np.inf, np.inf)])
def test_bounds_that_are_not_in_order_are_rejected(bounds: tuple[float, float]) -> None:
    text = """
    data { real lb; vector[2] ub; int with_vector; }
    parameters { real u; }
    transformed parameters {
      real x = with_vector ? lower_upper_bound_constrain([u, u]', lb, ub)[2] : lower_upper_bound_jacobian(u, lb, ub[2]);
    }"""
    lower, upper = bounds
    for with_vector in (0, 1):
        data = {"lb": lower, "ub": [lower + 1 if np.isfinite(lower) else 1.0, upper], "with_vector": with_vector}
        with pytest.raises(ulam.Rejection, match="lb.* is .*must be less than"):
            ulam.StanModel(text, data, opt_level=0).log_density([0.3])
    in_order = {"lb": -np.inf, "ub": [0.5, np.inf], "with_vector": 0}
    assert ulam.StanModel(text, in_order, opt_level=0).log_density([0.3]) == 0


@pytest.mark.parametrize("level", [0, 3])
def test_functions_of_the_program_are_no_transforms(level: int) -> None:
    """Overloads of names that transforms of the library have."""
    own = """functions {
      real simplex_check(real x) { return x; }
      real ordered_constrain(real x) { return 2 * x; }
      real lower_bound_log_jacobian(real x) { return 3 * x; }
    }"""
    program = """data { simplex[2] d; } parameters { ordered[2] o; real<lower=1> z; }
    model { o ~ std_normal(); z ~ std_normal(); target += sum(d); }"""
    point = np.array([0.1, 0.2, 0.3])
    models = [ulam.StanModel(text + program, {"d": [0.5, 0.5]}, opt_level=level) for text in ("", own)]
    for first, second in zip(*(model.log_density_gradient(point) for model in models), strict=True):
        np.testing.assert_array_equal(first, second)
    with pytest.raises(ulam.UlamError, match="entries of a simplex sum to 1"):
        ulam.StanModel(own + program, {"d": [1, 2]}, opt_level=level)
