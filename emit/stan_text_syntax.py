"""Pieces of Stan text: operators by precedence, literals, types, index lists, calls."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, Operation

from ulam.dialects import stan
from ulam.dialects.stan import Effect
from ulam.library.functions import named
from ulam.library.records import record

CONDITIONAL, OR, AND, ADDITIVE, UNARY, POWER, TRANSPOSE, POSTFIX, ATOM = 1, 2, 3, 6, 9, 10, 11, 12, 13

PRECEDENCE = {
    "==": 4, "!=": 4, "<": 5, "<=": 5, ">": 5, ">=": 5, "+": 6, "-": 6, "*": 7, "/": 7, "%": 7, ".*": 7, "./": 7,
    "%/%": 8, "\\": 8, "^": POWER, ".^": POWER,
}  # fmt: skip
"""Binding strength of the binary operators (Stan Reference Manual, "Expressions", operator precedence)."""

_LEAST_INT = -(2**31)
ORDERED = Effect.PRINTS | Effect.DRAWS | Effect.ADDS_TARGET | Effect.ADDS_JACOBIAN | Effect.READS_TARGET


@record(slots=True)
class Text:
    """An expression that is not printed yet."""

    text: str
    precedence: int = ATOM
    effects: Effect = Effect.NONE
    order: tuple[int, int] | None = None  # numbers of its first and last op whose place among the others matters
    promoted: bool = False  # an int, as written, where a real is meant
    tilde: str | None = None  # of a density: `y ~ normal(mu, sigma)`

    def within(self, precedence: int) -> str:
        """The text as an operand of something that binds with at least `precedence`."""
        return self.text if self.precedence >= precedence else f"({self.text})"

    def as_real(self) -> Text:
        """The text such that it is a real without the promotion that its place would imply."""
        if not self.promoted:
            return self
        if self.text.removeprefix("-").isdigit():
            return Text(f"{self.text}.0", self.precedence, self.effects, self.order)
        return Text(f"1.0 * {self.within(8)}", PRECEDENCE["*"], self.effects, self.order)


def in_order(operands: Sequence[Text]) -> bool:
    """Whether evaluating the operands from left to right keeps the order of what they do."""
    last = -1
    for operand in operands:
        if operand.order is not None:
            if operand.order[0] < last:
                return False
            last = operand.order[1]
    return True


def combined(number: int, own: Effect, operands: Sequence[Text]) -> tuple[Effect, tuple[int, int] | None]:
    """Effects and order of an expression from those of its op and its operands."""
    effects = own
    orders = [o.order for o in operands if o.order is not None]
    for operand in operands:
        effects |= operand.effects
    if own & ORDERED:
        orders.append((number, number))
    return effects, (orders[0][0], orders[-1][1]) if orders else None


# ---------------------------------------------------------------- types and literals


def type_text(type_: Attribute) -> str:
    """An unsized type, as in a function's signature."""
    if isinstance(type_, stan.ArrayType):
        return f"array[{',' * (type_.rank.data - 1)}] {type_text(type_.element)}"
    if isinstance(type_, stan.TupleType):
        return _tuple_text([type_text(element) for element in type_.elements])
    if isinstance(type_, stan.VarType):
        return type_text(type_.element)
    return type_.name.removeprefix("stan.")


def tuple_text(elements: Sequence[str]) -> str:
    """A tuple literal."""
    return f"({', '.join(elements)}{',' if len(elements) == 1 else ''})"


def _tuple_text(fields: Sequence[str]) -> str:
    return f"tuple{tuple_text(fields)}"


def tuple_of_fields(name: str, texts: Mapping[str, str]) -> str:
    """The type of a tuple `t` from those of `t.1`, `t.2.1`, ..."""
    if name in texts:
        return texts[name]
    numbers = dict.fromkeys(int(n[len(name) + 1 :].partition(".")[0]) for n in texts if n.startswith(f"{name}."))
    return _tuple_text([tuple_of_fields(f"{name}.{number}", texts) for number in numbers])


COMPLEX_PARTS = ("real", "imag")
"""What ends the names of the two variables that a complex one has become."""


def field_text(name: str) -> str:
    """A field of a tuple as the program is printed: a complex one is a tuple of two."""
    return ".".join(
        str(COMPLEX_PARTS.index(part) + 1) if part in COMPLEX_PARTS and n else part
        for n, part in enumerate(name.split("."))
    )


def real_text(value: float) -> str:
    if math.isnan(value):
        return "not_a_number()"
    if math.isinf(value):
        return "positive_infinity()" if value > 0 else "negative_infinity()"
    return repr(value)


def number_text(value: float) -> str:
    """A number where its type does not show from its place: a real has a point or an exponent."""
    if isinstance(value, int):
        return str(value) if value != _LEAST_INT else f"{_LEAST_INT + 1} - 1"  # a minus before what is too large
    return real_text(value)


def array_text(elements: str) -> str:
    """An array of these elements."""
    return f"{{{elements}}}"


def row_vector_text(elements: str) -> str:
    """A row vector of these elements, or a matrix of these rows."""
    return f"[{elements}]"


def constant_text(op: Operation) -> Text:
    """A literal. A whole number that is a real is written as an int: its place promotes it."""
    value = op.properties["value"]
    if isinstance(value, StringAttr):
        return Text(f'"{value.data}"')
    if isinstance(value, IntegerAttr):
        text = number_text(value.value.data)
        if value.value.data == _LEAST_INT:
            return Text(text, ADDITIVE)
        promoted = False
    else:
        number = cast("FloatAttr", value).value.data
        text = real_text(number)
        promoted = text.endswith(".0") and len(text) < 10 and text != "-0.0"
        text = text.removesuffix(".0") if promoted else text
    return Text(text, UNARY if text.startswith("-") else ATOM, promoted=promoted)


# ---------------------------------------------------------------- operators and calls


def sized_text(type_: Attribute, constraint: str, sizes: Sequence[str], bounds: Mapping[str, str] | None = None) -> str:
    """A type as declared: `array[N] vector<lower=0>[K]`, `array[2] simplex[K]`, `tuple(real, vector[K])`."""
    rank = 0
    if isinstance(type_, stan.ArrayType):
        rank, type_ = type_.rank.data, type_.element
    array, own = sizes[:rank], sizes[rank:]
    if isinstance(type_, stan.TupleType):
        fields: list[str] = []
        for element in type_.elements:
            count = size_count(element)
            fields.append(sized_text(element, "none", own[:count]))
            own = own[count:]
        base = _tuple_text(fields)
    else:
        base = constraint if constraint in stan.variables.CONSTRAINED_TYPES else type_text(type_)
    text = f"array[{', '.join(array)}] {base}" if rank else base
    if bounds:
        text += f"<{', '.join(f'{name}={bound}' for name, bound in bounds.items())}>"
    return text + (f"[{', '.join(own)}]" if own else "")


def sizes_of(type_: Attribute, value: Text) -> list[str]:
    """The sizes to declare a variable of a value with; none if to ask for them would draw or print once more."""
    if value.effects & ORDERED:
        return []
    if isinstance(type_, stan.TupleType):
        fields = enumerate(type_.elements, 1)
        return [s for n, element in fields for s in sizes_of(element, Text(f"{value.within(POSTFIX)}.{n}"))]
    rank = stan.dimensions(type_)
    if rank == 0 or isinstance(stan.scalar_of(type_), stan.TupleType):
        return []
    if isinstance(type_, stan.ArrayType) and rank > 1:
        return [f"dims({value.text})[{n}]" for n in range(1, rank + 1)]
    asked = ("rows", "cols") if rank == 2 else ("size" if isinstance(type_, stan.ArrayType) else "num_elements",)
    return [f"{name}({value.text})" for name in asked]


def size_count(type_: Attribute) -> int:
    """How many sizes a field of a tuple has."""
    if isinstance(type_, stan.ArrayType):
        return type_.rank.data + size_count(type_.element)
    if isinstance(type_, stan.TupleType):
        return sum(map(size_count, type_.elements))
    return stan.dimensions(type_)


def binary_text(symbol: str, left: Text, right: Text) -> Text:
    strength = PRECEDENCE[symbol]
    if left.promoted and right.promoted and strength not in (4, 5, POWER):
        # One real is enough; a literal shows it best.
        if right.text.isdigit():
            right = right.as_real()
        else:
            left = left.as_real()
    if strength == POWER:
        return Text(f"{left.within(POWER + 1)}{symbol}{right.within(POWER)}", POWER)
    return Text(f"{left.within(strength)} {symbol} {right.within(strength + 1)}", strength)


def unary_text(symbol: str, operand: Text) -> Text:
    if symbol == "'":
        return Text(f"{operand.within(TRANSPOSE)}'", TRANSPOSE)
    return Text(f"{symbol}{operand.within(POWER)}", UNARY)


def lazy_text(op: Operation, first: Text, regions: Sequence[Text]) -> Text:
    """`c ? a : b`, `a && b`, `a || b`."""
    if isinstance(op, stan.SelectOp):
        then, otherwise = regions
        return Text(f"{first.within(OR)} ? {then.within(OR)} : {otherwise.within(CONDITIONAL)}", CONDITIONAL)
    symbol, precedence = ("&&", AND) if isinstance(op, stan.AndOp) else ("||", OR)
    return Text(f"{first.within(precedence)} {symbol} {regions[0].within(precedence + 1)}", precedence)


def index_text(kinds: Sequence[StringAttr], operands: Sequence[Text]) -> str:
    """`[i, a:b, :]`."""
    parts: list[str] = []
    rest = iter(operands)
    for kind in kinds:
        match kind.data:
            case "single" | "multiple":
                parts.append(next(rest).text)
            case "between":
                parts.append(f"{next(rest).within(OR)}:{next(rest).within(OR)}")
            case "from":
                parts.append(f"{next(rest).within(OR)}:")
            case "to":
                parts.append(f":{next(rest).within(OR)}")
            case _:
                parts.append(":")
    return f"[{', '.join(parts)}]"


def call_text(name: str, unnormalized: bool, callback: str | None, arguments: Sequence[Text]) -> Text:
    """A call; of a density with its `|`, and with what it would be as a `~` statement."""
    texts = [a.text for a in arguments]
    distribution, kind, _ = named(name)
    if callback is not None:
        stem, passed, _ = named(callback)
        texts.insert(0, stem + passed.unnormalized_ending if unnormalized and passed.is_density else callback)
    elif kind.is_probability and texts:
        tilde = None
        if unnormalized and kind.is_density:
            name = distribution + kind.unnormalized_ending
            tilde = f"{arguments[0].within(OR)} ~ {distribution}({', '.join(texts[1:])})"
        return Text(f"{name}({texts[0]} | {', '.join(texts[1:])})", POSTFIX, tilde=tilde)
    return Text(f"{name}({', '.join(texts)})", POSTFIX)


_FILLED = {
    stan.VECTOR: "rep_vector({1}, num_elements({0}))",
    stan.ROW_VECTOR: "rep_row_vector({1}, num_elements({0}))",
    stan.MATRIX: "rep_matrix({1}, rows({0}), cols({0}))",
}


def filled_text(type_: Attribute, like: Text, value: Text) -> Text:
    """A container as large as another, each of whose elements is a value."""
    if isinstance(type_, stan.ArrayType):
        rank = type_.rank.data
        first = f"{like.within(POSTFIX)}[{', '.join('1' * rank)}]"
        element = value.text if type_.element == stan.REAL else _FILLED[type_.element].format(first, value.text)
        sizes = ", ".join(f"dims({like.text})[{k + 1}]" for k in range(rank))
        return Text(f"rep_array({element}, {sizes})", POSTFIX)
    return Text(_FILLED[type_].format(like.text, value.text), POSTFIX)
