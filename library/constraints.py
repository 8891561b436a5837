"""Which functions of `transforms.stan` transform and check a declared constraint."""

from __future__ import annotations

CONTAINER_FAMILIES = {
    "simplex": "simplex",
    "ordered": "ordered",
    "positive_ordered": "positive_ordered",
    "unit_vector": "unit_vector",
    "sum_to_zero_vector": "sum_to_zero",
    "sum_to_zero_matrix": "sum_to_zero_matrix",
    "cholesky_factor_corr": "cholesky_factor_corr",
    "cholesky_factor_cov": "cholesky_factor_cov",
    "corr_matrix": "corr_matrix",
    "cov_matrix": "cov_matrix",
    "column_stochastic_matrix": "column_stochastic_matrix",
    "row_stochastic_matrix": "row_stochastic_matrix",
}
"""Constraint of a whole container → family `X` of functions `X_constrain`, `X_unconstrain`, ..."""


def scalar_family(*, lower: bool, upper: bool) -> str:
    """Family of `<lower=...>`, `<upper=...>` or both."""
    return "lower_upper_bound" if lower and upper else "lower_bound" if lower else "upper_bound"


def parameter_functions(family: str) -> list[str]:
    """Names of the functions that a parameter of this family needs."""
    return [f"{family}_constrain", f"{family}_log_jacobian", f"{family}_unconstrain"]


def transform_functions(kind: str, *, lower: bool, upper: bool, is_parameter: bool) -> list[str]:
    """Names of the functions that a declared constraint needs, by what it is called; checks of bounds need none."""
    if (family := CONTAINER_FAMILIES.get(kind)) is not None:
        return parameter_functions(family) if is_parameter else [f"{family}_check"]
    if not is_parameter or kind == "none":
        return []
    return parameter_functions(kind if kind == "offset_multiplier" else scalar_family(lower=lower, upper=upper))
