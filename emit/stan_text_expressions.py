"""Turns ops back into nested expressions: which are written where they are used, and which get a name first.

An expression stays *pending* until its use is printed. It gets a name before a statement that could change what it
means, if it is used several times (unless short and repeatable), if it is used in another region, or if writing it at
its use would change the order of prints, random draws or additions to the target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, cast

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect, conflict, effects_within
from ulam.dialects.walk import ops_within
from ulam.emit.stan_text_complex import field_in_text, in_parts, result_in_text, with_complex_arguments
from ulam.emit.stan_text_syntax import (
    POSTFIX,
    Text,
    array_text,
    binary_text,
    call_text,
    combined,
    constant_text,
    filled_text,
    in_order,
    index_text,
    lazy_text,
    number_text,
    row_vector_text,
    sized_text,
    sizes_of,
    tuple_text,
    type_text,
    unary_text,
)
from ulam.library.externals import name_in_program
from ulam.library.functions import function

_REPEATED_LENGTH = 24  # an expression without effects that is used more than once is repeated up to this length


class NotAnExpression(Exception):
    """A region that was tried as an operand turns out to need statements."""


class ExpressionPrinter:
    """Expressions of the body of one function or block; the subclass prints statements."""

    expressions: ClassVar[dict[type[Operation], Callable[[Any, Any], None]]]  # how ops are written: EXPRESSIONS

    def __init__(
        self,
        functions: Mapping[str, stan.FuncOp],
        calls: CallEffects,
        reserved: frozenset[str] = frozenset(),
    ) -> None:
        self.functions = functions
        self.calls = calls
        self.lines: list[str] = []
        self.depth = 1
        self.names: dict[SSAValue, str] = {}
        self.pending: dict[SSAValue, Text] = {}
        self.complexes: dict[SSAValue, Attribute] = {}  # types of what has complex numbers in the text
        self.hidden: set[Operation] = set()  # checks that a declaration already says
        self._uses_left: dict[SSAValue, int] = {}
        self.reserved = reserved
        self.scopes: list[set[str]] = [set()]
        self._number = 0  # of the op being looked at
        self.operand_only = False
        self.repeats = False  # whether every use writes its operands anew
        self.puts_out = False  # whether what is declared at the top level is put out by the program
        self.strays = False  # whether something that is not the program's is declared there

    def block(self, block: Block, end: Callable[[Operation], None] | None = None) -> None:
        raise NotImplementedError

    # ------------------------------------------------------------ lines and names

    def line(self, text: str) -> None:
        if self.operand_only:
            raise NotAnExpression
        self.lines.append("  " * self.depth + text)

    def new_name(self, wanted: str, is_global: bool = False) -> str:
        """A name that nothing in scope has."""
        name, number = wanted, 1
        while any(name in scope for scope in self.scopes) or (name in self.reserved and not is_global):
            number += 1
            name = f"{wanted}_{number}"
        self.scopes[-1].add(name)
        return name

    # ------------------------------------------------------------ pending expressions

    def take(self, value: SSAValue) -> Text:
        """The text of an operand."""
        text = self.pending.get(value)
        if text is None:
            return Text(self.names[value])
        self._uses_left[value] -= 1
        if not self._uses_left[value]:
            del self.pending[value]
        return text

    def take_all(self, values: Sequence[SSAValue]) -> list[Text]:
        """The texts of operands that are written in this order."""
        if not in_order([self.pending[v] for v in values if v in self.pending]):
            self.flush(lambda text: text.order is not None)
        return [self.take(v) for v in values]

    def flush(self, concerned: Callable[[Text], bool]) -> None:
        """Gives names to the pending expressions that are concerned, in program order."""
        for value in [v for v, text in self.pending.items() if concerned(text)]:
            self.define(value, self.pending.pop(value))

    def flush_before(self, effects: Effect) -> None:
        if effects:
            self.flush(lambda text: conflict(text.effects, effects))

    def define(self, value: SSAValue, text: Text) -> None:
        """Declares a name for a value."""
        name = self.new_name(value.name_hint or "t")
        self.strays |= self.puts_out and self.depth == 1
        self.line(f"{self.temporary(self.complexes.get(value, value.type), text)} {name} = {text.text};")
        self.names[value] = name

    @staticmethod
    def temporary(type_: Attribute, value: Text) -> str:
        """The type of a variable that is declared for one value."""
        return sized_text(type_, "none", sizes) if (sizes := sizes_of(type_, value)) else type_text(type_)

    def expression(self, op: Operation, text: Text, operands: Sequence[Text]) -> None:
        """Keeps the expression for its use, or gives it a name."""
        self._number += 1
        text.effects, text.order = combined(self._number, self.calls.of(op), operands)
        value = op.results[0]
        users = [use.operation for use in value.uses]
        if self.repeats and not text.effects & ~(Effect.THROWS | Effect.READS_VAR):
            self.pending[value] = text
            self._uses_left[value] = len(users)
            return
        shown = [user for user in users if user not in self.hidden]
        if users and not shown:
            return
        if text.order is not None:
            self._settle_order(value)
        nested = all(user.parent is op.parent for user in shown)
        if shown and nested and (len(shown) == 1 or self._repeatable(text, op, shown)):
            self.pending[value] = text
            self._uses_left[value] = len(shown)
            return
        self.flush_before(text.effects)
        self.define(value, text)

    def _settle_order(self, newer: SSAValue) -> None:
        """Names older expressions whose order matters, unless they are going to be written together with `newer`."""
        for value in [v for v, text in self.pending.items() if text.order is not None]:
            user = next(iter(value.uses)).operation
            feeds: SSAValue | None = newer
            while feeds is not None and feeds.has_one_use():
                fed = next(iter(feeds.uses)).operation
                if fed is user:
                    break
                feeds = fed.results[0] if len(fed.results) == 1 and fed.parent is user.parent else None
            else:
                self.define(value, self.pending.pop(value))

    def _repeatable(self, text: Text, op: Operation, users: list[Operation]) -> bool:
        """Whether every use may write the expression anew: it is short, and no use comes after a change."""
        if text.effects & ~(Effect.THROWS | Effect.READS_VAR) or len(text.text) > _REPEATED_LENGTH:
            return False
        left = set(users)
        later = op.next_op
        while later is not None:
            left.discard(later)
            if not left:
                return True
            if conflict(text.effects & ~Effect.THROWS, effects_within(later, self.calls)):
                return False
            later = later.next_op
        return False

    def inline(self, value: SSAValue) -> Text:
        """The expression of a value that is defined further down in the same block."""
        if value in self.names:
            return Text(self.names[value])
        assert isinstance(value, OpResult)
        trial = type(self)(self.functions, self.calls)
        trial.names, trial.operand_only, trial.repeats = dict(self.names), True, True
        trial.complexes = self.complexes
        needed: list[Operation] = []
        todo = [value.op]
        while todo:
            op = todo.pop()
            if op not in needed:
                needed.append(op)
                for inner in ops_within(op):
                    for v in inner.operands:
                        if isinstance(v, OpResult) and v.op.parent is op.parent and v not in self.names:
                            todo.append(v.op)
        assert value.op.parent is not None
        for op in value.op.parent.ops:
            if op in needed:
                trial.expressions[type(op)](trial, op)
        return trial.take(value)

    # ------------------------------------------------------------ how things are written

    binary_text = staticmethod(binary_text)
    unary_text = staticmethod(unary_text)
    call_text = staticmethod(call_text)
    index_text = staticmethod(index_text)
    lazy_text = staticmethod(lazy_text)

    # ------------------------------------------------------------ one method for each kind of op

    def constant(self, op: Operation) -> None:
        self.expression(op, constant_text(op), ())

    def binary(self, op: Any) -> None:
        operands = self.take_all(op.operands)
        self.expression(op, self.binary_text(op.SYMBOL, *operands), operands)

    def unary(self, op: Any) -> None:
        operands = self.take_all(op.operands)
        self.expression(op, self.unary_text(op.SYMBOL, operands[0]), operands)

    def promote(self, op: stan.PromoteOp) -> None:
        (operand,) = self.take_all(op.operands)
        promoted = op.operands[0].type == stan.INT and op.results[0].type == stan.REAL
        self.expression(op, Text(operand.text, operand.precedence, promoted=promoted), (operand,))

    def call_expression(self, op: stan.CallOp) -> tuple[Text, list[Text]]:
        name = name_in_program(op.callee.data)
        if name.startswith("laplace_") and op.callback is not None and op.definition is not None:
            return self.laplace_call(op, op.callback.data, op.definition.data)
        operands = self.take_all(op.operands)
        if name == "sized_as":
            return operands[0], operands
        if name == "fill_like":
            return filled_text(op.results[0].type, *operands), operands
        if op.user is not None:
            name = self.stan_name(name)
        if op.user is not None or (function(name).has_int_form and stan.scalar_of(op.results[0].type) == stan.REAL):
            # Without its promotion the call would choose another overload.
            operands = [o.as_real() for o in operands]
        callback = None
        if op.callback is not None:
            callback = self.stan_name(op.callback.data)
        arguments = operands if op.user is not None else self.with_complex_arguments(op, operands)
        return self.call_text(name, op.unnormalized is not None, callback, arguments), operands

    def stan_name(self, symbol: str) -> str:
        """What a function of the module is called in the program."""
        return self.functions[symbol].stan_name.data if symbol in self.functions else symbol

    def with_complex_arguments(self, op: stan.CallOp, operands: list[Text]) -> list[Text]:
        """Arguments of a library function."""
        definition = None if op.definition is None else self.functions.get(op.definition.data)
        if definition is None or len(definition.argument_names) != len(operands):
            return operands
        return with_complex_arguments(operands, [name.data for name in definition.argument_names])

    def laplace_call(self, op: stan.CallOp, callback: str, definition: str) -> tuple[Text, list[Text]]:
        """A Laplace approximation: its tuples put together again, and the call that gives the covariance taken apart.

        Where passes have put something else in place of that call, the matrix stands there, which is no Stan.
        """
        count = sum(op.captured.get_values()) if op.captured is not None else 0
        matrix = op.operands[count + 1].owner if op.operands[count + 1] in self.pending else None
        operands = self.take_all(op.operands)
        arguments, (block_size, covariance, *control) = operands[:count], operands[count:]
        likelihood = None
        if op.callee.data == definition:  # others have the likelihood in their name
            likelihood = self.stan_name(callback)
            arguments = [Text(tuple_text([a.text for a in arguments]))]
        arguments += [block_size, covariance]
        if isinstance(matrix, stan.CallOp) and matrix.user is not None:
            function, _, given = covariance.text.partition("(")
            arguments[-1:] = [Text(function), Text(f"({given[:-1]}{',' if len(matrix.operands) == 1 else ''})")]
        if control:
            arguments.append(Text(tuple_text([c.text for c in control])))
        return self.call_text(op.callee.data, op.unnormalized is not None, likelihood, arguments), operands

    def call(self, op: stan.CallOp) -> None:
        text, operands = self.call_expression(op)
        value = op.results[0]
        written = value.type if op.user is not None else result_in_text(op.callee.data, value.type)
        self.with_complex_result(op, text, operands, written)

    def with_complex_result(self, op: Operation, text: Text, operands: Sequence[Text], written: Attribute) -> None:
        """An expression whose type is `written` in the text: used field by field, or else a tuple made of its parts."""
        value = op.results[0]
        if written == value.type:
            self.expression(op, text, operands)
            return
        self.complexes[value] = written
        if all(isinstance(use.operation, stan.FieldOp) for use in value.uses):
            self.expression(op, text, operands)
            return
        text.effects, text.order = combined(self._number + 1, self.calls.of(op), operands)
        if text.order is not None:
            self._settle_order(value)
        self.flush_before(text.effects)
        self.define(value, text)
        self.names[value] = in_parts(self.names[value], written)
        del self.complexes[value]

    def read(self, op: stan.ReadOp) -> None:
        self.expression(op, Text(self.take(op.operands[0]).text), ())

    def index(self, op: stan.IndexOp) -> None:
        base, *indices = operands = self.take_all(op.operands)
        text = base.within(POSTFIX) + self.index_text(op.kinds.data, indices)
        self.expression(op, Text(text, POSTFIX), operands)

    def tuple_(self, op: stan.TupleOp) -> None:
        operands = self.take_all(op.operands)
        parts = [(o.as_real() if v.type == stan.REAL else o).text for o, v in zip(operands, op.operands, strict=True)]
        self.expression(op, Text(tuple_text(parts)), operands)

    def array(self, op: stan.ArrayOp) -> None:
        operands = self.take_all(op.operands)
        real = bool(operands) and op.operands[0].type == stan.REAL
        self.expression(op, Text(array_text(", ".join((o.as_real() if real else o).text for o in operands))), operands)

    def row_vector(self, op: stan.RowVectorOp) -> None:
        operands = self.take_all(op.operands)
        self.expression(op, Text(row_vector_text(", ".join(o.text for o in operands))), operands)

    def literal(self, op: stan.LiteralOp) -> None:
        self.expression(op, Text(self.literal_text(op, array_text, row_vector_text)), ())

    @staticmethod
    def literal_text(op: stan.LiteralOp, array: Callable[[str], str], row_vector: Callable[[str], str]) -> str:
        """The numbers with what `array` and `row_vector` put around the elements of each dimension, innermost first."""
        type_ = op.res.type
        rank = type_.rank.data if isinstance(type_, stan.ArrayType) else 0
        parts = [number_text(number) for number in op.numbers]
        for level, size in reversed(list(enumerate(op.shape))):
            around = array if level < rank else row_vector
            parts = [around(", ".join(parts[k : k + size])) for k in range(0, len(parts), size)]
        return parts[0]

    def field(self, op: stan.FieldOp) -> None:
        operands = self.take_all(op.operands)
        number = cast("IntegerAttr", op.properties["field"]).value.data
        written = self.complexes.get(op.operands[0])
        if written is None:
            self.expression(op, Text(f"{operands[0].within(POSTFIX)}.{number}", POSTFIX), operands)
            return
        text = field_in_text(operands[0], written, number)
        inner = written.elements.data[number - 1] if isinstance(written, stan.TupleType) else op.results[0].type
        self.with_complex_result(op, text, operands, inner)

    def target(self, op: stan.TargetOp) -> None:
        self.expression(op, Text("target()", POSTFIX), ())

    # ------------------------------------------------------------ lazy operands

    def lazy(self, op: Operation) -> None:
        """`?:`, `&&`, `||`: as an operator if the regions hold nothing but expressions."""
        try:
            regions = [self.operand_region(region) for region in op.regions]
        except NotAnExpression:
            if self.operand_only:
                raise
            self.lazy_statement(op)
            return
        first = self.take(op.operands[0])
        if isinstance(op, stan.SelectOp) and op.results[0].type == stan.REAL and regions[1].promoted:
            regions[0] = regions[0].as_real()
        self.expression(op, self.lazy_text(op, first, regions), [first, *regions])

    def lazy_statement(self, op: Operation) -> None:
        raise NotImplementedError

    def operand_region(self, region: Region) -> Text:
        """A region as an expression; raises NotAnExpression, and leaves no trace, if it needs statements."""
        found: list[Text] = []
        saved = (dict(self.names), dict(self.pending), dict(self._uses_left), [set(s) for s in self.scopes])
        outer, self.operand_only = self.operand_only, True
        try:
            self.block(region.block, lambda end: found.extend(self.take_all(end.operands)))
        except NotAnExpression:
            self.names, self.pending, self._uses_left, self.scopes = saved
            raise
        finally:
            self.operand_only = outer
        return found[0]


EXPRESSIONS: dict[type[Operation], Callable[[Any, Any], None]] = {
    **dict.fromkeys(stan.BINARY_OPERATORS.values(), ExpressionPrinter.binary),
    **dict.fromkeys(stan.UNARY_OPERATORS.values(), ExpressionPrinter.unary),
    stan.ConstantOp: ExpressionPrinter.constant,
    stan.PromoteOp: ExpressionPrinter.promote,
    stan.CallOp: ExpressionPrinter.call,
    stan.ReadOp: ExpressionPrinter.read,
    stan.IndexOp: ExpressionPrinter.index,
    stan.TupleOp: ExpressionPrinter.tuple_,
    stan.ArrayOp: ExpressionPrinter.array,
    stan.RowVectorOp: ExpressionPrinter.row_vector,
    stan.LiteralOp: ExpressionPrinter.literal,
    stan.FieldOp: ExpressionPrinter.field,
    stan.TargetOp: ExpressionPrinter.target,
    stan.SelectOp: ExpressionPrinter.lazy,
    stan.AndOp: ExpressionPrinter.lazy,
    stan.OrOp: ExpressionPrinter.lazy,
}
"""Ops that are expressions, and how they are written."""

ExpressionPrinter.expressions = EXPRESSIONS
