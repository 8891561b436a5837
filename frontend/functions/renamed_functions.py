"""Names that earlier versions of Stan had or that other languages have, and what is written instead.

Source: Stan Functions Reference, "Removed Functions"; Stan Reference Manual, "Removed Features", "Deprecated Features".
"""

from __future__ import annotations

from ulam.library.functions import renamed

REMOVED: dict[str, str] = {
    "binomial_coefficient_log": "lchoose",
    "cov_exp_quad": "gp_exp_quad_cov",
    "fabs": "abs",
    "get_lp": "target()",
    "if_else": "the operator '?:'",
    "increment_log_prob": "target += ...",
    "multiply_log": "lmultiply",
}

# What R, NumPy, JAGS and others call a function of Stan.
OF_OTHER_LANGUAGES: dict[str, str] = {
    "arccos": "acos", "arcsin": "asin", "arctan": "atan", "argsort": "sort_indices_asc", "ceiling": "ceil",
    "chol": "cholesky_decompose", "cholesky": "cholesky_decompose", "cumsum": "cumulative_sum", "det": "determinant",
    "diag": "diag_matrix", "dnorm": "normal_lpdf", "dot": "dot_product", "expit": "inv_logit", "eye": "identity_matrix",
    "gammaln": "lgamma", "ilogit": "inv_logit", "inverse_logit": "inv_logit", "invlogit": "inv_logit",
    "isinf": "is_inf", "isnan": "is_nan", "len": "size", "length": "size", "linspace": "linspaced_vector", "ln": "log",
    "lnormal": "lognormal_lpdf", "loggam": "lgamma", "logsumexp": "log_sum_exp", "maximum": "max", "minimum": "min",
    "ncol": "cols", "nrow": "rows", "ones": "ones_vector", "phi": "Phi", "pnorm": "normal_cdf", "power": "pow",
    "probit": "inv_Phi", "qnorm": "std_normal_qf", "rep": "rep_vector", "rev": "reverse", "rnorm": "normal_rng",
    "runif": "uniform_rng", "sigmoid": "inv_logit", "softplus": "log1p_exp", "solve": "mdivide_left",
    "sort": "sort_asc", "sqr": "square", "std": "sd", "stddev": "sd", "stdev": "sd", "t": "transpose",
    "var": "variance", "zeros": "zeros_vector",
}  # fmt: skip

DISTRIBUTIONS_OF_OTHER_LANGUAGES: dict[str, str] = {
    "bern": "bernoulli", "binom": "binomial", "chi2": "chi_square", "chisq": "chi_square", "chisqr": "chi_square",
    "dbern": "bernoulli", "dbeta": "beta", "dbin": "binomial", "dexp": "exponential", "dgamma": "gamma",
    "dnorm": "normal", "dpois": "poisson", "dt": "student_t", "dunif": "uniform", "exp": "exponential",
    "gaussian": "normal", "invgamma": "inv_gamma", "laplace": "double_exponential", "lkj": "lkj_corr",
    "lnorm": "lognormal", "multinormal": "multi_normal", "multivariate_normal": "multi_normal", "mvn": "multi_normal",
    "mvnormal": "multi_normal", "mvt": "multi_student_t", "nbinom": "neg_binomial_2", "negative_binomial":
    "neg_binomial_2", "negbin": "neg_binomial_2", "negbinomial": "neg_binomial_2", "norm": "normal", "pois": "poisson",
    "stdnormal": "std_normal", "t": "student_t", "t_distribution": "student_t", "unif": "uniform",
}  # fmt: skip

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
    return renamed(name)
