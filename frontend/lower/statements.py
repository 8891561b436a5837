"""Lowers statements: AST → `stan` dialect, variable form.

What follows a break, continue or return in the same block is dropped. The statements of `{ ... }` go into the region
around it. Of an `if` both of whose branches leave, the second becomes what follows the first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xdsl.ir import Attribute, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan.variables import NO_BOUNDS
from ulam.frontend import syntax
from ulam.frontend.lower.builder import dialect_type
from ulam.frontend.lower.expressions import ExpressionLowering, unparenthesized, with_scalar
from ulam.frontend.lower.truncation import TruncatedDensity


def _target_base(target: syntax.Expression) -> tuple[syntax.Variable, list[list[syntax.Index] | int]]:
    """The assigned variable and the way into it: index lists and tuple fields, outermost first."""
    path: list[list[syntax.Index] | int] = []
    target = unparenthesized(target)
    while not isinstance(target, syntax.Variable):
        if isinstance(target, syntax.Indexed):
            path.insert(0, target.indices)
        elif isinstance(target, syntax.TupleProjection):
            path.insert(0, target.field)
        else:
            raise TypeError(f"a {type(target).__name__} cannot be assigned")
        target = unparenthesized(target.base)
    return target, path


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

    def sizes(self, sized: syntax.SizedType) -> list[SSAValue]:
        """Sizes of the array dimensions, then of the type itself; those of tuples one field after the other.

        In a tuple each dimension has a size: of `corr_matrix[K]` there are two.
        """
        values = [self.lower(e) for e in (*sized.array_sizes, *sized.sizes)]
        for field in sized.fields:
            values += self.sizes(field)
            missing = 0 if field.fields else stan.dimensions(dialect_type(field.type)) - len(field.array_sizes)
            values += [self.lower(e) for e in field.sizes * (missing - len(field.sizes))]
        return values

    def bound(self, bound: syntax.Expression | None, type_: Attribute) -> SSAValue | None:
        """A bound, offset or multiplier of a variable of `type_`: real if its entries are."""
        if bound is None:
            return None
        value = self.lower(bound)
        return self.coerce(bound.span, value, with_scalar(value.type, stan.scalar_of(type_)))

    def declare(
        self, s: syntax.Declaration, *, with_bounds: bool, local: bool = False, is_parameter: bool = False
    ) -> SSAValue:
        """Declares a variable and makes its name known."""
        sized, constraint = s.sized_type, s.sized_type.constraint
        type_ = dialect_type(sized.type)
        sizes, bounds = self.sizes(sized), NO_BOUNDS
        kind = constraint.kind.value
        if not with_bounds and constraint.kind is syntax.ConstraintKind.OFFSET_MULTIPLIER:
            kind = "none"  # only parameters have an offset
        if with_bounds:
            written = (constraint.lower, constraint.upper, constraint.offset, constraint.multiplier)
            bounds = [self.bound(e, type_) for e in written]
        if is_parameter:
            op = stan.ParameterOp(s.name, type_, sizes, kind, bounds)
        else:
            op = stan.DeclareOp(s.name, type_, sizes, kind, bounds, local=local)
        variable = self.value(op, s.name_span)
        self.names[s.name] = variable
        return variable

    def _declaration(self, s: syntax.Declaration) -> bool:
        variable = self.declare(s, with_bounds=False, local=self.is_local())
        if s.initial is not None:
            value = self.coerce(s.initial.span, self.lower(s.initial), dialect_type(s.sized_type.type))
            self.assign(s.span, variable, value)
        return False

    def is_local(self) -> bool:
        """Whether a declaration here is inside `{ ... }` although its op is at the top level of a block."""
        return False

    # ------------------------------------------------------------ assignments

    def assign(
        self,
        span: syntax.Span,
        variable: SSAValue,
        value: SSAValue,
        kinds: tuple[str, ...] = (),
        indices: Sequence[SSAValue] = (),
    ) -> None:
        self.emit(stan.AssignOp(variable, value, kinds, indices), span)

    def _assignment(self, s: syntax.Assignment) -> bool:
        base, path = _target_base(s.target)
        variable = self.variable(base.name, base.span)
        assert isinstance(variable.type, stan.VarType), f"{base.name} is not a variable"
        if any(isinstance(step, int) for step in path):
            self._assign_field(s, variable, path)
            return False
        kinds, indices = self._assigned_indices(s, path)
        type_ = dialect_type(s.target.type) if kinds else variable.type.element
        value = self._assigned_value(s, type_, lambda: self._current(s, variable, kinds, indices))
        self.assign(s.span, variable, value, kinds, indices)
        return False

    def _assigned_indices(
        self, s: syntax.Assignment, path: list[list[syntax.Index] | int]
    ) -> tuple[tuple[str, ...], list[SSAValue]]:
        written: list[syntax.Index] = []
        for step in path:
            assert not isinstance(step, int)
            if any(i.kind is not syntax.IndexKind.SINGLE for i in written):
                self.unsupported(s.target.span, "indexing a multi-indexed assignment target again is")
            written = written + step
        return self.indices(written)

    def _current(
        self, s: syntax.Assignment, variable: SSAValue, kinds: tuple[str, ...], indices: list[SSAValue]
    ) -> SSAValue:
        """The value of the target before the assignment."""
        assert isinstance(variable.type, stan.VarType)
        value = self.value(stan.ReadOp(variable), s.target.span)
        if kinds:
            value = self.value(stan.IndexOp(value, kinds, indices, dialect_type(s.target.type)), s.target.span)
        return value

    def _assigned_value(self, s: syntax.Assignment, type_: Attribute, current: Callable[[], SSAValue]) -> SSAValue:
        """The right-hand side; of `target op= e` that is `target op e`."""
        if s.operator == "=":
            return self.coerce(s.value.span, self.lower(s.value), type_)
        left = current()
        value = self.binary(s.span, s.operator[:-1], left, self.lower(s.value), type_)
        return self.coerce(s.span, value, type_)

    def _assign_field(self, s: syntax.Assignment, variable: SSAValue, path: list[list[syntax.Index] | int]) -> None:
        """`t.1 = e` and `t.2.1 = e`: the tuple is rebuilt with the field replaced."""
        if not all(isinstance(step, int) for step in path):
            self.unsupported(s.target.span, "assigning to elements inside of a tuple is")
        assert isinstance(variable.type, stan.VarType)
        outer = [self.value(stan.ReadOp(variable), s.target.span)]
        fields = [step for step in path if isinstance(step, int)]
        for field in fields:
            outer.append(self._field(s.target.span, outer[-1], field))
        current = outer.pop()
        value = self._assigned_value(s, current.type, lambda: current)
        for field, whole in zip(reversed(fields), reversed(outer), strict=True):
            assert isinstance(whole.type, stan.TupleType)
            parts = [
                value if number == field else self._field(s.target.span, whole, number)
                for number in range(1, len(whole.type.elements) + 1)
            ]
            value = self.value(stan.TupleOp(parts, whole.type), s.target.span)
        self.assign(s.span, variable, value)

    def _field(self, span: syntax.Span, value: SSAValue, number: int) -> SSAValue:
        return self.value(stan.FieldOp(value, number), span)

    def _tuple_assignment(self, s: syntax.TupleAssignment) -> bool:
        self._unpack(s, s.targets, self.lower(s.value))
        return False

    def _unpack(self, s: syntax.TupleAssignment, targets: syntax.TupleLiteral, value: SSAValue) -> None:
        for number, target in enumerate(targets.elements, 1):
            part = self._field(target.span, value, number)
            target = unparenthesized(target)
            if isinstance(target, syntax.TupleLiteral):
                self._unpack(s, target, part)
                continue
            base, path = _target_base(target)
            variable = self.variable(base.name, base.span)
            assert isinstance(variable.type, stan.VarType)
            if len(path) > 1 or any(isinstance(step, int) for step in path):
                self.unsupported(target.span, "assigning to parts of a tuple or of a slice while unpacking is")
            kinds, indices = self.indices(path[0]) if path and not isinstance(path[0], int) else ((), [])
            type_ = dialect_type(target.type) if kinds else variable.type.element
            self.assign(s.span, variable, self.coerce(target.span, part, type_), kinds, indices)

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
        self.emit(stan.PrintOp(s.kind.value, values), s.span)
        return False

    # ------------------------------------------------------------ `~`

    def _tilde(self, s: syntax.Tilde) -> bool:
        call = s.call
        assert call is not None
        self.emit(stan.TargetAddOp(self.lower(call), tilde=True), s.span)
        if s.truncation is not None:
            self.statement(TruncatedDensity(call, s.distribution, s.distribution_span, s.truncation).normalization())
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
        container = self.lower(s.container)
        element = stan.element_of(container.type)
        assert element is not None
        body = self.region(self._loop_body(s.variable, s.body), (element,))
        self.emit(stan.ForEachOp(s.variable, container, body), s.span)
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
