"""What the `require_*` statements of library/*.stan demand, as data.

A statement `require_bounded(x, lo, hi);` checks its first argument, the subject; it holds if all conditions hold.
A condition is a comparison of the subject with a constant or, by position, with another argument; every comparison is
false for NaN. Messages are put together from the subject's name, its value and `phrase`, in which `{1}`, `{2}` stand
for the values of the other arguments: "sigma is -1, but must be positive!".
"""

from __future__ import annotations

from math import inf

from ulam.library.records import record
from ulam.library.statuses import FATAL, REJECTION

CONSTRAINT_TOLERANCE = 1e-8
"""How far data may be off a constraint that is an equality (Stan's value)."""


@record(frozen=True, slots=True)
class ArgumentReference:
    """The other side of a comparison: argument number `position` of the statement (the subject is 0), `plus` more."""

    position: int
    plus: float = 0.0


@record(frozen=True, slots=True)
class Condition:
    """`subject <comparison> operand`; `comparison` is `gt ge lt le eq`; `near`: |subject - operand| <= tolerance; or
    `above_or_fractional`: greater than the operand, a whole number, or none itself."""

    comparison: str
    operand: float | ArgumentReference


@record(frozen=True, slots=True)
class Requirement:
    """All `conditions` must hold; no condition at all means "not NaN"."""

    conditions: tuple[Condition, ...]
    phrase: str
    status: int = REJECTION


def _where(phrase: str, *conditions: tuple[str, float | ArgumentReference]) -> Requirement:
    return Requirement(tuple(Condition(comparison, operand) for comparison, operand in conditions), phrase)


_FIRST, _SECOND = ArgumentReference(1), ArgumentReference(2)

REQUIREMENTS: dict[str, Requirement] = {
    # scalars, as Stan's manual names them
    "require_not_nan": _where("must be not nan!"),
    "require_finite": _where("must be finite!", ("gt", -inf), ("lt", inf)),
    "require_positive": _where("must be positive!", ("gt", 0.0)),
    "require_positive_finite": _where("must be positive finite!", ("gt", 0.0), ("lt", inf)),
    "require_nonnegative": _where("must be nonnegative!", ("ge", 0.0)),
    "require_probability": _where("must be in the interval [0, 1]", ("ge", 0.0), ("le", 1.0)),
    "require_in_interval": _where("must be in the interval [{1}, {2}]", ("ge", _FIRST), ("le", _SECOND)),
    "require_greater": _where("must be greater than {1}", ("gt", _FIRST)),
    "require_at_least": _where("must be greater than or equal to {1}", ("ge", _FIRST)),
    "require_less": _where("must be less than {1}", ("lt", _FIRST)),
    "require_at_most": _where("must be less than or equal to {1}", ("le", _FIRST)),
    "require_above_time": _where("must be greater than the nondecision time, {1}", ("gt", _FIRST)),
    "require_no_pole": _where("must be neither 0 nor a negative integer", ("above_or_fractional", 0.0)),
    "require_at_most_next": _where("must be at most {1} plus 1", ("le", ArgumentReference(1, plus=1.0))),
    # sizes
    "require_nonempty": _where("must be at least 1", ("gt", 0.0)),
    "require_same_size": Requirement((Condition("eq", _FIRST),), "must be {1}", FATAL),  # at all points
    "require_no_more": _where("must be at most {1}", ("le", _FIRST)),
    "require_progress": _where("must be greater than {1}: the steps have become too small", ("gt", _FIRST)),
    "require_time_reached": _where(
        "must be at most max_num_steps, {1}, to integrate to the next output time, {2}", ("le", _FIRST)
    ),
    "require_root_reached": _where("must be at most max_num_steps, {1}: no root was reached", ("le", _FIRST)),
    "require_mode_reached": _where(
        "must be at most max_num_steps, {1}: no mode of the latent variables was reached", ("le", _FIRST)
    ),
    "require_higher_density": _where(
        "must be at most {1}: no step leads to a higher density of the latent variables", ("le", _FIRST)
    ),
    "require_within_tolerance": _where(
        "must be at most the function tolerance, {1}: the steps have come to a point that is no root", ("le", _FIRST)
    ),
    "require_integrand_finite": _where("must be finite at x = {1}", ("gt", -inf), ("lt", inf)),
    "require_integral_error": _where(
        "must be at most {1}: the error estimate of the integral exceeds the given relative tolerance times norm of "
        "integral",
        ("le", _FIRST),
    ),
    # parts of the checks of containers (requirements.stan)
    "require_simplex_sum": _where("must be 1: the entries of a simplex sum to 1", ("near", 1.0)),
    "require_unit_sum_of_squares": _where("must be 1: the squares sum to 1", ("near", 1.0)),
    "require_zero_sum": _where("must be 0: the entries sum to zero", ("near", 0.0)),
    "require_above_previous": _where("must be greater than the previous element, {1}", ("gt", _FIRST)),
    "require_mirrored": _where("must equal the entry on the other side of the diagonal, {1}", ("near", _FIRST)),
    "require_zero_above_diagonal": _where("must be 0: the matrix is lower triangular", ("eq", 0.0)),
    "require_positive_diagonal": _where("must be positive, as every entry of the diagonal", ("gt", 0.0)),
    "require_unit_diagonal": _where("must be 1, as every entry of the diagonal", ("near", 1.0)),
    "require_pivot_at_least": _where("must be at least {1}: the matrix is not positive semidefinite", ("ge", _FIRST)),
    "require_positive_pivot": _where("must be positive: the matrix is not positive definite", ("gt", 0.0), ("lt", inf)),
}
"""Requirement by the name of its statement. `require_*` functions of containers are Stan functions instead."""

PRIMITIVE_REQUIREMENTS: dict[str, tuple[tuple[int, str, tuple[float | ArgumentReference, ...]], ...]] = {
    "log1p": ((0, "require_at_least", (-1.0,)),),
    "log1m": ((0, "require_at_most", (1.0,)),),
    "acosh": ((0, "require_at_least", (1.0,)),),
    "atanh": ((0, "require_in_interval", (-1.0, 1.0)),),
    "Phi": ((0, "require_not_nan", ()),),
    "inv_Phi": ((0, "require_probability", ()),),
    "inv_erfc": ((0, "require_greater", (0.0,)), (0, "require_less", (2.0,))),
    "lambert_w0": ((0, "require_at_least", (-0.36787944117144233,)),),
    "lambert_wm1": ((0, "require_in_interval", (-0.36787944117144233, 0.0)),),
    "lbeta": ((0, "require_nonnegative", ()), (1, "require_nonnegative", ())),
    "lchoose": (
        (0, "require_at_least", (-1.0,)),
        (1, "require_at_least", (-1.0,)),
        (1, "require_at_most_next", (ArgumentReference(0),)),
    ),
    "tgamma": ((0, "require_no_pole", ()),),
    "gamma_p": ((0, "require_positive", ()), (1, "require_nonnegative", ())),
    "gamma_q": ((0, "require_not_nan", ()), (0, "require_positive", ()), (1, "require_nonnegative", ())),
    "inc_beta": (
        (0, "require_nonnegative", ()),
        (0, "require_finite", ()),
        (1, "require_nonnegative", ()),
        (1, "require_finite", ()),
        (2, "require_probability", ()),
    ),
    "inv_inc_beta": (
        (0, "require_positive_finite", ()),
        (1, "require_positive_finite", ()),
        (2, "require_probability", ()),
    ),
}
"""What Stan demands of the arguments of primitives that a program calls itself: (argument, requirement, its other
arguments: constants, or the primitive's own by position). Library functions call primitives inside of their domain and
need no such check."""

NAN_IS_REFUSED = frozenset({"Phi", "inv_Phi", "lambert_w0", "lambert_wm1", "inc_beta", "inv_inc_beta"})
"""Primitives that throw for NaN; the others return it, but where a row asks for `require_not_nan`."""
