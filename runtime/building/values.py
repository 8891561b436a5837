"""Values of a program that is built in Python: nodes of the syntax tree, with operators.

    mu + tau * eta      y[1:n]      fn.exp(x)      y.follows(fn.normal(mu, sigma))

Indices are Stan's: they begin at 1, and `y[a:b]` has both ends. What the types of operands must be, the type checker
says when the program is used, with the place in the Python code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Union

from ulam.frontend import syntax
from ulam.runtime.errors import ArgumentError

if TYPE_CHECKING:
    from ulam.runtime.building.program import BuiltProgram

Operand = Union["BuiltValue", "BuiltFunction", int, float, complex, str, Sequence["Operand"]]
"""What may be an operand: a value, or a number, text of prints, a list (an array) or a tuple of Python; a function,
for what calls one."""

_OPERATORS = ("=", "+=", "-=", "*=", "/=", ".*=", "./=")


class BuiltValue:
    """An expression of the program."""

    __slots__ = ("_updated", "node", "program")
    __hash__ = None  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

    def __init__(self, program: BuiltProgram, node: syntax.Expression) -> None:
        self.program = program
        self.node = node
        self._updated: tuple[BuiltValue, Any] | None = None  # see __setitem__

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

    def __iadd__(self, other: Operand) -> BuiltValue:
        return self._update("+=", other)

    def __isub__(self, other: Operand) -> BuiltValue:
        return self._update("-=", other)

    def __imul__(self, other: Operand) -> BuiltValue:
        return self._update("*=", other)

    def __itruediv__(self, other: Operand) -> BuiltValue:
        return self._update("/=", other)

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
        taken = BuiltValue(
            self.program, syntax.Indexed(self.program.node(self), [self._index(i) for i in given], span=span)
        )
        taken._updated = (self, indices)
        return taken

    def __setitem__(self, indices: Any, value: Operand) -> None:
        # `x[i] += v` of Python is `t = x[i]; t += v; x[i] = t`: the second of these was the assignment
        if isinstance(value, BuiltValue) and value._updated is not None:
            base, same = value._updated
            if base is self and same is indices:
                return
        self[indices].set(value)

    def field(self, number: int) -> BuiltValue:
        """The field of a tuple, from 1."""
        return BuiltValue(
            self.program, syntax.TupleProjection(self.program.node(self), number, span=self.program.here())
        )

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

    def set(self, value: Operand, operator: str = "=") -> None:
        """Assigns to the variable, or to a part of it; `operator` may be `+=`, `-=`, `*=`, `/=`, `.*=` or `./=`."""
        if operator not in _OPERATORS:
            raise ArgumentError(f"no operator of assignment: {operator!r}; there are {', '.join(_OPERATORS)}")
        node = self.assignable()
        self.program.add(lambda span: syntax.Assignment(node, operator, self.program.node(value), span=span))

    def assignable(self) -> syntax.Expression:
        """The node of a variable or of a part of one. Raises ArgumentError for what cannot be assigned to."""
        if not _is_assignable(self.node):
            raise ArgumentError("this expression cannot be assigned to: a variable, its elements and its fields can")
        return self.program.node(self)

    def _update(self, operator: str, value: Operand) -> BuiltValue:
        """`x += v`: of a variable or a part of one an assignment, as of NumPy's arrays; of others a new value."""
        if not _is_assignable(self.node):
            return NotImplemented
        self.set(value, operator)
        return self

    def follows(self, distribution: BuiltValue, lower: Operand | None = None, upper: Operand | None = None) -> None:
        """The distribution statement `self ~ distribution`, truncated where limits are given."""
        call = distribution.node
        if not isinstance(call, syntax.Call):
            raise ArgumentError("a distribution is written as a call: y.follows(fn.normal(mu, sigma))")
        span = self.program.here()
        low, high = (None if end is None else self.program.node(end) for end in (lower, upper))
        truncation = syntax.Truncation(span, low, high) if low is not None or high is not None else None
        tilde = syntax.Tilde(self.program.node(self), call.name, call.name_span, call.arguments, truncation, span=span)
        self.program.add(lambda span: tilde)

    # ------------------------------------------------------------ making nodes

    def _binary(self, operator: str, left: Any, right: Any) -> BuiltValue:
        program = self.program
        nodes = program.node(left), program.node(right)
        return BuiltValue(program, syntax.Binary(operator, *nodes, span=program.here()))

    def _unary(self, operator: str) -> BuiltValue:
        return BuiltValue(self.program, syntax.Unary(operator, self.program.node(self), span=self.program.here()))


class BuiltFunction:
    """A function of the program: its arguments as attributes within its body; called, a value."""

    def __init__(self, program: BuiltProgram, name: str, arguments: dict[str, BuiltValue]) -> None:
        self._program, self._name, self._arguments = program, name, arguments

    def __getattr__(self, name: str) -> BuiltValue:
        if name in self.__dict__.get("_arguments", ()):
            return self._arguments[name]
        raise AttributeError(f"function '{self.__dict__.get('_name')}' has no argument '{name}'")

    def __call__(self, *arguments: Operand) -> BuiltValue:
        return self._program.call(self._name, *arguments)

    def named_in(self, program: BuiltProgram) -> syntax.Expression:
        """Its name, where a function is an argument."""
        if program is not self._program:
            raise ArgumentError("a function of another program")
        return syntax.Variable(self._name, span=program.here())


def node_of(program: BuiltProgram, given: Any) -> syntax.Expression:
    """The node of an operand. Raises ArgumentError for what is none."""
    if isinstance(given, BuiltValue):
        if given.program is not program:
            raise ArgumentError("a value of another program")
        if isinstance(given.node, syntax.Variable):
            return syntax.Variable(given.node.name, span=program.here())
        return given.node
    if isinstance(given, BuiltFunction):
        return given.named_in(program)
    span = program.here()
    if hasattr(given, "item") and not getattr(given, "shape", None):
        given = given.item()  # of NumPy
    elif hasattr(given, "tolist"):
        given = given.tolist()
    if isinstance(given, str):
        return text_of(program, given)
    if isinstance(given, int):
        digits: syntax.Expression = syntax.IntLiteral(str(abs(given)), span=span)
        return syntax.Unary("-", digits, span=span) if given < 0 else digits
    if isinstance(given, float):
        return _real(given, span)
    if isinstance(given, complex):
        return _complex(given, span)
    if isinstance(given, list):
        if not given:
            raise ArgumentError("an array cannot be written without elements: its type would be unknown")
        return syntax.ArrayLiteral([program.node(entry) for entry in given], span=span)
    if isinstance(given, tuple):
        return syntax.TupleLiteral([program.node(entry) for entry in given], span=span)
    raise ArgumentError(f"a value of the program, a number, a list or a tuple was expected, found {given!r}")


def text_of(program: BuiltProgram, text: str) -> syntax.StringLiteral:
    """A text of a print, or the name of a profile."""
    if any(character in text for character in '"\r\n'):
        raise ArgumentError(f"a text of Stan is on one line and has no quotation marks, found {text!r}")
    return syntax.StringLiteral(text, span=program.here())


def _is_assignable(node: syntax.Expression) -> bool:
    while isinstance(node, syntax.Indexed | syntax.TupleProjection):
        node = node.base
    return isinstance(node, syntax.Variable)


def _complex(given: complex, span: syntax.Span) -> syntax.Expression:
    """`2.0i`, or `(1.0 + 2.0i)`; parts that are no finite numbers have no literals."""
    if not math.isfinite(given.imag):
        return syntax.Call("to_complex", [_real(given.real, span), _real(given.imag, span)], span, span=span)
    imaginary = syntax.ImaginaryLiteral(repr(abs(given.imag)), span=span)
    negative = math.copysign(1, given.imag) < 0
    if not negative and given.real == 0 and math.copysign(1, given.real) > 0:
        return imaginary
    sign = "-" if negative else "+"
    return syntax.Parenthesized(syntax.Binary(sign, _real(given.real, span), imaginary, span=span), span=span)


def _real(given: float, span: syntax.Span) -> syntax.Expression:
    if not math.isfinite(given):
        name = "not_a_number" if math.isnan(given) else "positive_infinity" if given > 0 else "negative_infinity"
        return syntax.Call(name, [], span, span=span)
    literal = syntax.RealLiteral(repr(abs(given)), span=span)
    return syntax.Unary("-", literal, span=span) if math.copysign(1, given) < 0 else literal
