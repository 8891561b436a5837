"""Stan's text for values, types and ops of a trace."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ulam.library.functions import kind_of
from ulam.runtime.errors import ArgumentError
from ulam.tracing.instrument.graph import Item, ValueType
from ulam.tracing.nodes import Node
from ulam.tracing.tape.values import INT_UNASSIGNED, MISSING, Digest

INFIX = frozenset("+ - * / % ^ \\ .* ./ .^ < <= > >= == != %/%".split())
PREFIX = frozenset("+ - !".split())
_SPECIAL_REALS = {math.inf: "positive_infinity()", -math.inf: "negative_infinity()"}


class NamedValue:
    """A variable of the program that is written. `stands_for`: it has the storage of another one."""

    def __init__(self, name: str, type_: ValueType, sizes: tuple[int, ...]) -> None:
        self.name, self.type, self.sizes = name, type_, sizes
        self.stands_for: NamedValue | None = None

    def __str__(self) -> str:
        found = self
        while found.stands_for is not None:
            found = found.stands_for
        return found.name


Expression = list[str | NamedValue]


class FieldsOf(Expression):
    """A tuple: of its fields, which are no variable."""

    def __init__(self, fields: list[Expression]) -> None:
        joined: Expression = ["("]
        for number, field in enumerate(fields):
            joined += [", ", *field] if number else field
        super().__init__([*joined, ")"])
        self.fields = fields


def sizes_of(value: Any) -> tuple[int, ...]:
    """Of a container; none for a scalar."""
    if isinstance(value, Digest):
        return value.sizes
    return value.shape if isinstance(value, np.ndarray) else ()


def zero_size(value: Any) -> bool:
    """Whether a container has no elements: there is no literal for it."""
    return 0 in sizes_of(value)


def unsized_text(type_: ValueType, node: Node) -> str:
    """The type of a parameter. Raises ArgumentError for one that traces do not have."""
    if type_.base not in ("int", "bool", "real", "vector", "row_vector", "matrix"):
        raise ArgumentError(f"{node} has a type that traces do not keep: it cannot be written as Stan")
    base = "int" if type_.base == "bool" else type_.base
    return f"array[{',' * (type_.array_rank - 1)}] {base}" if type_.array_rank else base


def size_text(type_: ValueType, sizes: tuple[int, ...]) -> str:
    """The type of a local variable."""
    base = "int" if type_.base == "bool" else type_.base
    outer, inner = sizes[: type_.array_rank], sizes[type_.array_rank :]
    inner_text = f"[{', '.join(map(str, inner))}]" if inner else ""
    outer_text = f"array[{', '.join(map(str, outer))}] " if outer else ""
    return f"{outer_text}{base}{inner_text}"


def literal(value: Any, type_: ValueType) -> str:
    """A value that reads back as it is. Raises ArgumentError for one that was not kept."""
    if value is MISSING or isinstance(value, Digest):
        raise ArgumentError("a value that is a literal in the program is not kept: use containers='copy'")
    if isinstance(value, str):
        return f'"{value}"' if type_.base == "string" else value
    if isinstance(value, np.ndarray):
        return _container(value, type_)
    if type_.is_int:
        return f"({INT_UNASSIGNED + 1} - 1)" if value == INT_UNASSIGNED else _signed(str(int(value)))
    number = float(value)
    if math.isnan(number):
        return "not_a_number()"
    return _SPECIAL_REALS.get(number) or _signed(repr(number))


def _signed(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def _container(value: np.ndarray[Any, Any], type_: ValueType) -> str:
    if type_.array_rank:
        inner = ValueType(type_.base, type_.array_rank - 1)
        parts = [literal(part if inner.rank else part.item(), inner) for part in value]
        return f"{{{', '.join(parts)}}}"
    if type_.base == "matrix":
        return f"[{', '.join(_row(row) for row in value)}]"
    return _row(value) + ("'" if type_.base == "vector" else "")


def _row(value: np.ndarray[Any, Any]) -> str:
    return f"[{', '.join(literal(v, ValueType('real')) for v in value.tolist())}]"


def call_text(item: Item, operands: list[Expression], name: str = "") -> Expression:
    """An op or a call. `name`: another name for it."""
    name = name or item.name
    if name == "index":
        return _index(item.symbol.split(","), operands)
    if len(operands) == 2 and name in INFIX:
        return [*operands[0], f" {name} ", *operands[1]]
    if len(operands) == 1 and name in PREFIX:
        return [name, *operands[0]]
    if name == "'":
        return [*operands[0], "'"]
    begin, end = {"array": ("{", "}"), "row_vector": ("[", "]")}.get(name, (f"{name}(", ")"))
    bar = " | " if kind_of(name).is_probability else ", "
    parts: Expression = [begin]
    for n, operand in enumerate(operands):
        parts += [] if n == 0 else [bar if n == 1 else ", "]
        parts += operand
    return [*parts, end]


def _index(kinds: list[str], operands: list[Expression]) -> Expression:
    """`x[i, j:k, :]`; kinds as in `values.replaced`."""
    container, *rest = operands
    left = iter(rest)
    parts: Expression = [*container, "["]
    for n, kind in enumerate(kinds):
        parts += [", "] if n else []
        if kind in ("single", "multiple"):
            parts += next(left)
        elif kind == "between":
            parts += [*next(left), ":", *next(left)]
        elif kind == "from":
            parts += [*next(left), ":"]
        elif kind == "to":
            parts += [":", *next(left)]
        else:
            parts += [":"]
    return [*parts, "]"]
