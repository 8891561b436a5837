"""Expressions by number: equal numbers, equal values, as long as no variable that they read is assigned.

    x = exp(p) * a;  if (c) y = exp(p);        %1 and %3 are both `exp(read p)`: one number

Numbered by structure: class and properties of the op, types, numbers of the operands; a read by the variable that is
read, not by its name; a literal by its bits. Not numbered: what has other effects than to read and to throw, and what
uses a value from an earlier statement or from outside of its region (its variables may have changed meanwhile).

Candidates, the expressions that may be worth sharing, have bits, so that sets of them are ints: those that cost enough
and occur twice or in a loop.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect
from ulam.dialects.walk import ops_within
from ulam.library.functions import kind_of
from ulam.library.records import record
from ulam.passes.analysis.expression_cost import memory_cost, own_cost
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, Variables, members
from ulam.passes.variable_form import EXITS, LAZY, LOOPS, Variable, errors_are_retold, is_global, is_tree

_FREE = (stan.ConstantOp, stan.ReadOp, stan.PromoteOp, stan.FieldOp, stan.TupleOp)
_LAZY = frozenset[type](LAZY)
_PURE_OR_THROWS = int(Effect.READS_VAR | Effect.THROWS)
_THROWS = int(Effect.THROWS)
_HIGHEST_COST = 1_000_000


@record(slots=True, eq=False, repr=False)
class NumberedExpression:
    """`operands`: numbers of the operands; from `lazy` on, those of the regions of a lazy op.

    `op`: its first occurrence. `term`: a density, or a sum that has one as a summand (`DensityTerms`). `bit`: its place
    in sets of candidates, -1 if it is none.
    """

    number: int
    op: Operation
    operands: tuple[int, ...]
    lazy: int
    cost: int
    throws: bool
    term: bool
    occurrences: int = 0
    in_loop: bool = False
    bit: int = -1


@record(slots=True, eq=False, repr=False)
class Occurrence:
    """Where an expression is computed. Positions count the ops of the graph; `first`: that of the tree's first op.

    `statement`: the number of the statement that it belongs to.
    """

    expression: NumberedExpression
    statement: int
    position: int
    first: int
    size: int
    effects: int

    @property
    def start(self) -> int:
        """The position where the evaluation begins, if nothing else is evaluated meanwhile; else where it ends."""
        return self.first if self.position - self.first + 1 == self.size else self.position


@record(slots=True, eq=False, repr=False)
class _Argument:
    """A block argument as an operand."""

    expression: NumberedExpression


@record(slots=True)
class NodeSets:
    """What a node does to candidates, as sets of bits.

    `killed`: some variable of theirs is assigned. `exposed`: computed before that, and if they may throw, before any
    effect whose order counts. `computed`: computed, and not killed afterwards; `kept`: and there it can be stored.
    `ordered`: the node has an effect that expressions that throw must not cross. `barrier`: nothing moves past its end.
    `events`: occurrences of candidates that may be replaced, and ops that kill some, with these.
    """

    killed: int = 0
    exposed: int = 0
    computed: int = 0
    kept: int = 0
    ordered: bool = False
    barrier: bool = False
    events: list[tuple[Operation, Occurrence | None, int]] = field(
        default_factory=list["tuple[Operation, Occurrence | None, int]"]
    )

    def compute(self, occurrence: Occurrence, first_ordered: int | None, stores: bool) -> None:
        """A candidate is computed; `first_ordered`: the position of the first effect before that whose order counts."""
        expression = occurrence.expression
        bit = 1 << expression.bit
        if not self.killed & bit and not (
            expression.throws and first_ordered is not None and first_ordered < occurrence.start
        ):
            self.exposed |= bit
        self.computed |= bit
        if stores:
            self.kept |= bit

    def kill(self, bits: int) -> None:
        """Variables of candidates are assigned."""
        self.killed |= bits
        self.computed &= ~bits
        self.kept &= ~bits


class DensityTerms:
    """Densities, calls that may return one, and sums that have such a summand.

    Lowering adds the summands of a density to the target one by one if its value goes there and nowhere else. A value
    that is stored and read twice is summed up first: other last bits.
    """

    def __init__(self, functions: Iterable[stan.FuncOp]) -> None:
        callers: dict[str, list[str]] = {}
        pending: list[str] = []
        for function in functions:
            if function.library is not None:
                continue
            name = function.sym_name.data
            for op in ops_within(function):
                if isinstance(op, stan.CallOp):
                    if _is_density(op):
                        pending.append(name)
                    elif op.user is not None:
                        callers.setdefault(op.callee.data, []).append(name)
        self._functions: set[str] = set()
        while pending:
            name = pending.pop()
            if name not in self._functions:
                self._functions.add(name)
                pending += callers.get(name, ())

    def is_term(self, op: Operation, parts: Sequence[NumberedExpression]) -> bool:
        """Whether an op with these operands is such a term."""
        if op.results[0].type != stan.REAL:
            return False
        if isinstance(op, stan.CallOp):
            return _is_density(op) or (op.user is not None and op.callee.data in self._functions)
        return isinstance(op, stan.BINARY_OPERATORS["+"]) and any(part.term for part in parts)


def _is_density(call: stan.CallOp) -> bool:
    return call.definition is not None and kind_of(call.callee.data).is_summed


class Expressions:
    """The expressions of a graph, and what its nodes do to them.

    `statement_of`, `statement_start`, `first_ordered`: the statement that an op belongs to, its first op, and the
    position of its first effect whose order counts. `fixed`: ops that must stay as they are.
    """

    def __init__(
        self, graph: FlowGraph, calls: CallEffects, least_cost: int, terms: DensityTerms | None = None
    ) -> None:
        self.graph = graph
        self._terms = terms
        self.calls = calls
        self.least_cost = least_cost
        self.variables = Variables(graph)
        self.expressions: list[NumberedExpression] = []
        self.candidates: list[NumberedExpression] = []
        self.occurrence_of: dict[Operation, Occurrence] = {}
        self.everything = self.throwing = 0
        self.readers: dict[SSAValue | str | int, int] = {}
        self.fixed: set[Operation] = set()
        self._numbers: dict[object, NumberedExpression] = {}
        self._arguments: dict[SSAValue, _Argument] = {}
        self._leaf_of: dict[int, SSAValue | str | int] = {}
        self._statements = 0
        self.statement_of: dict[Operation, int] = {}
        self.statement_start: dict[int, Operation] = {}
        self.first_ordered: dict[int, int] = {}
        self._first_position: list[int] = []
        self._ordered_in: set[Block] = set()
        self._statement_in: dict[Block, int] = {}
        self._first_statement_in: dict[Block, int] = {}
        self.reached = graph.reached()
        self._number_all()
        self._choose_candidates()
        self._find_readers()
        self.sets = [self._sets_of(node) for node in graph.nodes] if self.candidates else []

    # ------------------------------------------------------------ numbering

    def _number_all(self) -> None:
        depth = self._loop_depths()
        position = 0
        for node in self.graph.nodes:
            self._first_position.append(position + 1)
            for op in evaluated(node):
                position += 1
                block = op.parent
                assert block is not None
                if block not in self._statement_in:
                    self._first_statement_in[block] = self._next_statement(block)
                statement = self.statement_of[op] = self._statement_in[block]
                self.statement_start.setdefault(statement, op)
                cls = type(op)
                if is_tree(op) and (cls in _LAZY or not op.regions):
                    self._number(op, cls, block, position, depth[node.number] > 0)
                else:
                    if cls is stan.CheckOp or (isinstance(op, Variable) and is_global(op)):
                        self._fix(op)
                    self._next_statement(block)

    def _next_statement(self, block: Block) -> int:
        self._statements += 1
        self._statement_in[block] = self._statements
        return self._statements

    def _loop_depths(self) -> list[int]:
        """How many loops are around each node."""
        steps = [0] * (len(self.graph.nodes) + 1)
        for first, end in loop_ranges(self.graph).values():
            steps[first] += 1
            steps[end] -= 1
        depth = 0
        depths: list[int] = []
        for step in steps:
            depth += step
            depths.append(depth)
        return depths

    def _fix(self, op: Operation) -> None:
        """Sizes and bounds of variables that others see stay as they are: other units compute them again."""
        pending = [operand.owner for operand in op.operands]
        while pending:
            inner = pending.pop()
            if not isinstance(inner, Block) and is_tree(inner) and inner not in self.fixed:
                for below in ops_within(inner):
                    self.fixed.add(below)
                    pending += [operand.owner for operand in below.operands]

    def _number(self, op: Operation, cls: type[Operation], block: Block, position: int, in_loop: bool) -> None:
        effects = int(self.calls.of(op))
        if effects & ~_PURE_OR_THROWS:
            return
        statement = self._statement_in[block]
        operands: list[int] = []
        first, size, lazy = position, 1, 0
        key: object
        if cls is stan.ReadOp:
            key = ("read", self.variable_key(op.operands[0]))
        elif cls is stan.ConstantOp:
            key = ("constant", op.results[0].type, _bits(op.properties["value"]))
        else:
            for operand in op.operands:
                found = self._operand(operand, statement)
                if found is None:
                    return
                if type(found) is Occurrence:
                    first, size = min(first, found.first), size + found.size
                operands.append(found.expression.number)
            lazy = len(operands)
            for region in op.regions:
                number = self._region_value(region.block)
                if number is None:
                    return
                operands.append(number)
            properties = frozenset(op.properties.items())
            key = (cls, op.results[0].type, properties, frozenset(op.attributes.items()), *operands)
        expression = self._numbers.get(key)
        if expression is None:
            parts = [self.expressions[number] for number in operands]
            throws = bool(effects & _THROWS) or "user" in op.properties or any(part.throws for part in parts)
            own = own_cost(op)
            if isinstance(op, stan.CallOp) and self._terms is None:
                own += memory_cost(op)  # not where bits count: what is shared gets its slope as a whole
            cost = min(own + sum(part.cost for part in parts), _HIGHEST_COST)
            term = self._terms is not None and self._terms.is_term(op, parts)
            expression = self._add(
                key, NumberedExpression(len(self.expressions), op, tuple(operands), lazy, cost, throws, term)
            )
            if cls is stan.ReadOp:
                self._leaf_of[expression.number] = self.variable_key(op.operands[0])
        expression.occurrences += 1
        expression.in_loop |= in_loop
        self.occurrence_of[op] = Occurrence(expression, statement, position, first, size, effects)

    def _add(self, key: object, expression: NumberedExpression) -> NumberedExpression:
        self.expressions.append(expression)
        self._numbers[key] = expression
        return expression

    def _operand(self, value: SSAValue, statement: int) -> Occurrence | _Argument | None:
        owner = value.owner
        if not isinstance(owner, Block):
            occurrence = self.occurrence_of.get(owner)
            return occurrence if occurrence is not None and occurrence.statement == statement else None
        argument = self._arguments.get(value)
        if argument is None:
            parent = owner.parent_op()
            assert parent is not None
            expression = self._add(value, NumberedExpression(len(self.expressions), parent, (), 0, 0, False, False))
            self._leaf_of[expression.number] = value
            argument = self._arguments[value] = _Argument(expression)
        return argument

    def _region_value(self, block: Block) -> int | None:
        """The number of what a region of a lazy op yields; None if it has more than an expression."""
        end = block.last_op
        first = self._first_statement_in.get(block)
        if first is None or not isinstance(end, stan.YieldOp):
            return None
        found = self._operand(end.operands[0], first)
        return found.expression.number if found is not None else None

    def variable_key(self, variable: SSAValue) -> str | int:
        """What stands for a variable: its number, or for that of another block, its name."""
        number = self.variables.find(variable)
        if number is not None:
            return number
        assert isinstance(variable.owner, stan.GlobalOp)
        return variable.owner.var_name.data

    # ------------------------------------------------------------ candidates

    def _choose_candidates(self) -> None:
        for expression in self.expressions:
            op = expression.op
            if (
                expression.cost < self.least_cost
                or isinstance(op, _FREE)
                or expression.term
                or not (expression.occurrences > 1 or expression.in_loop)
            ):
                continue
            expression.bit = len(self.candidates)
            self.candidates.append(expression)
            if expression.throws:
                self.throwing |= 1 << expression.bit
        self.everything = (1 << len(self.candidates)) - 1

    def _find_readers(self) -> None:
        """Which candidates a variable, or a block argument, is part of. Passed down from expressions to operands."""
        above: dict[int, int] = {}
        for expression in reversed(self.expressions):
            bits = above.pop(expression.number, 0)
            if expression.bit >= 0:
                bits |= 1 << expression.bit
            if not bits:
                continue
            for operand in expression.operands:
                above[operand] = above.get(operand, 0) | bits
            if (leaf := self._leaf_of.get(expression.number)) is not None:
                self.readers[leaf] = bits

    def parts(self, candidates: int) -> int:
        """The candidates that are surely computed when those of a set are, themselves included."""
        bits = 0
        pending = [self.candidates[bit].number for bit in members(candidates)]
        seen: set[int] = set()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            part = self.expressions[number]
            if part.bit >= 0:
                bits |= 1 << part.bit
            pending += part.operands[: part.lazy]
        return bits

    # ------------------------------------------------------------ sets of a node

    def killed_by(self, op: Operation) -> tuple[int, bool]:
        """The candidates that an op that is no expression kills, and whether it is a barrier."""
        effects = int(self.calls.of(op))
        if effects & Effect.PROFILES or _leaves_profile(op):
            return self.everything, True
        if not effects & Effect.WRITES_VAR:
            return 0, False
        killed = 0
        for value in (*op.operands, *op.results):
            if type(value.type) is stan.VarType:
                killed |= self.readers.get(self.variable_key(value), 0)
        return killed, False

    def _sets_of(self, node: FlowNode) -> NodeSets:
        found = NodeSets()
        if node.number not in self.reached:
            return found
        if node.header_of is not None:
            for region in node.header_of.regions:
                for argument in region.block.args:
                    found.killed |= self.readers.get(argument, 0)
        order = self.ordered_effects(node)
        stores, lazy = stores_in(node.block), is_lazy(node.block)
        first_ordered: int | None = None
        for position, op in enumerate(evaluated(node), self._first_position[node.number]):
            occurrence = self.occurrence_of.get(op)
            if occurrence is not None:
                effects = occurrence.effects
                if occurrence.expression.bit >= 0 and op not in self.fixed:
                    found.events.append((op, occurrence, 0))
                    if not lazy:
                        found.compute(occurrence, first_ordered, stores)
            else:
                effects = int(self.calls.of(op))
            if effects & order or (type(op) in _LAZY and self._has_ordered_operand(op)):
                found.ordered = True
                first_ordered = position if first_ordered is None else first_ordered
                self.first_ordered.setdefault(self.statement_of[op], position)
                self._ordered_in.add(node.block)
            if occurrence is None:
                killed, barrier = self.killed_by(op)
                if killed:
                    found.events.append((op, None, killed))
                    found.kill(killed)
                if barrier:
                    found.ordered = found.barrier = True
        return found

    def _has_ordered_operand(self, op: Operation) -> bool:
        return any(region.block in self._ordered_in for region in op.regions)

    def ordered_effects(self, node: FlowNode) -> int:
        """The effects in a node that expressions that may throw must not cross."""
        return int(Effect.PRINTS | Effect.DRAWS | Effect.PROFILES | (0 if self.is_retold(node) else Effect.THROWS))

    def is_retold(self, node: FlowNode) -> bool:
        """Whether the texts of errors come from the program as it was written, so that errors may change places."""
        parent = node.block.parent_op()
        return parent is not None and errors_are_retold(parent)


def evaluated(node: FlowNode) -> Iterator[Operation]:
    """The ops of a node where their results are known: lazy ones after their regions."""
    if node.after is not None and type(node.after) in _LAZY:
        yield node.after
    for op in node.ops:
        if type(op) not in _LAZY:
            yield op


def loop_ranges(graph: FlowGraph) -> dict[Operation, tuple[int, int]]:
    """Loop → number of its header, and of the node after it: what is in between is the loop."""
    headers = {node.header_of: node.number for node in graph.nodes if node.header_of is not None}
    return {
        node.after: (headers[node.after], node.number)
        for node in graph.nodes
        if node.after is not None and isinstance(node.after, LOOPS)
    }


def is_lazy(block: Block) -> bool:
    """Whether a block is a lazy operand, which is evaluated only if another operand says so."""
    return isinstance(block.parent_op(), LAZY)


def stores_in(block: Block) -> bool:
    """Whether statements may stand in a block: not in lazy operands nor in the condition of a `while`."""
    parent = block.parent_op()
    return not isinstance(parent, LAZY) and not (isinstance(parent, stan.WhileOp) and parent.condition.block is block)


def _leaves_profile(op: Operation) -> bool:
    """Whether control leaves a profile after `op`."""
    if type(op) is stan.YieldOp:
        return isinstance(op.parent_op(), stan.ProfileOp)
    if type(op) not in EXITS:
        return False
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, stan.FuncOp | stan.BlockOp):
        if isinstance(parent, stan.ProfileOp):
            return True
        if isinstance(parent, LOOPS) and not isinstance(op, stan.ReturnOp):
            return False
        parent = parent.parent_op()
    return False


def _bits(value: Attribute) -> object:
    """What tells literals apart: 0.0 and -0.0 are equal attributes, but not the same number."""
    return struct.pack("d", value.value.data) if isinstance(value, FloatAttr) else value
