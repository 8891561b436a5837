"""Which values the ints of a program can have, across its functions: sets of a few, or any.

Conditional constant propagation (Wegman and Zadeck 1991) with small sets in place of constants, and with calls: what a
function is given is what all calls give it that are reached; an arm of a branch is reached if its condition may choose
it. A function of ints is evaluated for each combination of what it may be given. Begins with what is known of the data.

Flow-insensitive but for branches: a local variable has values if it is assigned once, where it is declared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from types import MappingProxyType

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ulam.dialects import stan
from ulam.passes.analysis.literals import evaluate
from ulam.passes.analysis.nesting import is_before
from ulam.passes.known_data import ANY_INDEX, Element
from ulam.passes.variable_form import EXITS, literal_of

MOST_VALUES = 16
MOST_COMBINATIONS = 64
DEEPEST = 20
"""Nested calls that are evaluated."""

Values = frozenset[int] | None
"""None: any. Of an array of ints: those of its elements."""

_OPERATORS = frozenset[type]((*stan.BINARY_OPERATORS.values(), *stan.UNARY_OPERATORS.values()))
_OF_EXPRESSIONS = _OPERATORS | {stan.ConstantOp, stan.AndOp, stan.OrOp, stan.SelectOp, stan.CallOp}
"""Classes of ops that are evaluated where their value is needed."""


def row_of(op: stan.IndexOp) -> Element | None:
    """The element of a global array of ints that is read, `ANY_INDEX` for each index that is no literal; None if it is
    another array, or more than one element."""
    read = op.value.owner
    if not isinstance(read, stan.ReadOp) or op.res.type != stan.INT or not isinstance(read.var.owner, stan.GlobalOp):
        return None
    literals = (literal_of(index) for index in op.indices)
    indices = tuple(n if isinstance(n, int) and n > 0 else ANY_INDEX for n in literals)
    return Element(read.var.owner.var_name.data, indices)


class ValueSets:
    """The analysis of one program; `data`: values of ints, and of the elements of arrays, by name; `rows`: of those
    elements of arrays that have some indices."""

    def __init__(
        self,
        program: stan.ProgramOp,
        data: Mapping[str, frozenset[int]],
        rows: Mapping[Element, frozenset[int]] = MappingProxyType({}),
    ) -> None:
        self._data = data
        self._rows = rows
        parts = list(program.body.block.ops)
        self.functions = {op.sym_name.data: op for op in parts if isinstance(op, stan.FuncOp) and op.library is None}
        self._blocks = [op.body.block for op in parts if isinstance(op, stan.BlockOp)]
        self._given: dict[SSAValue, Values] = {}
        """What formals are given by the calls that were reached so far."""
        self._entered: dict[str, None] = {}
        self._known: dict[SSAValue, Values] = {}
        self._evaluated: dict[tuple[str, tuple[int, ...]], int | None] = {}
        self._changed = True
        while self._changed:
            self._changed = False
            self._known.clear()
            for block in self.bodies():
                self._walk(block)

    def bodies(self) -> Iterator[Block]:
        """Blocks of the program, and bodies of the functions that are reached."""
        yield from self._blocks
        done = 0
        while done < len(self._entered):  # more may be reached meanwhile
            name = list(self._entered)[done]
            done += 1
            if self.functions[name].body.blocks:
                yield self.functions[name].body.block

    def of(self, value: SSAValue) -> Values:
        """The values that an int may have, or the elements of an array of ints."""
        if isinstance(value, BlockArgument):
            is_formal = isinstance(value.block.parent_op(), stan.FuncOp)
            return self._given.get(value) if is_formal else None
        if value not in self._known:
            self._known[value] = None  # while it depends on itself
            found = self._found(value)
            self._known[value] = None if found is None or not 0 < len(found) <= MOST_VALUES else found
        return self._known[value]

    def truth(self, value: SSAValue) -> bool | None:
        """Whether a condition holds, where it always or never does."""
        values = self.of(value)
        return None if values is None or (0 in values and len(values) > 1) else 0 not in values

    # ------------------------------------------------------------ what is reached

    def _walk(self, block: Block) -> bool:
        """Notes the calls that are reached in a block; whether its end is."""
        for op in block.ops:
            if isinstance(op, stan.CallOp):
                self._call(op)
            if type(op) in EXITS:
                return False
            if not op.regions:
                continue
            if isinstance(op, stan.IfOp | stan.SelectOp):
                truth = self.truth(op.condition)
                arms = [op.then, op.otherwise] if truth is None else [op.then if truth else op.otherwise]
                ends = [self._walk(arm.block) for arm in arms]
                if isinstance(op, stan.IfOp) and not any(ends):
                    return False
            elif isinstance(op, stan.AndOp | stan.OrOp):
                if self.truth(op.left) is not isinstance(op, stan.OrOp):
                    self._walk(op.right.block)
            else:
                for region in op.regions:
                    for inner in region.blocks:
                        self._walk(inner)
        return True

    def _call(self, op: stan.CallOp) -> None:
        if op.callback is not None and op.callback.data in self.functions:
            self._enter(op.callback.data, None)
        if op.user is not None and op.callee.data in self.functions:
            self._enter(op.callee.data, list(op.operands))

    def _enter(self, name: str, operands: Sequence[SSAValue] | None) -> None:
        """A call of a function; of one that is passed on nobody knows the arguments."""
        if name not in self._entered:
            self._entered[name] = None
            self._changed = True
        if not self.functions[name].body.blocks:
            return
        for n, formal in enumerate(self.functions[name].body.block.args):
            if stan.scalar_of(formal.type) != stan.INT:
                continue
            given = None if operands is None or n >= len(operands) else self.of(operands[n])
            before = self._given.get(formal, frozenset())
            after = None if before is None or given is None else before | given
            if after is not None and len(after) > MOST_VALUES:
                after = None
            if formal not in self._given or after != before:
                self._given[formal] = after
                self._known.clear()
                self._changed = True

    # ------------------------------------------------------------ values

    def _found(self, value: SSAValue) -> Values:
        op = value.owner
        assert isinstance(op, Operation)
        literal = literal_of(value)
        if literal is not None:
            return frozenset((literal,)) if isinstance(literal, int) else None
        if stan.scalar_of(value.type) != stan.INT:
            return None
        if isinstance(op, stan.ReadOp):
            return self._variable(op)
        if isinstance(op, stan.IndexOp):
            row = row_of(op) if self._rows else None
            of_row = self._rows.get(row) if row is not None else None
            return self.of(op.value) if of_row is None else of_row
        if isinstance(op, stan.ArrayOp):
            return self._union(list(op.operands))
        if isinstance(op, stan.SelectOp):
            truth = self.truth(op.condition)
            arms = [op.then, op.otherwise] if truth is None else [op.then if truth else op.otherwise]
            return self._union([_yielded(arm.block) for arm in arms])
        if isinstance(op, stan.AndOp | stan.OrOp):
            return self._logical(op)
        if type(op) in _OPERATORS or (isinstance(op, stan.CallOp) and op.user is not None):
            return self._computed(op)
        return None

    def _variable(self, op: stan.ReadOp) -> Values:
        owner = op.var.owner
        if isinstance(owner, stan.GlobalOp):
            return self._data.get(owner.var_name.data)
        if not isinstance(owner, stan.DeclareOp):
            return None
        writes = [use.operation for use in owner.res.uses if not isinstance(use.operation, stan.ReadOp)]
        if len(writes) != 1 or not isinstance(write := writes[0], stan.AssignOp) or write.kinds.data:
            return None
        at_once = write.parent is owner.parent and not any(
            isinstance(use.operation, stan.ReadOp) and not _is_behind(use.operation, write) for use in owner.res.uses
        )
        return self.of(write.value) if at_once else None

    def _union(self, values: Sequence[SSAValue]) -> Values:
        found: frozenset[int] = frozenset()
        for value in values:
            values_of = self.of(value)
            if values_of is None:
                return None
            found |= values_of
        return found

    def _logical(self, op: stan.AndOp | stan.OrOp) -> Values:
        left, decides = self.truth(op.left), isinstance(op, stan.OrOp)
        if left is decides:
            return frozenset((int(decides),))
        right = self.truth(_yielded(op.right.block))
        if right is decides:
            return frozenset((int(decides),))
        if right is (not decides) and left is (not decides):
            return frozenset((int(not decides),))
        return frozenset((0, 1))

    def _computed(self, op: Operation) -> Values:
        operands = [self.of(operand) for operand in op.operands]
        known = [values for values in operands if values is not None]
        if len(known) < len(operands) or prod(map(len, known)) > MOST_COMBINATIONS:
            return None
        found: set[int] = set()
        for numbers in product(*known):
            number = self._evaluate(op, numbers, DEEPEST)
            if number is None:
                return None
            found.add(number)
        return frozenset(found)

    def _evaluate(self, op: Operation, numbers: Sequence[int], depth: int) -> int | None:
        if not isinstance(op, stan.CallOp):
            result = evaluate(op, numbers)
            return result if isinstance(result, int) else None
        if any(operand.type != stan.INT for operand in op.operands):
            return None
        key = op.callee.data, tuple(numbers)
        if key not in self._evaluated:
            function = self.functions.get(op.callee.data)
            self._evaluated[key] = None
            if function is not None and function.body.blocks and depth:
                block = function.body.block
                values: dict[SSAValue, int] = dict(zip(block.args, numbers, strict=True))
                self._evaluated[key] = _Call(self, values, depth - 1).result(block)
        return self._evaluated[key]


class _Unknown(Exception):
    """What is called does more than to compute an int."""


class _Call:
    """A function of ints, evaluated."""

    def __init__(self, sets: ValueSets, values: dict[SSAValue, int], depth: int) -> None:
        self._sets, self._values, self._depth = sets, values, depth

    def result(self, body: Block) -> int | None:
        """What it returns; None if that cannot be told."""
        try:
            return self._run(body)
        except _Unknown:
            return None

    def _run(self, block: Block) -> int | None:
        """What a block returns; None where it ends without."""
        for op in block.ops:
            if isinstance(op, stan.ReturnOp):
                if op.value is None:
                    raise _Unknown
                return self._of(op.value)
            if isinstance(op, stan.IfOp):
                arm = op.then if self._of(op.condition) else op.otherwise
                if (found := self._run(arm.block)) is not None:
                    return found
            elif isinstance(op, stan.YieldOp):
                return None
            elif not (op.results and type(op) in _OF_EXPRESSIONS):
                raise _Unknown
        return None

    def _of(self, value: SSAValue) -> int:
        if (known := self._values.get(value)) is not None:
            return known
        literal = literal_of(value)
        if isinstance(literal, int):
            return literal
        op = value.owner
        if isinstance(op, stan.SelectOp):
            return self._of(_yielded((op.then if self._of(op.condition) else op.otherwise).block))
        if isinstance(op, stan.AndOp | stan.OrOp):
            left, decides = bool(self._of(op.left)), isinstance(op, stan.OrOp)
            return int(decides if left is decides else bool(self._of(_yielded(op.right.block))))
        if not isinstance(op, Operation) or value.type != stan.INT:
            raise _Unknown
        if type(op) not in _OPERATORS and not (isinstance(op, stan.CallOp) and op.user is not None):
            raise _Unknown
        found = self._sets._evaluate(op, [self._of(operand) for operand in op.operands], self._depth)  # noqa: SLF001
        if found is None:
            raise _Unknown
        return found


def _is_behind(op: Operation, write: Operation) -> bool:
    """Whether an op stands behind another one of a block, or within what does."""
    while op.parent is not write.parent:
        outer = op.parent_op()
        if outer is None:
            return False
        op = outer
    return is_before(write, op)


def _yielded(block: Block) -> SSAValue:
    end = block.last_op
    assert isinstance(end, stan.YieldOp)
    return end.operands[0]
