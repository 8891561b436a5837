"""Library functions that take a function and then any number of arguments for it.

Source: Stan Functions Reference, "Higher-Order Functions" (ODE and DAE solvers, algebraic solvers, 1D integrators).
The ones of fixed arguments (`integrate_ode_rk45`, `algebra_solver`, `map_rect`, ...) are in the signature table;
`reduce_sum` and the Laplace approximations have rules of their own in `typechecker_higher_order`.
Types are written in the codes of `type_codes`; `!` marks what must be data.
"""

from __future__ import annotations

from ulam.frontend.functions.type_codes import arguments_of
from ulam.library.functions import named
from ulam.library.records import record


@record(frozen=True, slots=True)
class Variadic:
    """`name(f, control arguments, further arguments)` calls `f(formals, further arguments)`."""

    control: str
    formals: str
    callback_result: str
    result: str


_ODE = Variadic("vr1r", "rv", "v", "1v")
_ODE_TOLERANCES = Variadic("vr1r!r!r!i", "rv", "v", "1v")
_DAE_FORMALS = "rvv"
_SOLVER = Variadic("v", "v", "v", "v")
_SOLVER_TOLERANCES = Variadic("v!r!r!i", "v", "v", "v")
_INTEGRAL = Variadic("rr", "rr", "r", "r")
_INTEGRAL_TOLERANCES = Variadic("rr!r!r!i", "rr", "r", "r")

VARIADIC: dict[str, Variadic] = {
    "ode_rk45": _ODE,
    "ode_ckrk": _ODE,
    "ode_adams": _ODE,
    "ode_bdf": _ODE,
    "ode_rk45_tol": _ODE_TOLERANCES,
    "ode_ckrk_tol": _ODE_TOLERANCES,
    "ode_adams_tol": _ODE_TOLERANCES,
    "ode_bdf_tol": _ODE_TOLERANCES,
    "ode_adjoint_tol_ctl": Variadic("vr1r!r!v!r!v!r!r!i!i!i!i!i", "rv", "v", "1v"),
    "dae": Variadic("vv!r!1r", _DAE_FORMALS, "v", "1v"),
    "dae_tol": Variadic("vv!r!1r!r!r!i", _DAE_FORMALS, "v", "1v"),
    "solve_newton": _SOLVER,
    "solve_powell": _SOLVER,
    "solve_newton_tol": _SOLVER_TOLERANCES,
    "solve_powell_tol": _SOLVER_TOLERANCES,
    "integrate_1d_gauss_kronrod": _INTEGRAL,
    "integrate_1d_double_exponential": _INTEGRAL,
    "integrate_1d_gauss_kronrod_tol": _INTEGRAL_TOLERANCES,
    "integrate_1d_double_exponential_tol": _INTEGRAL_TOLERANCES,
}

REDUCE_SUM = frozenset({"reduce_sum", "reduce_sum_static"})
REDUCE_SUM_ELEMENTS = "irvwm"  # what the sliced array may hold

# The data of the likelihood in the Laplace functions that have one built in.
LAPLACE_LIKELIHOODS = {"bernoulli_logit": "1i1iv", "poisson_log": "1i1iv", "neg_binomial_2_log": "1i1ivv"}
# What the tuple of control arguments of a `_tol` function holds.
LAPLACE_CONTROL = "v!r!i!i!i!i"
_LAPLACE_STEMS = ("laplace_marginal", "laplace_marginal_tol", "laplace_latent", "laplace_latent_tol")


def _laplace_names() -> frozenset[str]:
    names = {"laplace_marginal", "laplace_marginal_tol", "laplace_latent_rng", "laplace_latent_tol_rng"}
    names |= {"laplace_latent_solve", "laplace_latent_solve_tol"}
    for stem in _LAPLACE_STEMS:
        suffix = "lpmf" if "marginal" in stem else "rng"
        names |= {f"{stem}_{likelihood}_{suffix}" for likelihood in LAPLACE_LIKELIHOODS}
    return frozenset(names)


LAPLACE = _laplace_names()


def laplace_definition(name: str) -> str:
    """The function of library/laplace.stan that a Laplace function is: one for all likelihoods."""
    for likelihood in LAPLACE_LIKELIHOODS:
        name = name.replace(f"_{likelihood}", "")
    told = named(name)
    return told.stem if told.kind.is_density else name


def laplace_likelihood_function(name: str) -> str | None:
    """The function of the library that a built-in likelihood is; None where the first argument is a function."""
    found = next((likelihood for likelihood in LAPLACE_LIKELIHOODS if likelihood in name), None)
    return None if found is None else f"laplace_{found}_likelihood"


def is_variadic(name: str) -> bool:
    """Whether the function is not in the signature table because its arguments depend on a callback."""
    return name in VARIADIC or name in REDUCE_SUM or name in LAPLACE


_CAPTURED = {"integrate_ode": range(3, 6), "integrate_1d": range(2, 5), "algebra_solver": range(1, 4)}


def captured(name: str, count: int) -> range:
    """Which of the `count` arguments after the function are for the function only: it is called with them added.

    The library's definition of `name` does not take them.
    """
    if name in VARIADIC:
        return range(len(arguments_of(VARIADIC[name].control)), count)
    if name in REDUCE_SUM:
        return range(2, count)
    for stem, positions in _CAPTURED.items():
        if name.startswith(stem):
            return positions
    return range(0)


def names() -> list[str]:
    """All of them, for suggestions in messages."""
    return sorted({*VARIADIC, *REDUCE_SUM, *LAPLACE})


def laplace_likelihood(name: str) -> str | None:
    """The codes of the data of a built-in likelihood; None where the first argument is a function."""
    for likelihood, codes in LAPLACE_LIKELIHOODS.items():
        if likelihood in name:
            return codes
    return None
