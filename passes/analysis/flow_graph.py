"""The flow of control of the variable form as a graph: what the data-flow analyses run on.

Control flow is structured, so the graph is built in one walk and its nodes are numbered in an order in which every node
comes after its predecessors, but for the back edges of loops. Lazy operands (`?:`, `&&`, `||`) are branches like those
of `if`. A node is a list of ops that are evaluated one after the other; the last one may choose among the successors:

    op at the end of a node      successors
    if, select                   then, otherwise
    and, or                      the right operand, past it
    condition of a while         body, past the loop
    (header of a for, foreach)   body, past the loop; the header has no ops: it stands for the next iteration
    break, continue, return      where it leads

A `stan.profile` ends its node, too, and the node after it has `after` set: nothing moves across these two edges.
The graph of a program joins its blocks: data, transformed data, parameters, transformed parameters; then either the
model or the generated quantities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.walk import ops_of, result_of
from ulam.library.records import record
from ulam.passes.variable_form import DECLARATIONS, EXITS, LOOPS, Variable

_FORKS = ("model", "generated_quantities")


@record(eq=False, slots=True)
class FlowNode:
    """Ops evaluated one after the other. `block`: where they stand, and where more could.

    `header_of`: the loop whose next iteration begins here. `after`: the op with regions that ended just before.
    """

    number: int
    block: Block
    ops: list[Operation] = field(default_factory=list[Operation])
    successors: list[FlowNode] = field(default_factory=list["FlowNode"])
    predecessors: list[FlowNode] = field(default_factory=list["FlowNode"])
    header_of: Operation | None = None
    after: Operation | None = None


class FlowGraph:
    """The graph of a function's body, or of all blocks of a program."""

    def __init__(self, root: stan.FuncOp | stan.ProgramOp | stan.BlockOp) -> None:
        self.root = root
        self.nodes: list[FlowNode] = []
        self._returns: list[FlowNode] = []
        self._loops: list[tuple[list[FlowNode], list[FlowNode]]] = []  # per loop: nodes that break, that continue
        self.entry: FlowNode
        if isinstance(root, stan.FuncOp | stan.BlockOp):
            self.entry = self._new(root.regions[0].block)
            ends = [self._region(self.entry)]
        else:
            ends = self._blocks(root)
        self.exit = self._new(self.entry.block)
        for node in (*ends, *self._returns):
            if node is not None:
                _connect(node, self.exit)

    def _blocks(self, program: stan.ProgramOp) -> list[FlowNode | None]:
        blocks = [op for op in program.body.block.ops if isinstance(op, stan.BlockOp)]
        last: FlowNode | None = None
        ends: list[FlowNode | None] = []
        for op in blocks:
            start = self._new(op.body.block)
            if last is None:
                self.entry = start
            else:
                _connect(last, start)
            end = self._region(start)
            if op.kind.data in _FORKS:
                ends.append(end)
            else:
                last = end
        if not blocks:
            self.entry = last = self._new(program.body.block)
        return ends or [last]

    def reached(self) -> set[int]:
        """The numbers of the nodes that some path leads to: none does behind a `return` in a scope, for one."""
        found = {self.entry.number}
        pending = [self.entry]
        while pending:
            for successor in pending.pop().successors:
                if successor.number not in found:
                    found.add(successor.number)
                    pending.append(successor)
        return found

    # ------------------------------------------------------------ one region

    def _new(self, block: Block, *predecessors: FlowNode | None) -> FlowNode:
        node = FlowNode(len(self.nodes), block, [], [], [])
        self.nodes.append(node)
        for predecessor in predecessors:
            if predecessor is not None:
                _connect(predecessor, node)
        return node

    def _region(self, node: FlowNode) -> FlowNode | None:
        """The nodes of `node.block`; the one at whose end control leaves it downwards, None if it never does."""
        current = node
        for op in ops_of(node.block):
            current.ops.append(op)
            if type(op) in EXITS:
                self._ways_out(op).append(current)
                return None
            if op.regions:
                current = self._compound(op, current)
        return current

    def _ways_out(self, op: Operation) -> list[FlowNode]:
        """The nodes that leave what a break, continue or return leaves, in the same way."""
        if isinstance(op, stan.ReturnOp):
            return self._returns
        breaks, continues = self._loops[-1]
        return breaks if isinstance(op, stan.BreakOp) else continues

    def _compound(self, op: Operation, before: FlowNode) -> FlowNode:
        """The nodes of an op with regions; the one after it."""
        assert op.parent is not None
        if type(op) in LOOPS:
            return self._loop(op, before)
        ends = [self._region(self._new(region.block, before)) for region in op.regions]
        if type(op) in (stan.AndOp, stan.OrOp):
            ends.append(before)
        after = self._new(op.parent, *ends)
        after.after = op
        return after

    def _loop(self, op: Operation, before: FlowNode) -> FlowNode:
        assert op.parent is not None
        self._loops.append(([], []))
        header = self._new(op.regions[0].block, before)
        header.header_of = op
        if isinstance(op, stan.WhileOp):
            decided = self._region(header)
            assert decided is not None
            end = self._region(self._new(op.body.block, decided))
        else:
            decided = header
            body = self._new(op.regions[0].block, header)
            end = self._region(body)
        breaks, continues = self._loops.pop()
        for node in (end, *continues):
            if node is not None:
                _connect(node, header)
        after = self._new(op.parent, decided, *breaks)
        after.after = op
        return after


def _connect(node: FlowNode, successor: FlowNode) -> None:
    node.successors.append(successor)
    successor.predecessors.append(node)


class Variables:
    """The variables of a graph by number, declarations in other blocks included."""

    def __init__(self, graph: FlowGraph) -> None:
        self.declarations: list[Variable] = []
        self._numbers: dict[int, int] = {}  # by the identity of values, whose hash takes longer
        self._values: list[SSAValue] = []  # which are kept, so that no other gets their identity
        globals_: dict[str, int] = {}
        for node in graph.nodes:
            for op in node.ops:
                cls = type(op)
                if cls in DECLARATIONS:
                    assert isinstance(op, Variable)
                    number = len(self.declarations)
                    self._add(result_of(op), number)
                    self.declarations.append(op)
                    if "local" not in op.properties and isinstance(op.parent_op(), stan.BlockOp):
                        globals_[op.var_name.data] = number
                elif cls is stan.GlobalOp:
                    assert isinstance(op, stan.GlobalOp)
                    if (found := globals_.get(op.var_name.data)) is not None:
                        self._add(op.res, found)

    def _add(self, value: SSAValue, number: int) -> None:
        self._numbers[id(value)] = number
        self._values.append(value)

    def __len__(self) -> int:
        return len(self.declarations)

    def number(self, variable: SSAValue) -> int:
        """The number of a variable, by its declaration's result or that of a `stan.global`."""
        return self._numbers[id(variable)]

    def find(self, variable: SSAValue) -> int | None:
        """As `number`; None for a global variable whose declaration the graph does not have."""
        return self._numbers.get(id(variable))


def members(bits: int) -> Iterator[int]:
    """The numbers in a set of bits, in increasing order."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest
