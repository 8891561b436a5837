"""What is known of a function: its kind, as its name says, whether it may throw, its support, the kernel that computes
it, what it costs. All parts ask here.

Names are taken apart here alone; the rest is found in `*.stan` and in the tables, when it is first asked for.

    named("normal_lupdf") == FunctionName(stem="normal", kind=FunctionKind.DENSITY, ending="_lupdf")
    kind_of("foo_rng") is FunctionKind.RNG                     also of a user's function, and of its symbol, "foo_rng.1"

    function("inv_logit").is_total                     throws for no arguments
    function("beta_lpdf").support                      [0, 1]
    function("svd_V").kernel                           the third output of the kernel `svd`
    function("square").cost is FunctionCost.OPERATION

Source of names: Stan Reference Manual, "User-defined functions", "Special functions".
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache, cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ulam.library import signature_table
from ulam.library.catalog import definitions
from ulam.library.costs import COSTS, FunctionCost
from ulam.library.derivatives import has_primitive
from ulam.library.records import record
from ulam.library.requirements import PRIMITIVE_REQUIREMENTS

if TYPE_CHECKING:
    from ulam.library.kernels import KernelUse
    from ulam.library.supports import Support


class FunctionKind(Enum):
    """The kinds of functions, each with the ending of its names."""

    DENSITY = "_lpdf"
    MASS = "_lpmf"
    CDF = "_cdf"
    LOG_CDF = "_lcdf"
    LOG_CCDF = "_lccdf"
    RNG = "_rng"
    LP = "_lp"
    JACOBIAN = "_jacobian"
    CONSTRAIN = "_constrain"
    UNCONSTRAIN = "_unconstrain"
    REQUIREMENT = "require_"
    """Begins so: a statement of library/*.stan."""
    PLAIN = ""

    def __init__(self, ending: str) -> None:
        self.ending = "" if ending == "require_" else ending
        self.is_density = ending in ("_lpdf", "_lpmf")
        self.is_cumulative = ending in ("_cdf", "_lcdf", "_lccdf")
        self.is_probability = self.is_density or self.is_cumulative
        """Takes a `|` after its first argument."""
        self.is_of_distribution = self.is_probability or ending == "_rng"
        self.is_summed = self.is_probability and ending != "_cdf"
        """Of containers it is the sum of what it is of their elements."""
        self.is_transform = ending in ("_constrain", "_unconstrain", "_jacobian")
        self.may_add_target = ending in ("_lp", "_jacobian")
        self.unnormalized_ending = f"_lu{ending[2:]}" if self.is_density else ""

    def of(self, stem: str) -> str:
        """The name of the function of this kind: `FunctionKind.RNG.of("normal")` is `normal_rng`."""
        return stem + self.ending


DENSITIES = (FunctionKind.DENSITY, FunctionKind.MASS)
CUMULATIVE = (FunctionKind.CDF, FunctionKind.LOG_CDF, FunctionKind.LOG_CCDF)

_KINDS = {kind.ending: kind for kind in FunctionKind if kind.ending}
_KINDS.update({kind.unnormalized_ending: kind for kind in DENSITIES})

_OLD_ENDINGS: dict[str, tuple[FunctionKind, ...]] = {
    "_ccdf_log": (FunctionKind.LOG_CCDF,),
    "_cdf_log": (FunctionKind.LOG_CDF,),
    "_log": DENSITIES,
    "_ccdf": (),
}
"""Endings of names in earlier versions of Stan, and the kinds that took their place."""


class FunctionName(NamedTuple):
    """A name, taken apart."""

    stem: str
    """What is left of the name without its ending."""
    kind: FunctionKind
    ending: str
    """As it is written: `_lupdf` for a density that is to drop its constants."""

    @property
    def unnormalized(self) -> bool:
        """Whether the name asks for dropped constants."""
        return self.ending != self.kind.ending

    @property
    def normalized(self) -> str:
        """The name of the function itself: `normal_lpdf` for `normal_lupdf`."""
        return self.kind.of(self.stem)


@lru_cache(maxsize=4096)
def named(name: str) -> FunctionName:
    """A function's name, or the symbol of one of its overloads, taken apart."""
    name = name.partition(".")[0]
    stem, underscore, last = name.rpartition("_")
    kind = _KINDS.get(underscore + last) if stem else None
    if kind is not None:
        return FunctionName(stem, kind, underscore + last)
    return FunctionName(name, FunctionKind.REQUIREMENT if name.startswith("require_") else FunctionKind.PLAIN, "")


@lru_cache(maxsize=4096)
def kind_of(name: str) -> FunctionKind:
    """The kind of function that a name, or a symbol, tells."""
    return named(name).kind


@lru_cache(maxsize=4096)
def normalized_name(name: str) -> str:
    """`normal_lupdf` → `normal_lpdf`; any other name as it is."""
    found = named(name)
    return found.normalized if found.unnormalized else name


def ending_of_distribution(name: str) -> str:
    """The ending that says what a name is of its distribution, those of earlier versions of Stan included; or ''."""
    found = named(name)
    if found.kind.is_of_distribution:
        return found.ending
    return next((ending for ending in _OLD_ENDINGS if name.endswith(ending)), "")


def renamed(name: str) -> list[str]:
    """What functions with the endings of earlier versions of Stan are called now: `foo_log` → `foo_lpdf`, ..."""
    for ending, kinds in _OLD_ENDINGS.items():
        if name.endswith(ending):
            return [kind.of(name.removesuffix(ending)) for kind in kinds]
    return []


# ---------------------------------------------------------------- functions of the library


@record(frozen=True)
class Function:
    """What is known of a function of the library. All of it is found when it is first asked for, and kept."""

    name: str

    @property
    def kind(self) -> FunctionKind:
        return kind_of(self.name)

    @cached_property
    def is_total(self) -> bool:
        """Whether it throws for no scalar arguments, nor for one container."""
        return _is_total(self.name, set())

    @cached_property
    def support(self) -> Support | None:
        """Of a density of scalars, where the distribution has its mass; None for the whole line."""
        from ulam.library.supports import support_of

        return support_of(self.name) if self.kind.is_density else None

    @cached_property
    def kernel(self) -> KernelUse | None:
        """The kernel of the C runtime that computes it, of containers of reals, and how; None where none does."""
        from ulam.library.kernels import kernel_of

        return kernel_of(self.name)

    @cached_property
    def has_int_form(self) -> bool:
        """Whether it gives ints, or arrays of int, for such arguments."""
        forms = (signature_table.row(self.name) or ("", {}))[1]
        return any(result.endswith("i") and codes and set(codes) <= {*"i123456789"} for codes, result in forms.items())

    @property
    def is_differentiable_twice(self) -> bool:
        """Whether its derivatives are differentiable in turn, where it has any: solvers and integrators are not."""
        return self.name not in _DIFFERENTIABLE_ONCE

    @property
    def cost(self) -> FunctionCost:
        """What it takes for each element of its result."""
        return COSTS.get(self.name, FunctionCost.CALL)


@cache
def function(name: str) -> Function:
    """What is known of the function `name`; of one that the library does not have, nothing."""
    return Function(name)


_DIFFERENTIABLE_ONCE = frozenset(
    """
    algebra_solver algebra_solver_newton hmm_hidden_state_prob hmm_marginal integrate_1d integrate_ode
    integrate_ode_adams integrate_ode_bdf integrate_ode_rk45 map_rect
""".split()
)
"""Source: Stan Functions Reference, "Embedded Laplace Approximation". Functions of any arguments (`ode_rk45`) are in
`frontend/functions/higher_order.py`; none of them is."""

# ---------------------------------------------------------------- totality

_TOTAL_OF_CONTAINERS = frozenset(
    """
    cols cumulative_sum dims log_sum_exp num_elements prod rows size sum to_array_1d to_row_vector to_vector
""".split()
)
"""What cannot be derived: functions that the lowering makes, and definitions whose indices stay in their container."""

_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_CONTAINER = re.compile(r"\b(?:vector|row_vector|matrix|array|tuple)\b")
_THROWING = re.compile(r"[\[%]|\b(?:reject|fatal_error|print|require_\w+)\b")
_CALL = re.compile(r"\b(?!(?:if|for|while|return)\b)(\w+) ?\(")


def _is_total(name: str, asked: set[str]) -> bool:
    """So it is for primitives without requirements, and for definitions of scalars that index nothing, divide no ints,
    require nothing and call only such functions, or primitives: those are called inside of their domain.

    `asked`: the functions whose definitions are being looked at; one that calls itself is not told to be total.
    """
    if name in _TOTAL_OF_CONTAINERS:
        return True
    if name in asked:
        return False
    found = [definition for definition in definitions(name) if "{" in definition.text]
    if not all(_throws_never(definition.text, asked | {name}) for definition in found):
        return False
    return name not in PRIMITIVE_REQUIREMENTS if has_primitive(name) else bool(found)


def _throws_never(definition: str, asked: set[str]) -> bool:
    head, _, body = _COMMENT.sub("", definition).partition("{")
    if _CONTAINER.search(head) or _THROWING.search(body):
        return False
    if "/" in body and re.search(r"\bint\b", definition):
        return False
    return all(has_primitive(called) or _is_total(called, asked) for called in _CALL.findall(body))
