"""Which assignments `x = e` still hold: on every path they were the last to x, and nothing that e reads has changed.

A forward analysis of sets under intersection; what the propagations substitute from. Only whole assignments whose
right-hand side is a tree of ops without effects but reading and throwing: where it was evaluated once without an
error, it gives the same value again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from xdsl.ir import Block, Operation, OpResult, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect
from ulam.dialects.walk import operand_tuple, result_of
from ulam.passes.analysis.data_flow import composed, solve_sets
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, Variables, members
from ulam.passes.variable_form import LAZY, LOOPS, is_tree

_CHANGES = frozenset[type]((stan.AssignOp, stan.DeclareOp, stan.ProfileOp))
_ALWAYS_THERE = frozenset[type]((stan.ReadOp, stan.ConstantOp, stan.PromoteOp))
_REPEATABLE = Effect.READS_VAR | Effect.THROWS


class RightHandSide(NamedTuple):
    """A right-hand side: its ops in order of evaluation, the variables that it reads, the values from outside."""

    ops: tuple[Operation, ...]
    reads: int
    outside: tuple[SSAValue, ...]


class SubstitutionCandidate(NamedTuple):
    """An assignment that may be substituted."""

    assignment: stan.AssignOp
    variable: int
    expression: RightHandSide


def expression_of(value: SSAValue, variables: Variables, calls: CallEffects, limit: int) -> RightHandSide | None:
    """The tree of ops that compute a value; None if it has effects, lazy operands or more than `limit` ops.

    All ops stand in the block of the value, so that one place is the place of them all.
    """
    ops: list[Operation] = []
    outside: list[SSAValue] = []
    reads = 0
    block = value.owner.parent if isinstance(value.owner, Operation) else None
    pending = [value]
    while pending:
        current = pending.pop()
        if not isinstance(current, OpResult):
            outside.append(current)
            continue
        op = current.op
        if not is_tree(op):
            continue  # a variable: the read of it is what counts
        if op.parent is not block or isinstance(op, LAZY) or len(ops) >= limit or calls.of(op) & ~_REPEATABLE:
            return None
        if type(op) is stan.ReadOp:
            number = variables.find(op.var)
            if number is None:
                return None
            reads |= 1 << number
        ops.append(op)
        pending += operand_tuple(op)
    unique = dict.fromkeys(reversed(ops))
    return RightHandSide(tuple(unique), reads, tuple(outside))


class AvailableAssignments:
    """The analysis. `wanted` chooses among the assignments of expressions."""

    def __init__(
        self,
        graph: FlowGraph,
        variables: Variables,
        calls: CallEffects,
        limit: int,
        wanted: Callable[[stan.AssignOp, RightHandSide], bool],
    ) -> None:
        self.variables = variables
        self.candidates: list[SubstitutionCandidate] = []
        self._number: dict[Operation, int] = {}
        self._giving: list[int] = [0] * len(variables)  # variable → candidates that assign it
        self._spoiled_by: list[int] = [0] * len(variables)  # variable → candidates that an assignment to it ends
        self._of_header: dict[Operation, int] = {}  # loop → candidates that its next iteration ends
        self._of_profiles = 0  # candidates that no edge of a profile lets pass
        for node in graph.nodes:
            for op in node.ops:
                if not op.results and isinstance(op, stan.AssignOp) and not op.kinds.data:
                    self._add(op, calls, limit, wanted)
        self._reached = graph.reached()
        effects = [composed(node.ops, self.step, self.ended_at_entry(node)) for node in graph.nodes]
        everything = (1 << len(self.candidates)) - 1
        self.before = solve_sets(graph, effects, intersect=True, everything=everything).before

    def _add(
        self, op: stan.AssignOp, calls: CallEffects, limit: int, wanted: Callable[[stan.AssignOp, RightHandSide], bool]
    ) -> None:
        variable = self.variables.find(op.var)
        if variable is None:
            return
        expression = expression_of(op.value, self.variables, calls, limit)
        if expression is None or expression.reads >> variable & 1 or not wanted(op, expression):
            return
        if not _reads_are_current(op, expression):
            return
        bit = 1 << len(self.candidates)
        self._number[op] = len(self.candidates)
        self.candidates.append(SubstitutionCandidate(op, variable, expression))
        self._giving[variable] |= bit
        self._spoiled_by[variable] |= bit
        for read in members(expression.reads):
            self._spoiled_by[read] |= bit
        for value in expression.outside:
            loop = value.owner.parent_op() if isinstance(value.owner, Block) else None
            if isinstance(loop, LOOPS):
                self._of_header[loop] = self._of_header.get(loop, 0) | bit
        if any(type(inner) not in _ALWAYS_THERE for inner in expression.ops):
            self._of_profiles |= bit

    def ended_at_entry(self, node: FlowNode) -> int:
        """Candidates that do not pass from the predecessors into a node."""
        ended = self._of_header.get(node.header_of, 0) if node.header_of is not None else 0
        return ended | self._of_profiles if type(node.after) is stan.ProfileOp else ended

    def step(self, op: Operation) -> tuple[int, int]:
        """The candidates that an op makes hold, and those that it ends."""
        cls = type(op)
        if cls not in _CHANGES:
            return 0, 0
        if isinstance(op, stan.AssignOp):
            variable = self.variables.find(op.var)
            number = self._number.get(op)
            made = 0 if number is None else 1 << number
            return made, (self._spoiled_by[variable] if variable is not None else 0) & ~made
        if cls is stan.DeclareOp:
            return 0, self._spoiled_by[self.variables.number(result_of(op))]
        return 0, self._of_profiles

    def holding(self, node: FlowNode) -> int:
        """Candidates that hold at the first op of a node; none where control never comes."""
        if node.number not in self._reached:
            return 0
        state = self.before[node.number]
        assert state is not None
        return state & ~self.ended_at_entry(node)

    def of_variable(self, held: int, variable: SSAValue) -> SubstitutionCandidate | None:
        """The assignment, among those that hold, that gave a variable its value."""
        number = self.variables.find(variable)
        if number is None:
            return None
        found = next(members(held & self._giving[number]), None)
        return None if found is None else self.candidates[found]


def _reads_are_current(assignment: stan.AssignOp, expression: RightHandSide) -> bool:
    """Whether no assignment lies between the reads of an expression and the assignment of its value."""
    first = expression.ops[0] if expression.ops else assignment
    op: Operation | None = assignment.prev_op
    if not expression.reads:
        return True
    while op is not None and op is not first:
        if isinstance(op, stan.AssignOp) or op.regions:
            return False
        op = op.prev_op
    return op is first
