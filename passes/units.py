"""The units that a program is compiled in, and what is particular to each: asked here, never told from a name.

Each is lowered to a module of its own (`to_loops.units`) and compiled when it is first needed. Imports nothing of the
compiler: a start from the cache reads this table, too.
"""

from __future__ import annotations

from typing import Literal

from ulam.library.records import record


@record(frozen=True, slots=True)
class UnitKind:
    """A unit: `evaluate` is a `density`, `constrain` or `unconstrain`s; `setup` has two functions of its own."""

    name: str
    computes: Literal["setup", "density", "constrain", "unconstrain", "trace"]
    propto: bool = False
    """A density leaves out the terms that do not depend on parameters."""
    order: int = 0
    """Derivatives of a density: 0 none, 1 the gradient, 2 products of the Hessian with a direction, too."""
    locating: bool = False
    """Made of the program as it was written, whatever the level, for any data: it tells which error comes first."""

    @property
    def prefix(self) -> str:
        """What the names of its functions begin with in object code."""
        return f"{self.name}."

    def symbol(self, function: str) -> str:
        """The name of one of its functions there, which no other unit has: units may be linked with each other."""
        return self.prefix + function

    @property
    def gradient(self) -> bool:
        """Whether there is a reverse sweep."""
        return self.order >= 1

    @property
    def hessian(self) -> bool:
        """Whether there are tangents of a reverse sweep."""
        return self.order == 2

    @property
    def hot(self) -> bool:
        """Whether it is evaluated many times: worth the most of optimizing."""
        return self.computes == "density" and not self.locating

    @property
    def has_bind(self) -> bool:
        """Whether what depends on data only is hoisted to a function `bind`, which runs once."""
        return self.hot or (self.computes == "constrain" and not self.locating)

    @property
    def counts_entries(self) -> bool:
        """Whether its profile regions say how many values they keep for the reverse sweep."""
        return self.order == 1

    @property
    def profiled(self) -> bool:
        """Whether profile regions record. A second derivative would enter each twice."""
        return not self.locating and not self.hessian

    @property
    def is_bound(self) -> bool:
        """Whether it runs with data that were checked, and transformed data."""
        return self.computes != "setup"


_KINDS = (
    UnitKind("setup", "setup"),
    UnitKind("value_propto", "density", propto=True),
    UnitKind("value_full", "density"),
    UnitKind("gradient_propto", "density", propto=True, order=1),
    UnitKind("gradient_full", "density", order=1),
    UnitKind("hessian_vector_propto", "density", propto=True, order=2),
    UnitKind("hessian_vector_full", "density", order=2),
    UnitKind("constrain", "constrain"),
    UnitKind("unconstrain", "unconstrain"),
    UnitKind("locate", "density", locating=True),
    UnitKind("locate_constrain", "constrain", locating=True),
)

UNITS: dict[str, UnitKind] = {kind.name: kind for kind in _KINDS}
"""The units of a program by name."""

TRACE = UnitKind("trace", "trace")
"""What is lowered to be traced: a function with its records, of no program's own."""

DEFAULT_UNIT = UNITS["gradient_propto"]

_DENSITIES = {(kind.order, kind.propto): kind for kind in _KINDS if kind.hot}


def density_unit(order: int, propto: bool) -> UnitKind:
    """The unit of the log density with derivatives up to `order`."""
    return _DENSITIES[order, bool(propto)]
