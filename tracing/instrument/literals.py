"""Which int literals among the arguments of a library function stand for reals: `uniform_rng(0, 1)`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute

from ulam.dialects import stan
from ulam.frontend.functions.signatures import overloads

_CODES: dict[Attribute, str] = {
    stan.INT: "i", stan.REAL: "r", stan.VECTOR: "v", stan.ROW_VECTOR: "w", stan.MATRIX: "m",
}  # fmt: skip


def _code(type_: Attribute) -> str | None:
    if isinstance(type_, stan.ArrayType):
        inner = _CODES.get(type_.element)
        return None if inner is None else f"{type_.rank.data}{inner}"
    return _CODES.get(type_)


def real_positions(name: str, types: Sequence[Attribute], result: Attribute, literals: Sequence[int]) -> list[int]:
    """Of the arguments that are int literals, those that may as well be real: with the same type of result."""
    found = overloads(name)
    codes, wanted = [_code(type_) for type_ in types], _code(result)
    if found is None or wanted is None or any(code is None for code in codes):
        return []
    known = ["" if code is None else code for code in codes]
    positions: list[int] = []
    for n in literals:
        trial = [*known[:n], "r", *known[n + 1 :]]
        if found.results.get("".join(trial)) == wanted:
            positions.append(n)
            known = trial
    return positions
