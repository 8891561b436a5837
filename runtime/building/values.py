"""Values of a program that is built in Python: nodes of the syntax tree, with operators.

    mu + tau * eta      y[1:n]      fn.exp(x)      y.follows(fn.normal(mu, sigma))

Indices are Stan's: they begin at 1, and `y[a:b]` has both ends. What the types of operands must be, the type checker
says when the program is used, with the place in the Python code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NoReturn, Union

from ulam.frontend import syntax
from ulam.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from ulam.runtime.building.program import BuiltProgram

Operand = Union["BuiltValue", int, float, complex, str, Sequence["Operand"]]
"""What may be an operand: a value, or a number, text of prints, a list (an array) or a tuple of Python."""


class BuiltValue:
    """An expression of the program."""

    __slots__ = ("node", "program")
    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    def __init__(self, program: BuiltProgram, node: syntax.Expression) -> None:
        self.program = program
        self.node = node

    # ------------------------------------------------------------ operators

    def __add__(self, other: Operand) -> BuiltValue:
        return self._binary("+", self, other)

    def __radd__(self, other: Operand) -> BuiltValue:
        return self._binary("+", other, self)

    def __sub__(self, other: Operand) -> BuiltValue:
        return self._binary("-", self, other)

    def __rsub__(self, other: Operand) -> BuiltValue:
        return self._binary("-", other, self)

    def __mul__(self, other: Operand) -> BuiltValue:
        return self._binary("*", self, other)

    def __rmul__(self, other: Operand) -> BuiltValue:
        return self._binary("*", other, self)

    def __truediv__(self, other: Operand) -> BuiltValue:
        return self._binary("/", self, other)

    def __rtruediv__(self, other: Operand) -> BuiltValue:
        return self._binary("/", other, self)

    def __floordiv__(self, other: Operand) -> BuiltValue:
        return self._binary("%/%", self, other)

    def __rfloordiv__(self, other: Operand) -> BuiltValue:
        return self._binary("%/%", other, self)

    def __mod__(self, other: Operand) -> BuiltValue:
        return self._binary("%", self, other)

    def __rmod__(self, other: Operand) -> BuiltValue:
        return self._binary("%", other, self)

    def __pow__(self, other: Operand) -> BuiltValue:
        return self._binary("^", self, other)

    def __rpow__(self, other: Operand) -> BuiltValue:
        return self._binary("^", other, self)

    def times(self, other: Operand) -> BuiltValue:
        """The product of elements: Stan's `.*`."""
        return self._binary(".*", self, other)

    def over(self, other: Operand) -> BuiltValue:
        """The quotient of elements: Stan's `./`."""
        return self._binary("./", self, other)

    def power(self, other: Operand) -> BuiltValue:
        """The power of elements: Stan's `.^`."""
        return self._binary(".^", self, other)

    def solve(self, other: Operand) -> BuiltValue:
        """The solution of a linear system: Stan's left division."""
        return self._binary("\\", self, other)

    def __eq__(self, other: object) -> BuiltValue:  # type: ignore[override]  # pyright: ignore
        return self._binary("==", self, other)

    def __ne__(self, other: object) -> BuiltValue:  # type: ignore[override]  # pyright: ignore
        return self._binary("!=", self, other)

    def __lt__(self, other: Operand) -> BuiltValue:
        return self._binary("<", self, other)

    def __le__(self, other: Operand) -> BuiltValue:
        return self._binary("<=", self, other)

    def __gt__(self, other: Operand) -> BuiltValue:
        return self._binary(">", self, other)

    def __ge__(self, other: Operand) -> BuiltValue:
        return self._binary(">=", self, other)

    def __and__(self, other: Operand) -> BuiltValue:
        return self._binary("&&", self, other)

    def __or__(self, other: Operand) -> BuiltValue:
        return self._binary("||", self, other)

    def __invert__(self) -> BuiltValue:
        return self._unary("!")

    def __neg__(self) -> BuiltValue:
        return self._unary("-")

    def __pos__(self) -> BuiltValue:
        return self._unary("+")

    @property
    def T(self) -> BuiltValue:
        """The transpose."""
        return self._unary("'")

    def __bool__(self) -> NoReturn:
        raise TypeError("a value of the program has no truth in Python: use `with program.if_(...)`, and & | ~")

    def __iter__(self) -> NoReturn:
        raise TypeError("a value of the program has no elements in Python: use `with program.foreach(...)`")

    # ------------------------------------------------------------ parts

    def __getitem__(self, indices: Any) -> BuiltValue:
        span = self.program.here()
        given = indices if isinstance(indices, tuple) else (indices,)
        return BuiltValue(self.program, syntax.Indexed(self.node, [self._index(i) for i in given], span=span))

    def __setitem__(self, indices: Any, value: Operand) -> None:
        self[indices].set(value)

    def field(self, number: int) -> BuiltValue:
        """The field of a tuple, from 1."""
        return BuiltValue(self.program, syntax.TupleProjection(self.node, number, span=self.program.here()))

    def _index(self, given: Any) -> syntax.Index:
        span, kinds = self.program.here(), syntax.IndexKind
        if not isinstance(given, slice):
            return syntax.Index(span, kinds.SINGLE, self.program.node(given))
        if given.step is not None:
            raise ArgumentError("an index has no step: give an array of ints")
        lower, upper = (None if end is None else self.program.node(end) for end in (given.start, given.stop))
        with_both = kinds.BETWEEN if lower is not None else kinds.TO
        kind = with_both if upper is not None else kinds.FROM if lower is not None else kinds.ALL
        return syntax.Index(span, kind, lower, upper)

    # ------------------------------------------------------------ statements

    def set(self, value: Operand) -> None:
        """Assigns to the variable, or to a part of it."""
        self.program.add(lambda span: syntax.Assignment(self.node, "=", self.program.node(value), span=span))

    def follows(self, distribution: BuiltValue, lower: Operand | None = None, upper: Operand | None = None) -> None:
        """The distribution statement `self ~ distribution`, truncated where limits are given."""
        call = distribution.node
        if not isinstance(call, syntax.Call):
            raise ArgumentError("a distribution is written as a call: y.follows(fn.normal(mu, sigma))")
        span = self.program.here()
        low, high = (None if end is None else self.program.node(end) for end in (lower, upper))
        truncation = syntax.Truncation(span, low, high) if low is not None or high is not None else None
        tilde = syntax.Tilde(self.node, call.name, call.name_span, call.arguments, truncation, span=span)
        self.program.add(lambda span: tilde)

    def _binary(self, operator: str, left: Any, right: Any) -> BuiltValue:
        program = self.program
        nodes = program.node(left), program.node(right)
        return BuiltValue(program, syntax.Binary(operator, *nodes, span=program.here()))

    def _unary(self, operator: str) -> BuiltValue:
        return BuiltValue(self.program, syntax.Unary(operator, self.node, span=self.program.here()))


def node_of(program: BuiltProgram, given: Any) -> syntax.Expression:
    """The node of an operand. Raises ArgumentError for what is none."""
    if isinstance(given, BuiltValue):
        if given.program is not program:
            raise ArgumentError("a value of another program")
        if isinstance(given.node, syntax.Variable):
            return syntax.Variable(given.node.name, span=program.here())
        return given.node
    span = program.here()
    if hasattr(given, "item") and not getattr(given, "shape", None):
        given = given.item()  # of NumPy
    elif hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, str):
        return syntax.StringLiteral(given, span=span)
    if isinstance(given, int):
        digits: syntax.Expression = syntax.IntLiteral(str(abs(given)), span=span)
        return syntax.Unary("-", digits, span=span) if given < 0 else digits
    if isinstance(given, float):
        return _real(given, span)
    if isinstance(given, complex):
        imaginary = syntax.ImaginaryLiteral(repr(abs(given.imag)), span=span)
        sign = "-" if math.copysign(1, given.imag) < 0 else "+"
        return syntax.Parenthesized(syntax.Binary(sign, _real(given.real, span), imaginary, span=span), span=span)
    if isinstance(given, list):
        return syntax.ArrayLiteral([program.node(entry) for entry in given], span=span)
    if isinstance(given, tuple):
        return syntax.TupleLiteral([program.node(entry) for entry in given], span=span)
    raise ArgumentError(f"a value of the program, a number, a list or a tuple was expected, found {given!r}")


def _real(given: float, span: syntax.Span) -> syntax.Expression:
    if not math.isfinite(given):
        name = "not_a_number" if math.isnan(given) else "positive_infinity" if given > 0 else "negative_infinity"
        return syntax.Call(name, [], span, span=span)
    literal = syntax.RealLiteral(repr(abs(given)), span=span)
    return syntax.Unary("-", literal, span=span) if math.copysign(1, given) < 0 else literal


def copied(node: Any) -> Any:
    """A tree without nodes that two of its places share: the type checker fills each."""
    if isinstance(node, list):
        return [copied(entry) for entry in node]
    if not isinstance(node, syntax.SyntaxNode):
        return node
    made = object.__new__(type(node))
    for each in fields(node):  # pyright: ignore[reportArgumentType]
        value = getattr(node, each.name)
        is_part = isinstance(value, list | syntax.SyntaxNode) and not isinstance(value, syntax.FunctionDefinition)
        object.__setattr__(made, each.name, copied(value) if is_part else value)
    return made
