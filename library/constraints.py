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
