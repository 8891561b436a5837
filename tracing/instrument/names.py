"""Kinds, names and types of ops in tables and listings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import FileLineColLoc, LocationAttr
from xdsl.ir import Attribute, Operation

from ulam.dialects import stan, trace
from ulam.frontend.functions.signatures import overloads
from ulam.library.externals import name_in_program
from ulam.tracing.instrument.graph import Place, ValueType

# ---------------------------------------------------------------- literals that stand for reals


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


_COMPARISONS = frozenset(("==", "!=", "<", "<=", ">", ">="))
_BASES: dict[Attribute, str] = {
    stan.INT: "int", stan.REAL: "real", stan.VECTOR: "vector", stan.ROW_VECTOR: "row_vector", stan.MATRIX: "matrix",
}  # fmt: skip
_PLAIN_NAMES = {
    stan.ArrayOp: "array", stan.RowVectorOp: "row_vector", stan.TupleOp: "tuple", stan.FieldOp: "field",
    stan.IndexOp: "index", stan.TargetOp: "target", stan.UninitializedOp: "uninitialized",
    trace.ConstrainOp: "constrain",
}  # fmt: skip
_SPECIAL = (stan.PrintOp, stan.CheckOp, stan.UninitializedOp, trace.ConstrainOp)


def value_type(type_: Attribute, *, truth: bool = False) -> ValueType:
    """The type of a value of the `stan` dialect."""
    if truth:
        return ValueType("bool")
    if isinstance(type_, stan.ArrayType) and type_.element in _BASES:
        return ValueType(_BASES[type_.element], type_.rank.data)
    return ValueType(_BASES.get(type_, "other"))


def place_of(location: LocationAttr | None) -> Place | None:
    """Where an op stands."""
    if not isinstance(location, FileLineColLoc):
        return None
    return Place(location.filename.data, location.line.data, location.column.data)


def name_of(op: Operation, names: Mapping[str, str]) -> tuple[str, str, bool]:
    """Kind and name of an op without regions, and whether its result is a truth value.

    `names`: of functions in the source, by symbol.
    """
    if isinstance(op, stan.CallOp):
        symbol = name_in_program(op.callee.data)
        return "call", names.get(symbol, symbol) if op.user is not None else symbol, False
    if isinstance(op, stan.PrintOp):
        return "special", op.kind.data, False
    if isinstance(op, stan.CheckOp):
        return "special", "check", False
    if isinstance(op, stan.FieldOp):
        return "call", "field", False
    if stan.ComplexPairAttr.marks(op):
        return "call", "complex", False
    operator = getattr(op, "SYMBOL", "")
    name = operator or _PLAIN_NAMES.get(type(op), op.name.removeprefix("stan."))
    kind = "special" if isinstance(op, _SPECIAL) else "call"
    return kind, name, operator in _COMPARISONS or operator == "!"


def part_of_record(op: Operation) -> str:
    """Which of `choices.KINDS` decides whether an op is a node at all; empty: it always is."""
    if isinstance(op, stan.PrintOp):
        return "print"
    return "checks" if isinstance(op, stan.CheckOp) else ""
