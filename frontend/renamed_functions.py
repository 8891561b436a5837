"""Names that earlier versions of Stan had, and what is written instead.

Source: Stan Functions Reference, "Removed Functions"; Stan Reference Manual, "Removed Features", "Deprecated Features".
"""

from __future__ import annotations

REMOVED: dict[str, str] = {
    "binomial_coefficient_log": "lchoose",
    "cov_exp_quad": "gp_exp_quad_cov",
    "fabs": "abs",
    "get_lp": "target()",
    "if_else": "the operator '?:'",
    "increment_log_prob": "target += ...",
    "multiply_log": "lmultiply",
}

_OLD_SUFFIXES = (("_ccdf_log", ("_lccdf",)), ("_cdf_log", ("_lcdf",)), ("_log", ("_lpdf", "_lpmf")))

DEPRECATED: dict[str, str] = {
    "integrate_ode": "ode_rk45",
    "integrate_ode_adams": "ode_adams",
    "integrate_ode_bdf": "ode_bdf",
    "integrate_ode_rk45": "ode_rk45",
    "algebra_solver": "solve_powell",
    "algebra_solver_newton": "solve_newton",
    "lkj_cov_lpdf": "lkj_corr_cholesky_lpdf and a separate scale",
}


def replacements(name: str) -> list[str]:
    """What may be written for a name that is gone; the caller takes the first that exists."""
    if name in REMOVED:
        return [REMOVED[name]]
    for old, new in _OLD_SUFFIXES:
        if name.endswith(old):
            return [name.removesuffix(old) + suffix for suffix in new]
    return []
