"""Lowers expressions: AST → `stan` dialect, variable form. Every use of a variable is a `stan.read` of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.ir import Attribute, SSAValue

from ulam.dialects import stan
from ulam.frontend import syntax
from ulam.frontend.functions import higher_order
from ulam.frontend.functions.definitions import resolve
from ulam.frontend.functions.support import parts_of_jacobian
from ulam.frontend.lower.builder import StanBuilder, dialect_type, stan_type
from ulam.frontend.lower.laplace import laplace_call
from ulam.frontend.lower.literals import numbers_of
from ulam.frontend.lower.tuples import (
    Fields,
    Indices,
    Part,
    followed_by,
    goes_through_tuples,
    has_tuples,
    path_to,
    type_of_part,
    unparenthesized,
)
from ulam.frontend.source import Source
from ulam.frontend.stan_types import REAL, FunctionType, StanType
from ulam.library.complex_functions import BY_DEFINITION

_COMPARISONS = stan.expressions.COMPARISONS
LAZY_OPERATORS = ("&&", "||")


class Callees(Protocol):
    """Where calls find their callees; `ProgramLowering` is one."""

    def user_symbol(self, function: syntax.FunctionDefinition) -> str: ...

    def library_symbol(self, name: str, arguments: tuple[StanType, ...]) -> str | None: ...

    def user_function(self, name: str, arguments: tuple[StanType, ...]) -> syntax.FunctionDefinition | None: ...


def _is_negative_literal(e: syntax.Unary) -> bool:
    literal = unparenthesized(e.operand)
    if e.operator != "-":
        return False
    return isinstance(literal, syntax.RealLiteral) or (
        isinstance(literal, syntax.IntLiteral) and int(literal.text) != 0
    )


def with_scalar(type_: Attribute, scalar: Attribute) -> Attribute:
    """The type of the shape of `type_` with int entries replaced by `scalar` (containers of reals stay)."""
    if type_ == stan.INT:
        return scalar
    if isinstance(type_, stan.ArrayType) and type_.element == stan.INT:
        return stan.ArrayType(type_.rank, scalar)
    return type_


class ExpressionLowering(StanBuilder):
    """Expressions of one block or function. `names` maps what is in scope to a variable or a value."""

    def __init__(self, source: Source, functions: Callees) -> None:
        super().__init__(source)
        self.functions = functions
        self.names: dict[str, Part] = {}

    def lower(self, expression: syntax.Expression) -> SSAValue:
        """Appends the ops of an expression that has a value."""
        return _LOWERINGS[type(expression)](self, expression)

    def variable(self, name: str, span: syntax.Span) -> Part:
        """The variable or value in scope under `name`; of a tuple, that of each field."""
        return self.names[name]

    # ------------------------------------------------------------ leaves

    def _int(self, e: syntax.IntLiteral) -> SSAValue:
        return self.int_constant(e.span, int(e.text))

    def _real(self, e: syntax.RealLiteral) -> SSAValue:
        return self.real_constant(e.span, e.text)

    def _imaginary(self, e: syntax.ImaginaryLiteral) -> SSAValue:
        parts = (self.real_constant(e.span, "0"), self.real_constant(e.span, e.text))
        return self.library_call(e.span, "to_complex", parts, (REAL, REAL), (False, False), stan.COMPLEX)

    def _string(self, e: syntax.StringLiteral) -> SSAValue:
        return self.value(stan.ConstantOp(e.text), e.span)

    def _variable(self, e: syntax.Variable) -> SSAValue:
        return self.whole(e.span, self.read(e.span, self.variable(e.name, e.span)))

    def _parenthesized(self, e: syntax.Parenthesized) -> SSAValue:
        return self.lower(e.inner)

    def _promotion(self, e: syntax.Promotion) -> SSAValue:
        if has_tuples(e.type):
            return self.whole(e.span, self.parts(e))
        return self.coerce(e.span, self.lower(e.operand), dialect_type(e.type))

    # ------------------------------------------------------------ tuples

    def parts(self, e: syntax.Expression) -> Part:
        """The value of an expression, as `lower`; of a tuple its fields, where these are known one by one."""
        e = unparenthesized(e)
        if isinstance(e, syntax.Variable):
            return self.read(e.span, self.variable(e.name, e.span))
        if isinstance(e, syntax.TupleLiteral):
            return Fields([self.parts(x) for x in e.elements])
        if isinstance(e, syntax.ArrayLiteral) and has_tuples(e.type):
            return self._array_of(e, [self.parts(x) for x in e.elements], dialect_type(e.type))
        if isinstance(e, syntax.Promotion) and has_tuples(e.type):
            return self.coerced(e.span, self.parts(e.operand), dialect_type(e.type))
        if isinstance(e, syntax.Indexed | syntax.TupleProjection) and goes_through_tuples(e):
            return self._part_at(e)
        return self.lower(e)

    def read(self, span: syntax.Span, part: Part) -> Part:
        """The values of variables."""
        if isinstance(part, Fields):
            return Fields([self.read(span, field) for field in part.parts])
        return self.value(stan.ReadOp(part), span) if isinstance(part.type, stan.VarType) else part

    def whole(self, span: syntax.Span, part: Part) -> SSAValue:
        """A tuple of known fields as one value."""
        if not isinstance(part, Fields):
            return part
        fields = [self.whole(span, field) for field in part.parts]
        return self.value(stan.TupleOp(fields, part.type), span)

    def field(self, span: syntax.Span, part: Part, number: int) -> Part:
        """A field of a tuple."""
        if isinstance(part, Fields):
            return part.parts[number - 1]
        return self.value(stan.FieldOp(part, number), span)

    def coerced(self, span: syntax.Span, part: Part, type_: Attribute) -> Part:
        """`coerce`, field by field."""
        if not isinstance(type_, stan.TupleType) or type_of_part(part) == type_:
            return part if isinstance(part, Fields) else self.coerce(span, part, type_)
        fields = enumerate(type_.elements, 1)
        return Fields([self.coerced(span, self.field(span, part, n), field) for n, field in fields])

    def indexed_part(self, span: syntax.Span, part: Part, indices: Sequence[Indices]) -> Part:
        """The value of `part[indices]`; of a tuple of arrays each is indexed."""
        if not indices:
            return self.read(span, part)
        if isinstance(type_ := type_of_part(part), stan.TupleType):
            fields = range(1, len(type_.elements) + 1)
            return Fields([self.indexed_part(span, self.field(span, part, n), indices) for n in fields])
        value = self.read(span, part)
        for kinds, operands in indices:
            assert isinstance(value, SSAValue)
            if kinds:
                result = stan.indexed(value.type, kinds)
                assert result is not None
                value = self.value(stan.IndexOp(value, kinds, operands, result), span)
        return value

    def element_at(
        self, span: syntax.Span, part: Part, path: Sequence[list[syntax.Index] | int]
    ) -> tuple[Part, list[Indices]]:
        """Where a path of fields and indices leads to: in a tuple of arrays, the fields come first."""
        indices: list[Indices] = []
        for step in path:
            if isinstance(step, int):
                part = self.field(span, part, step)
            else:
                indices = followed_by(indices, self.indices(step))
        return part, indices

    def _part_at(self, e: syntax.Indexed | syntax.TupleProjection) -> Part:
        base, path = path_to(e)
        part = self.variable(base.name, base.span) if isinstance(base, syntax.Variable) else self.parts(base)
        return self.indexed_part(e.span, *self.element_at(e.span, part, path))

    def _array_of(self, e: syntax.ArrayLiteral, elements: Sequence[Part], type_: Attribute) -> Part:
        """An array of tuples, as an array of each field."""
        if isinstance(type_, stan.TupleType):
            columns = (
                [self.field(e.span, element, n) for element in elements] for n in range(1, len(type_.elements) + 1)
            )
            return Fields([self._array_of(e, c, t) for c, t in zip(columns, type_.elements, strict=True)])
        element = stan.element_of(type_)
        assert element is not None
        values = [self.coerce(e.span, self.whole(e.span, part), element) for part in elements]
        return self.value(stan.ArrayOp(values, type_), e.span)

    # ------------------------------------------------------------ operators

    def _operators(self, e: syntax.Unary | syntax.Binary) -> SSAValue:
        """Operators in a row, in a loop: the tree is as deep as the row is long."""
        # Each node before its right, and that before its left operand: backwards, that is the order of evaluation.
        order: list[syntax.Expression] = []
        pending: list[syntax.Expression] = [e]
        while pending:
            found = pending.pop()
            order.append(found)
            if isinstance(found, syntax.Binary):
                pending.append(found.left)
                if found.operator not in LAZY_OPERATORS:
                    pending.append(found.right)
            elif isinstance(found, syntax.Unary) and not _is_negative_literal(found):
                pending.append(found.operand)
        values: list[SSAValue] = []
        for found in reversed(order):
            if isinstance(found, syntax.Binary):
                right = None if found.operator in LAZY_OPERATORS else values.pop()
                left = values.pop()
                if right is None:
                    values.append(self._logical(found, left))
                else:
                    values.append(self.binary(found.span, found.operator, left, right, dialect_type(found.type)))
            elif isinstance(found, syntax.Unary):
                values.append(self._unary(found, values))
            else:
                values.append(self.lower(found))
        return values[0]

    def _unary(self, e: syntax.Unary, values: list[SSAValue]) -> SSAValue:
        """A prefix operator or `'` of the last value; of a negative literal none is there."""
        if _is_negative_literal(e):
            literal = unparenthesized(e.operand)
            if isinstance(literal, syntax.IntLiteral):
                return self.int_constant(e.span, -int(literal.text))
            assert isinstance(literal, syntax.RealLiteral)
            return self.real_constant(e.span, f"-{literal.text}")
        return self.value(stan.UNARY_OPERATORS[e.operator](values.pop(), dialect_type(e.type)), e.span)

    def binary(self, span: syntax.Span, operator: str, left: SSAValue, right: SSAValue, result: Attribute) -> SSAValue:
        """An operator; what is int beside something that is not is promoted, so that no op mixes them.

        `^` of a matrix raises each of its elements to the power, as `.^` does.
        """
        if operator == "^" and left.type == stan.MATRIX:
            operator = ".^"
        if stan.scalar_of(result) == stan.COMPLEX and (name := BY_DEFINITION.get(operator)) is not None:
            return self._complex_call(span, name, left, right, result)
        scalars = {stan.scalar_of(left.type), stan.scalar_of(right.type)}
        if operator not in _COMPARISONS:
            scalars.add(stan.scalar_of(result))
        if stan.INT in scalars and len(scalars) > 1:
            # Of int beside complex the real is made first only in name: 1 → 1 + 0i.
            scalar = stan.COMPLEX if scalars == {stan.INT, stan.COMPLEX} else stan.REAL
            left = self.coerce(span, left, with_scalar(left.type, scalar))
            right = self.coerce(span, right, with_scalar(right.type, scalar))
        return self.value(stan.BINARY_OPERATORS[operator](left, right, result), span)

    def _complex_call(
        self, span: syntax.Span, name: str, left: SSAValue, right: SSAValue, result: Attribute
    ) -> SSAValue:
        """An operator on complex numbers that is a function of the library."""
        if name == "divide" and stan.dimensions(right.type) == 2 and stan.dimensions(left.type):
            name = "mdivide_right"
        types = tuple(stan_type(operand.type) for operand in (left, right))
        return self.library_call(span, name, (left, right), types, (True, True), result)

    def _logical(self, e: syntax.Binary, left: SSAValue) -> SSAValue:
        def right() -> None:
            self.emit(stan.YieldOp(self.lower(e.right)), e.right.span)

        op_class = stan.AndOp if e.operator == "&&" else stan.OrOp
        return self.value(op_class(left, self.region(right)), e.span)

    def _conditional(self, e: syntax.Conditional) -> SSAValue:
        condition = self.lower(e.condition)
        result = dialect_type(e.type)

        def branch(chosen: syntax.Expression) -> Callable[[], None]:
            def build() -> None:
                value = self.coerce(chosen.span, self.lower(chosen), result)
                self.emit(stan.YieldOp(value), chosen.span)

            return build

        then, otherwise = self.region(branch(e.then)), self.region(branch(e.otherwise))
        return self.value(stan.SelectOp(condition, then, otherwise, result), e.span)

    # ------------------------------------------------------------ containers

    def indices(self, written: list[syntax.Index]) -> tuple[tuple[str, ...], list[SSAValue]]:
        """Kinds and operands of an index list."""
        kinds: list[str] = []
        operands: list[SSAValue] = []
        for index in written:
            kinds.append(index.kind.value)
            operands.extend(self.lower(e) for e in (index.lower, index.upper) if e is not None)
        return tuple(kinds), operands

    def _indexed(self, e: syntax.Indexed) -> SSAValue:
        if goes_through_tuples(e):
            return self.whole(e.span, self._part_at(e))
        base, written = unparenthesized(e.base), e.indices
        # x[i][j] is x[i, j]; x[a:b][j] is not.
        while isinstance(base, syntax.Indexed) and all(i.kind is syntax.IndexKind.SINGLE for i in base.indices):
            base, written = unparenthesized(base.base), base.indices + written
        value = self.lower(base)
        kinds, operands = self.indices(written)
        if not kinds:
            return value
        return self.value(stan.IndexOp(value, kinds, operands, dialect_type(e.type)), e.span)

    def _projection(self, e: syntax.TupleProjection) -> SSAValue:
        return self.whole(e.span, self._part_at(e))

    def _array(self, e: syntax.ArrayLiteral) -> SSAValue:
        if has_tuples(e.type):
            return self.whole(e.span, self.parts(e))
        if (numbers := self._numbers(e)) is not None:
            return numbers
        result = dialect_type(e.type)
        element = stan.element_of(result)
        assert element is not None
        values = [self.coerce(x.span, self.lower(x), element) for x in e.elements]
        return self.value(stan.ArrayOp(values, result), e.span)

    def _row_vector(self, e: syntax.RowVectorLiteral) -> SSAValue:
        if (numbers := self._numbers(e)) is not None:
            return numbers
        result = dialect_type(e.type)
        rows = stan.type_attributes.MATRICES.get(result)
        element = rows if rows is not None else stan.scalar_of(result)
        values = [self.coerce(x.span, self.lower(x), element) for x in e.elements]
        return self.value(stan.RowVectorOp(values, result), e.span)

    def _numbers(self, e: syntax.ArrayLiteral | syntax.RowVectorLiteral) -> SSAValue | None:
        """A long literal of numbers alone as one op; None if it is short, or has other elements."""
        result = dialect_type(e.type)
        scalar = stan.scalar_of(result)
        if scalar not in (stan.INT, stan.REAL) or (found := numbers_of(e)) is None:
            return None
        if len(found.values) <= stan.FEW_NUMBERS or (values := found.attribute(scalar)) is None:
            return None
        return self.value(stan.LiteralOp(values, found.sizes, result), e.span)

    def _tuple(self, e: syntax.TupleLiteral) -> SSAValue:
        result = dialect_type(e.type)
        assert isinstance(result, stan.TupleType)
        values = [self.coerce(x.span, self.lower(x), t) for x, t in zip(e.elements, result.elements, strict=True)]
        return self.value(stan.TupleOp(values, result), e.span)

    # ------------------------------------------------------------ calls

    def _call(self, e: syntax.Call) -> SSAValue:
        if e.name in ("target", "get_lp") and not e.arguments:
            return self.value(stan.TargetOp(), e.span)
        if e.kind is not syntax.CallKind.USER and (parts := parts_of_jacobian(e.name)) is not None:
            return self._jacobian(e, *parts)
        return self.call(e, dialect_type(e.type)).results[0]

    def _jacobian(self, e: syntax.Call, constrain: str, log_jacobian: str) -> SSAValue:
        """A transform that adds its adjustment: that of each of the elements that it is applied to."""
        operands = [self.lower(a) for a in e.arguments]
        types = tuple(a.type for a in e.arguments)
        autodiff = tuple(a.ad_level is syntax.AdLevel.AUTODIFF for a in e.arguments)
        result = dialect_type(e.type)
        definition = resolve(log_jacobian, types)
        assert definition is not None
        if definition.definition.arguments[0].type == REAL:  # element by element
            adjustment = result
        else:
            adjustment = stan.array_of(stan.REAL, result.rank.data if isinstance(result, stan.ArrayType) else 0)
        added = self.library_call(e.span, log_jacobian, operands, types, autodiff, adjustment)
        self.emit(stan.JacobianAddOp(added), e.span)
        return self.library_call(e.span, constrain, operands, types, autodiff, result)

    def call(self, e: syntax.Call, result: Attribute | None) -> stan.CallOp:
        """A call of any function; `result` is None if it returns nothing."""
        if e.covariance is not None:
            return laplace_call(self, e, result)
        written = [a for a in e.arguments if not isinstance(a.type, FunctionType)]
        if e.callback is not None and len(written) == len(e.arguments):
            written = written[1:]  # the function comes first in every higher-order function
        operands = [self.lower(a) for a in written]
        is_user = e.kind is syntax.CallKind.USER
        captured, definition = range(0), None
        if not is_user:
            captured = higher_order.captured(e.name, len(written)) if e.callback is not None else captured
            passed = tuple(a.type for n, a in enumerate(written) if n not in captured)
            definition = self.functions.library_symbol(e.name, passed)
        call = stan.CallOp(
            self._user_callee(e, written) if is_user else e.name,
            operands,
            result,
            [int(a.ad_level is syntax.AdLevel.AUTODIFF) for a in written],
            user=is_user,
            unnormalized=e.unnormalized,
            callback=None if e.callback is None else self.functions.user_symbol(e.callback),
            captured=None if is_user or e.callback is None else [int(n in captured) for n in range(len(written))],
            definition=definition,
        )
        return self.emit(call, e.span)

    def _user_callee(self, e: syntax.Call, arguments: list[syntax.Expression]) -> str:
        function = e.function
        if function is None:  # a call that the lowering made
            function = self.functions.user_function(e.name, tuple(a.type for a in arguments))
            assert function is not None, f"no '{e.name}' for these arguments"
        return self.functions.user_symbol(function)

    def library_call(
        self,
        span: syntax.Span,
        name: str,
        operands: Sequence[SSAValue],
        types: tuple[StanType, ...],
        autodiff: tuple[bool, ...],
        result: Attribute,
    ) -> SSAValue:
        """A call of a library function that is not written in the program."""
        definition = self.functions.library_symbol(name, types)
        return self.value(stan.CallOp(name, operands, result, tuple(map(int, autodiff)), definition=definition), span)


_LOWERINGS: dict[type[syntax.Expression], Callable[[Any, Any], SSAValue]] = {
    syntax.IntLiteral: ExpressionLowering._int,
    syntax.RealLiteral: ExpressionLowering._real,
    syntax.ImaginaryLiteral: ExpressionLowering._imaginary,
    syntax.StringLiteral: ExpressionLowering._string,
    syntax.Variable: ExpressionLowering._variable,
    syntax.Parenthesized: ExpressionLowering._parenthesized,
    syntax.Promotion: ExpressionLowering._promotion,
    syntax.Unary: ExpressionLowering._operators,
    syntax.Binary: ExpressionLowering._operators,
    syntax.Conditional: ExpressionLowering._conditional,
    syntax.Indexed: ExpressionLowering._indexed,
    syntax.TupleProjection: ExpressionLowering._projection,
    syntax.ArrayLiteral: ExpressionLowering._array,
    syntax.RowVectorLiteral: ExpressionLowering._row_vector,
    syntax.TupleLiteral: ExpressionLowering._tuple,
    syntax.Call: ExpressionLowering._call,
}
