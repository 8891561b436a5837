"""What a traced clone is to have: decided for each op when the clone is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Operation

from ulam.tracing.instrument.graph import Place

KINDS = ("values", "draws", "tilde", "target", "elements", "checks", "print")
"""What may be recorded: results of ops; those of draws; `~` statements, other additions to the target, checks and
prints, which are no nodes where they are not; contents of containers whose elements are replaced."""

STATIC_DEPTH = 4
"""Up to this limit of depth there is one clone of a function for each depth; above, calls count at run time."""
MOST_CLONES = 64
"""Traced functions of one unit."""


@dataclass(frozen=True)
class Question:
    """An op. `user`: a call of a user's function; `depth`: of what is called, 1 for the tracked call itself.

    `state`: of the plan, for the function that the op is in. `higher_order`: a call of a function of the
    library that calls one of the program.
    """

    kind: str
    name: str
    user: bool
    place: Place | None
    depth: int
    state: Any
    higher_order: bool = False


@dataclass(frozen=True)
class Choice:
    """What becomes of an op. `how`: `enter`, `primitive`, or `skip`, which leaves it out.

    `state`: for what a call that is entered is made of. `hooks`: numbers of what to call with the values. `child`: the
    table of what is entered, once that is known.
    """

    how: str = "primitive"
    state: Any = None
    hooks: tuple[int, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    child: str = ""


@dataclass(frozen=True)
class Form:
    """What a function's table has. `decide`: of an op, given its kind and name.

    `constants`: whether literals are nodes; `timing`: whether calls keep when they began and ended; `copied`: elements
    of containers that are copied; `jacobian`: whether Jacobian adjustments count; `propto`: whether densities that may
    drop constants do.
    """

    decide: Callable[[str, str, Operation], Choice]
    recorded: frozenset[str] = frozenset(KINDS)
    constants: bool = False
    timing: bool = False
    copied: int = 64
    jacobian: bool = True
    propto: bool = False


def entering(question: Question) -> Choice:
    """Enters all calls of users' functions."""
    return Choice("enter" if question.user else "primitive")


def plain_form(_: Any) -> Form:
    """Everything, but no literals and no times."""
    return Form(lambda *_: Choice())


def raising(_question: Question, error: Exception) -> Choice:
    """What cannot be traced is an error."""
    raise error


@dataclass
class Plan:
    """What to record. `choose`: what becomes of an op. `form`: what the functions of a state have (its `decide` is set
    here). `failed`: what becomes of a call whose function cannot be traced. `state`: of the tracked function.
    `most_depth`: None for all depths.

    `propto`: whether `~` statements of a model drop constants; `jacobian`: whether Jacobian adjustments count.
    """

    choose: Callable[[Question], Choice] = entering
    form: Callable[[Any], Form] = plain_form
    failed: Callable[[Question, Exception], Choice] = raising
    state: Any = None
    most_depth: int | None = None
    propto: bool = False
    jacobian: bool = True
