"""The algorithms by name, and their options."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from typing import Any

from ulam.runtime.optimizers import newton, quasi_newton
from ulam.runtime.optimizers.line_search import Point
from ulam.runtime.optimizers.objective import ModelObjective
from ulam.runtime.optimizers.quasi_newton import Iteration


@dataclass(frozen=True)
class Algorithm:
    """The type of an algorithm's options (whose fields are those it takes) and its iteration."""

    options: type[Any]
    iterate: Callable[[ModelObjective, Point, Any], Iterator[Iteration]]


ALGORITHMS = {
    "lbfgs": Algorithm(quasi_newton.LBFGSOptions, quasi_newton.minimize),
    "bfgs": Algorithm(quasi_newton.BFGSOptions, quasi_newton.minimize),
    "newton": Algorithm(newton.NewtonOptions, newton.minimize),
}
"""CmdStan's algorithms by its names."""


def algorithm_options(algorithm: str) -> list[str]:
    """Names of the options that an algorithm takes. Raises ValueError for an unknown algorithm."""
    if algorithm not in ALGORITHMS:
        raise ValueError(f"unknown algorithm '{algorithm}'; there are {', '.join(ALGORITHMS)}")
    return [entry.name for entry in fields(ALGORITHMS[algorithm].options)]


def checked_options(algorithm: str, given: dict[str, Any]) -> Any:
    """The algorithm's options. Raises ValueError for one that only others take, TypeError for an unknown one."""
    known = algorithm_options(algorithm)
    for name in given:
        if name in known:
            continue
        takers = [other for other in ALGORITHMS if name in algorithm_options(other)]
        if takers:
            raise ValueError(
                f"{name} is an option of {' and '.join(takers)}; {algorithm} takes {', '.join(known)} only"
            )
        raise TypeError(f"unknown option '{name}'; algorithm '{algorithm}' takes {', '.join(known)}")
    return ALGORITHMS[algorithm].options(**given)
