"""Where distributions have their mass, read from the definitions of their densities: from what these require of the
variate, and from their guards.

    require_nonnegative(y); ... if (y == 0) return negative_infinity();        (0, inf)
    require_at_least(y, mu);                                                   [mu, inf)
"""

from __future__ import annotations

import re

from ulam.library.catalog import definitions
from ulam.library.records import record
from ulam.library.requirements import REQUIREMENTS, ArgumentReference

Bound = float | str
"""A number, or the name of an argument of the density."""

_HEAD = re.compile(r"real \w+\((?:int|real) (\w+)")
_STATEMENT = re.compile(r"(require_\w+)\((\w+)(?:, ([^;]*))?\);")
_GUARD = re.compile(r"if \((.*)\) return negative_infinity\(\);")
_COMPARISON = re.compile(r"(\w+) ([<>]=?|==) (-?\w+(?:\.\w+)?)")
_EXCLUDED = {"<": "ge", "<=": "gt", ">": "le", ">=": "lt", "==": "ne"}
"""What holds where a guard does not return."""


@record(frozen=True, slots=True)
class Support:
    """An interval; `has_lower` and `has_upper`: the bound belongs to it."""

    lower: Bound = float("-inf")
    upper: Bound = float("inf")
    has_lower: bool = False
    has_upper: bool = False


def support_of(density: str) -> Support | None:
    """That of a density of scalars; None for the whole line, or if it is not as simple as an interval."""
    found = definitions(density)
    head = _HEAD.match(found[0].text) if found else None
    if head is None:
        return None
    known = Support()
    for comparison, bound in _conditions(found[0].text, head[1]):
        if bound is None:
            return None
        known = _narrowed(known, comparison, bound)
    return None if known == Support() else known


def _conditions(text: str, variate: str) -> list[tuple[str, Bound | None]]:
    """What holds of the variate where the density is positive, in the order of the statements."""
    found: list[tuple[str, Bound | None]] = []
    for line in text.splitlines():
        if (statement := _STATEMENT.search(line)) is not None and statement[2] == variate:
            others = statement[3].split(", ") if statement[3] else []
            for condition in REQUIREMENTS[statement[1]].conditions:
                operand = condition.operand
                bound = _bound(others[operand.position - 1]) if isinstance(operand, ArgumentReference) else operand
                found.append((condition.comparison, bound))
        elif (guard := _GUARD.search(line)) is not None:
            for part in guard[1].split(" || "):
                compared = _COMPARISON.fullmatch(part)
                if compared is not None and compared[1] == variate:
                    found.append((_EXCLUDED[compared[2]], _bound(compared[3])))
    return found


def _bound(text: str) -> Bound | None:
    try:
        return float(text)
    except ValueError:
        return text if text.isidentifier() else None


def _narrowed(known: Support, comparison: str, bound: Bound) -> Support:
    """With one more condition. Of a number and an argument the argument is taken: what it may be is checked itself."""
    lower, upper, has_lower, has_upper = known.lower, known.upper, known.has_lower, known.has_upper
    if comparison == "ne":
        return Support(lower, upper, has_lower and bound != lower, has_upper and bound != upper)
    if comparison in ("ge", "gt") and _is_narrower(bound, lower, above=True):
        lower, has_lower = bound, comparison == "ge" and (has_lower or bound != lower)
    elif comparison in ("le", "lt") and _is_narrower(bound, upper, above=False):
        upper, has_upper = bound, comparison == "le" and (has_upper or bound != upper)
    return Support(lower, upper, has_lower, has_upper)


def _is_narrower(bound: Bound, known: Bound, *, above: bool) -> bool:
    if isinstance(bound, str) or isinstance(known, str):
        return isinstance(bound, str)
    return bound >= known if above else bound <= known
