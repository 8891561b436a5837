"""Lowers statements: AST → `stan` dialect, variable form.

What follows a break, continue or return in the same block is dropped. The statements of `{ ... }` go into the region
around it. Of an `if` both of whose branches leave, the second becomes what follows the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Attribute, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan.variables import NO_BOUNDS
from ulam.frontend import syntax
from ulam.frontend.lower.builder import dialect_type
from ulam.frontend.lower.expressions import ExpressionLowering, with_scalar
from ulam.frontend.lower.truncation import TruncatedDensity
from ulam.frontend.lower.tuples import (
    Fields,
    Indices,
    Part,
    has_tuples,
    layout_of,
    leaves,
    path_to,
    type_of_part,
    unparenthesized,
)
from ulam.frontend.stan_types import array_of


class StatementLowering(ExpressionLowering):
    """Statements of one block or function. The methods return whether control does not get past the statement."""

    _depth = 0  # of `{ ... }` around the current statement, at the top level of a block

    # ------------------------------------------------------------ sequences and scopes

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Names declared inside end with it. Stan has no shadowing, so the names from outside stay as they are."""
        outer = self.names
        self.names = dict(outer)
        try:
            yield
        finally:
            # Globals that were first met inside stay known.
            self.names = outer

    def sequence(self, statements: Iterable[syntax.Statement]) -> bool:
        for statement in statements:
            if self.statement(statement):
                return True
        return False

    def statement(self, statement: syntax.Statement) -> bool:
        return _LOWERINGS[type(statement)](self, statement)

    def _body(self, statement: syntax.Statement) -> Callable[[], None]:
        """Fills a region with a statement in a scope of its own."""

        def build() -> None:
            with self.scope():
                self.statement(statement)
            if not self.ended():
                self.emit(stan.YieldOp(), statement.span)

        return build

    def _block(self, s: syntax.BlockStatement) -> bool:
        self._depth += 1
        try:
            with self.scope():
                return self.sequence(s.statements)
        finally:
            self._depth -= 1

    def _empty(self, s: syntax.Empty) -> bool:
        return False

    # ------------------------------------------------------------ declarations

    def bound(self, bound: syntax.Expression | None, type_: Attribute) -> SSAValue | None:
        """A bound, offset or multiplier of a variable of `type_`: real if its entries are."""
        if bound is None:
            return None
        value = self.lower(bound)
        return self.coerce(bound.span, value, with_scalar(value.type, stan.scalar_of(type_)))

    def declare(
        self, s: syntax.Declaration, *, with_bounds: bool, local: bool = False, is_parameter: bool = False
    ) -> Part:
        """Declares a variable, of a tuple one for each field, and makes its name known."""

        def variable(name: str, sized: syntax.SizedType, outer: list[SSAValue], ranks: tuple[int, ...]) -> Part:
            sizes = [*outer, *(self.lower(e) for e in sized.array_sizes)]
            if sized.fields:
                inside = (*ranks, len(sized.array_sizes))
                return Fields([variable(f"{name}.{n}", f, sizes, inside) for n, f in enumerate(sized.fields, 1)])
            constraint, bounds = sized.constraint, NO_BOUNDS
            type_ = dialect_type(array_of(sized.type, sum(ranks)))
            sizes += [self.lower(e) for e in sized.sizes]
            kind = constraint.kind.value
            if not with_bounds and constraint.kind is syntax.ConstraintKind.OFFSET_MULTIPLIER:
                kind = "none"  # only parameters have an offset
            if with_bounds:
                written = (constraint.lower, constraint.upper, constraint.offset, constraint.multiplier)
                bounds = [self.bound(e, type_) for e in written]
            if is_parameter:
                op = stan.ParameterOp(name, type_, sizes, kind, bounds, field_ranks=ranks)
            else:
                op = stan.DeclareOp(name, type_, sizes, kind, bounds, field_ranks=ranks, local=local)
            return self.value(op, s.name_span)

        found = self.names[s.name] = variable(s.name, s.sized_type, [], ())
        return found

    def _declaration(self, s: syntax.Declaration) -> bool:
        variable = self.declare(s, with_bounds=False, local=self.is_local())
        if s.initial is not None:
            self.assign(s.span, variable, self.parts_as(s.initial, type_of_part(variable)))
        return False

    def parts_as(self, e: syntax.Expression, type_: Attribute) -> Part:
        """The value of an expression as one of `type_`; of a tuple its fields, where these are known one by one."""
        if isinstance(type_, stan.TupleType):
            return self.coerced(e.span, self.parts(e), type_)
        return self.coerce(e.span, self.lower(e), type_)

    def is_local(self) -> bool:
        """Whether a declaration here is inside `{ ... }` although its op is at the top level of a block."""
        return False

    # ------------------------------------------------------------ assignments

    def assign(self, span: syntax.Span, target: Part, value: Part, indices: Indices = ((), ())) -> None:
        """`target[indices] = value`; of a tuple, field by field."""
        if isinstance(target, Fields):
            for number, field in enumerate(target.parts, 1):
                self.assign(span, field, self.field(span, value, number), indices)
            return
        assert isinstance(value, SSAValue)
        self.emit(stan.AssignOp(target, value, *indices), span)

    def _assignment(self, s: syntax.Assignment) -> bool:
        variable, indices = self._target(s.target)
        type_ = self._target_type(variable, indices)
        if s.operator == "=":
            value = self.parts_as(s.value, type_)
        else:
            assert not isinstance(variable, Fields)
            value = self._combined(s, type_, variable, indices)
        self.assign(s.span, variable, value, indices)
        return False

    def _target(self, target: syntax.Expression) -> tuple[Part, Indices]:
        """What is assigned to, and the indices of the part of it."""
        base, path = path_to(target)
        assert isinstance(base, syntax.Variable)
        variable, indices = self.element_at(target.span, self.variable(base.name, base.span), path)
        assert all(isinstance(leaf.type, stan.VarType) for leaf in leaves(variable)), f"{base.name} is not a variable"
        assert len(indices) <= 1, "a part that several indices name is not indexed again in an assignment"
        return variable, indices[0] if indices else ((), ())

    def _target_type(self, variable: Part, indices: Indices) -> Attribute:
        """The type of `variable[indices]`."""
        if isinstance(variable, Fields):
            return stan.TupleType(ArrayAttr([self._target_type(field, indices) for field in variable.parts]))
        type_ = stan.indexed(type_of_part(variable), indices[0])
        assert type_ is not None
        return type_

    def _combined(self, s: syntax.Assignment, type_: Attribute, variable: SSAValue, indices: Indices) -> SSAValue:
        """The value of `target op e` for `target op= e`."""
        left = self.value(stan.ReadOp(variable), s.target.span)
        if indices[0]:
            left = self.value(stan.IndexOp(left, *indices, type_), s.target.span)
        value = self.binary(s.span, s.operator[:-1], left, self.lower(s.value), type_)
        return self.coerce(s.span, value, type_)

    def _tuple_assignment(self, s: syntax.TupleAssignment) -> bool:
        self._unpack(s, s.targets, self.parts(s.value))
        return False

    def _unpack(self, s: syntax.TupleAssignment, targets: syntax.TupleLiteral, value: Part) -> None:
        for number, target in enumerate(targets.elements, 1):
            part = self.field(target.span, value, number)
            target = unparenthesized(target)
            if isinstance(target, syntax.TupleLiteral):
                self._unpack(s, target, part)
                continue
            variable, indices = self._target(target)
            part = self.coerced(target.span, part, self._target_type(variable, indices))
            self.assign(s.span, variable, part, indices)

    # ------------------------------------------------------------ effects

    def _as_increment(self, e: syntax.Expression) -> SSAValue:
        value = self.lower(e)
        return self.coerce(e.span, value, with_scalar(value.type, stan.REAL))

    def _target_increment(self, s: syntax.TargetIncrement) -> bool:
        self.emit(stan.TargetAddOp(self._as_increment(s.value)), s.span)
        return False

    def _jacobian_increment(self, s: syntax.JacobianIncrement) -> bool:
        self.emit(stan.JacobianAddOp(self._as_increment(s.value)), s.span)
        return False

    def _call_statement(self, s: syntax.CallStatement) -> bool:
        self.call(s.call, None)
        return False

    def _print(self, s: syntax.Print) -> bool:
        values = [self.lower(a) for a in s.arguments]
        is_tuple = [not isinstance(a, syntax.StringLiteral) and has_tuples(a.type) for a in s.arguments]
        layouts = "".join(layout_of(a.type) if t else "." for a, t in zip(s.arguments, is_tuple, strict=True))
        self.emit(stan.PrintOp(s.kind.value, values, layouts=layouts if layouts.strip(".0()") else ""), s.span)
        return False

    # ------------------------------------------------------------ `~`

    def _tilde(self, s: syntax.Tilde) -> bool:
        call = s.call
        assert call is not None
        self.emit(stan.TargetAddOp(self.lower(call), tilde=True), s.span)
        if s.truncation is not None:
            self.statement(TruncatedDensity(call, s).normalization())
        return False

    # ------------------------------------------------------------ control flow

    def _nothing(self, span: syntax.Span) -> Region:
        def build() -> None:
            self.emit(stan.YieldOp(), span)

        return self.region(build)

    def _if(self, s: syntax.If) -> bool:
        condition = self.lower(s.condition)
        then = self.region(self._body(s.then))
        leaves = not isinstance(then.block.last_op, stan.YieldOp)
        if s.otherwise is None:
            self.emit(stan.IfOp(condition, then, self._nothing(s.span)), s.span)
            return False
        otherwise = self.region(self._body(s.otherwise))
        if leaves and not isinstance(otherwise.block.last_op, stan.YieldOp):
            self.emit(stan.IfOp(condition, then, self._nothing(s.span)), s.span)
            ops = list(otherwise.block.ops)
            for op in ops:
                op.detach()
            self.block.add_ops(ops)
            return True
        self.emit(stan.IfOp(condition, then, otherwise), s.span)
        return False

    def _while(self, s: syntax.While) -> bool:
        def condition() -> None:
            self.emit(stan.ConditionOp(self.lower(s.condition)), s.condition.span)

        self.emit(stan.WhileOp(self.region(condition), self.region(self._body(s.body))), s.span)
        return False

    def _loop_body(self, name: str, body: syntax.Statement) -> Callable[[], None]:
        def build() -> None:
            with self.scope():
                argument = self.block.args[0]
                argument.name_hint = name
                self.names[name] = argument
                self.statement(body)
            if not self.ended():
                self.emit(stan.YieldOp(), body.span)

        return build

    def _for(self, s: syntax.For) -> bool:
        lower, upper = self.lower(s.lower), self.lower(s.upper)
        body = self.region(self._loop_body(s.variable, s.body), (stan.INT,))
        self.emit(stan.ForOp(s.variable, lower, upper, body), s.span)
        return False

    def _foreach(self, s: syntax.ForEach) -> bool:
        if has_tuples(s.container.type):
            return self._for_each_tuple(s, self.parts(s.container))
        container = self.lower(s.container)
        element = stan.element_of(container.type)
        assert element is not None
        body = self.region(self._loop_body(s.variable, s.body), (element,))
        self.emit(stan.ForEachOp(s.variable, container, body), s.span)
        return False

    def _for_each_tuple(self, s: syntax.ForEach, container: Part) -> bool:
        """A loop over an array of tuples: over the positions in the arrays of its fields."""
        first = container
        while isinstance(type_of_part(first), stan.TupleType):
            first = self.field(s.span, first, 1)
        assert isinstance(first, SSAValue)
        upper = self.value(stan.CallOp("size", [first], stan.INT, (0,)), s.span)

        def build() -> None:
            with self.scope():
                position = self.block.args[0]
                position.name_hint = s.variable
                self.names[s.variable] = self.indexed_part(s.variable_span, container, [(("single",), (position,))])
                self.statement(s.body)
            if not self.ended():
                self.emit(stan.YieldOp(), s.body.span)

        lower = self.int_constant(s.span, 1)
        self.emit(stan.ForOp(f"{s.variable}_position", lower, upper, self.region(build, (stan.INT,))), s.span)
        return False

    def _profile(self, s: syntax.Profile) -> bool:
        block = syntax.BlockStatement(s.statements, span=s.span)
        body = self.region(self._body(block))
        leaves = not isinstance(body.block.last_op, stan.YieldOp)
        self.emit(stan.ProfileOp(s.name, body), s.span)
        return leaves

    def _break(self, s: syntax.Break) -> bool:
        self.emit(stan.BreakOp(), s.span)
        return True

    def _continue(self, s: syntax.Continue) -> bool:
        self.emit(stan.ContinueOp(), s.span)
        return True

    def _return(self, s: syntax.Return) -> bool:
        value = None
        if s.value is not None:
            value = self.lower(s.value)
            value = self.coerce(s.value.span, value, self.result_type() or value.type)
        self.emit(stan.ReturnOp(value), s.span)
        return True

    def result_type(self) -> Attribute | None:
        """What the function being lowered returns; None outside of functions that return a value."""
        return None


_LOWERINGS: dict[type[syntax.Statement], Callable[[Any, Any], bool]] = {
    syntax.Declaration: StatementLowering._declaration,
    syntax.Assignment: StatementLowering._assignment,
    syntax.TupleAssignment: StatementLowering._tuple_assignment,
    syntax.TargetIncrement: StatementLowering._target_increment,
    syntax.JacobianIncrement: StatementLowering._jacobian_increment,
    syntax.Tilde: StatementLowering._tilde,
    syntax.CallStatement: StatementLowering._call_statement,
    syntax.Print: StatementLowering._print,
    syntax.BlockStatement: StatementLowering._block,
    syntax.Profile: StatementLowering._profile,
    syntax.If: StatementLowering._if,
    syntax.While: StatementLowering._while,
    syntax.For: StatementLowering._for,
    syntax.ForEach: StatementLowering._foreach,
    syntax.Break: StatementLowering._break,
    syntax.Continue: StatementLowering._continue,
    syntax.Return: StatementLowering._return,
    syntax.Empty: StatementLowering._empty,
}
