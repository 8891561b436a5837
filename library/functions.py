"""What a function is, as its name says: the one place that takes names apart.

    named("normal_lupdf") == FunctionName(stem="normal", kind=FunctionKind.DENSITY, ending="_lupdf")
    kind_of("foo_rng") is FunctionKind.RNG                     also of a user's function, and of its symbol, "foo_rng.1"

Source: Stan Reference Manual, "User-defined functions", "Special functions".
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import NamedTuple


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
OF_DISTRIBUTIONS = (*DENSITIES, *CUMULATIVE, FunctionKind.RNG)

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
