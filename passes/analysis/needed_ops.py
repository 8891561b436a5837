"""Which ops a program needs: a backward analysis of what is used, together with the variables that are live.

Needed are ops with ordered effects (prints, errors, draws, profiles), additions to the target, what computes their
operands, assignments to variables that are read afterwards by something needed, and the control flow around all these.
An assignment that only feeds itself, in a loop, is not. Loops over ranges end, so that they may go; a `while` may not.
Source: faint variables, Giegerich, Moencke and Wilhelm 1981.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, OpResult

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect
from ulam.dialects.stan.effects import takes_any_size
from ulam.dialects.walk import operand_tuple, parent_of, result_of
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, Variables
from ulam.passes.analysis.live_variables import outputs
from ulam.passes.analysis.nesting import enclosing
from ulam.passes.variable_form import DECLARATIONS, DEFINES_VARIABLES, EXITS, LAZY, LOOPS, is_tree

_ROOTS = frozenset[type]((stan.BlockOp, stan.FuncOp, stan.ProgramOp))
_YIELDS_TO_ITSELF = (stan.WhileOp, *LAZY)
# Have no effect that counts here.
_NEVER = DECLARATIONS | EXITS | {stan.ConstantOp, stan.ReadOp, stan.PromoteOp}
_HARMLESS = Effect.READS_VAR | Effect.WRITES_VAR | Effect.READS_TARGET | Effect.LEAVES_LOOP | Effect.RETURNS


class NeededOps:
    """The analysis; `needed` holds the ops, but for declarations, which always stay.

    `succeeds` tells of assignments whether they surely are no error of sizes or indices.
    """

    def __init__(
        self,
        graph: FlowGraph,
        variables: Variables,
        calls: CallEffects,
        succeeds: Callable[[stan.AssignOp], bool] = lambda assignment: False,
    ) -> None:
        self._succeeds = succeeds
        self.needed: set[Operation] = set()
        self.variables = variables
        self._exits: dict[Operation, list[Operation]] = {}  # loop or body → break, continue, return that leave it
        self._with_users: set[Operation] = set()  # needed with the rest of their statements
        self._live: list[int] = [0] * len(graph.nodes)
        self._start(graph, calls)
        self._solve(graph)

    # ------------------------------------------------------------ what is needed from the start

    def _start(self, graph: FlowGraph, calls: CallEffects) -> None:
        for node in graph.nodes:
            for op in node.ops:
                if type(op) in EXITS:
                    self._exits.setdefault(_left_by(op), []).append(op)
        for node in graph.nodes:
            for op in node.ops:
                cls = type(op)
                if cls is stan.WhileOp or (cls in DECLARATIONS and op.operands):
                    self._need(op)
                elif cls not in _NEVER and calls.of(op) & ~_HARMLESS and not self._surely_succeeds(op):
                    self._need_statement(op)
        if isinstance(graph.root, stan.FuncOp):
            for op in self._exits.get(graph.root, ()):
                self._need(op)

    def _surely_succeeds(self, op: Operation) -> bool:
        """Whether an op is an assignment whose checks of sizes and indices never fail."""
        return isinstance(op, stan.AssignOp) and self._succeeds(op)

    def _need_statement(self, op: Operation) -> None:
        """Marks an op with effects and the statement that it is part of: an expression does not stand alone."""
        pending = [op]
        while pending:
            current = pending.pop()
            if current in self._with_users:
                continue
            self._with_users.add(current)
            self._need(current)
            if is_tree(current):
                pending += [use.operation for result in current.results for use in result.uses]
            elif isinstance(current, stan.YieldOp) and isinstance(parent := current.parent_op(), LAZY):
                pending.append(parent)

    def _need(self, op: Operation) -> None:
        """Marks an op, what computes its operands, and the control flow that it stands in."""
        needed = self.needed
        if op in needed:
            return
        pending = [op]
        while pending:
            current = pending.pop()
            if current in needed:
                continue
            needed.add(current)
            for operand in operand_tuple(current):
                if isinstance(operand, OpResult) and type(owner := operand.op) not in DEFINES_VARIABLES:
                    pending.append(owner)
            if current.regions:
                pending += self._exits.get(current, ())
                if isinstance(current, _YIELDS_TO_ITSELF):
                    for region in current.regions:
                        if isinstance(region.block.last_op, stan.YieldOp | stan.ConditionOp):
                            pending.append(region.block.last_op)
            parent = parent_of(current)
            if parent is not None and parent not in needed and type(parent) not in _ROOTS:
                pending.append(parent)

    # ------------------------------------------------------------ live variables of what is needed

    def _solve(self, graph: FlowGraph) -> None:
        boundary = outputs(self.variables)
        accesses = [self._accesses(node) for node in graph.nodes]
        changed = True
        while changed:
            changed = False
            known = len(self.needed)
            for node in reversed(graph.nodes):
                live = boundary if node is graph.exit else 0
                for successor in node.successors:
                    live |= self._live[successor.number]
                live = self._through(accesses[node.number], live)
                if live != self._live[node.number]:
                    self._live[node.number] = live
                    changed = True
            changed = changed or len(self.needed) != known

    def _accesses(self, node: FlowNode) -> list[tuple[type, Operation, int]]:
        """The ops of a node that declare, assign and read variables, last to first, with the bit of the variable; 0: of
        one that the graph does not have."""
        found: list[tuple[type, Operation, int]] = []
        for op in reversed(node.ops):
            cls = type(op)
            if cls is stan.DeclareOp:
                found.append((cls, op, 1 << self.variables.number(result_of(op))))
            elif cls is stan.AssignOp or cls is stan.ReadOp:
                variable, *_ = operand_tuple(op)
                number = self.variables.find(variable)
                if number is not None or cls is stan.AssignOp:
                    found.append((cls, op, 0 if number is None else 1 << number))
        return found

    def _through(self, accesses: list[tuple[type, Operation, int]], live: int) -> int:
        needed = self.needed
        for cls, op, bit in accesses:
            if cls is stan.ReadOp:
                if op in needed:
                    live |= bit
            elif cls is stan.AssignOp:
                assert isinstance(op, stan.AssignOp)
                if live & bit:
                    self._need(op)
                if not op.kinds.data:
                    live &= ~bit
                elif op in needed and takes_any_size(op.var):
                    live |= bit  # it has the sizes of what was assigned before
            else:
                live &= ~bit
        return live


def _left_by(op: Operation) -> Operation:
    """The loop that a break or continue leaves; of a return the function."""
    left = enclosing(op, stan.FuncOp if isinstance(op, stan.ReturnOp) else LOOPS)
    assert left is not None
    return left
