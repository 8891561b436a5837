"""Which assignments may move to the only place that reads them, so that substituting them repeats no work."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects, Effect, effects_within
from ulam.passes.analysis.available_assignments import SubstitutionCandidate
from ulam.passes.analysis.data_flow import facts_along
from ulam.passes.analysis.definitions import Definitions
from ulam.passes.analysis.expression_cost import own_cost
from ulam.passes.analysis.flow_graph import FlowGraph, Variables, members
from ulam.passes.analysis.sizes import SizeFactsOnDemand
from ulam.passes.variable_form import Variable, errors_are_retold, is_global

_CHEAP = 8  # what lowering shares by itself, or computes again as fast as it would load it
_SCALARS = (stan.INT, stan.REAL)
_FAR = 400  # ops between an assignment and its use
_SEEN = Effect.PRINTS | Effect.DRAWS | Effect.PROFILES | Effect.LEAVES_LOOP | Effect.RETURNS


def is_cheap(candidate: SubstitutionCandidate) -> bool:
    """Whether an expression may as well be computed again: a few scalar operations that cannot fail."""
    if candidate.assignment.value.type not in _SCALARS:
        return all(isinstance(op, stan.ReadOp | stan.ConstantOp) for op in candidate.expression.ops)
    return sum(own_cost(op) for op in candidate.expression.ops) < _CHEAP and not any(
        isinstance(op, stan.IndexOp | stan.CallOp) for op in candidate.expression.ops
    )


class Moves:
    """The uses of each definition of a graph, and what lies between them.

    A definition that reaches a read together with others stays: of these pairs, of which there may be as many as the
    square of a program's length, only the definitions are noted.
    """

    def __init__(self, graph: FlowGraph, variables: Variables, calls: CallEffects, sizes: SizeFactsOnDemand) -> None:
        self._variables = variables
        self._calls = calls
        self._sizes = sizes
        self._readers: dict[Operation, set[Operation]] = {}
        self._read_by: dict[Operation, list[Operation]] = {}
        self._assigned_in_part: set[int] = set()
        definitions = Definitions(graph, variables)
        reaching = definitions.reaching().before
        shared = 0
        for node in graph.nodes:
            for op, state in facts_along(node.ops, definitions.step, reaching[node.number] or 0):
                if type(op) is stan.ReadOp and (number := variables.find(op.var)) is not None:
                    found = state & definitions.of_variable(number)
                    if found & (found - 1):
                        shared |= found
                        found = 0
                    self._note(op, [definitions.ops[definition] for definition in members(found)])
                elif type(op) is stan.AssignOp and op.kinds.data:
                    self._assigned_in_part.add(variables.number(op.var))
        self._shared = {definitions.ops[definition] for definition in members(shared)}

    def _note(self, read: Operation, definitions: list[Operation]) -> None:
        self._read_by[read] = definitions
        for definition in definitions:
            self._readers.setdefault(definition, set()).add(read)

    def copied(self, read: Operation, copy: Operation) -> None:
        """Notes that `copy` reads what `read` does."""
        self._note(copy, self._read_by[read])

    def replaced(self, read: Operation) -> None:
        """Notes that a read is no more."""
        for definition in self._read_by.pop(read):
            self._readers[definition].discard(read)

    def may_move(self, candidate: SubstitutionCandidate, use: stan.ReadOp) -> bool:
        """Whether `use` alone reads what was assigned, and evaluating it there changes no order that can be seen."""
        assignment = candidate.assignment
        number = self._variables.number(assignment.var)
        if is_global(self._variables.declarations[number]) or number in self._assigned_in_part:
            return False
        if self._readers.get(assignment) != {use} or assignment in self._shared:
            return False
        if use.parent is not assignment.parent:
            return False
        if not _is_only_for(candidate.expression.ops, assignment):
            return False
        return self._sizes.fits(assignment) and self._order_stays(assignment, use)

    def _order_stays(self, assignment: stan.AssignOp, use: stan.ReadOp) -> bool:
        throws = _throws(assignment, self._calls)
        blocking = (_SEEN if errors_are_retold(use) else _SEEN | Effect.THROWS) if throws else Effect.PROFILES
        op = assignment.next_op
        for _ in range(_FAR):
            if op is use:
                return True
            if op is None or effects_within(op, self._calls) & blocking:
                return False
            op = op.next_op
        return False


def _is_only_for(ops: Sequence[Operation], assignment: stan.AssignOp) -> bool:
    """Whether nothing but an assignment uses the ops of its right-hand side."""
    own = {*ops, assignment}
    return all(use.operation in own for op in ops for result in op.results for use in result.uses)


def _throws(assignment: stan.AssignOp, calls: CallEffects) -> bool:
    pending = [assignment.value.owner]
    while pending:
        op = pending.pop()
        if not isinstance(op, Operation) or isinstance(op, Variable | stan.GlobalOp):
            continue
        if calls.of(op) & Effect.THROWS:
            return True
        pending += [operand.owner for operand in op.operands]
    return False
