"""What copy and expression propagation share: reads of variables become what was assigned to them.

The assignments stay; dead ones are left to dead-code-elimination.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects
from ulam.dialects.walk import operand_at
from ulam.library.records import record
from ulam.passes.analysis.available_assignments import AvailableAssignments, RightHandSide, SubstitutionCandidate
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.analysis.scopes import Scope, call_effects, graphs_of
from ulam.passes.analysis.sizes import SizeFactsOnDemand
from ulam.passes.optimize.moved_expressions import Moves, is_cheap
from ulam.passes.remarks import remark
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.variable_form import DECLARATIONS, LOOPS, Variable, is_global, read, settle_sizes

_SCALARS = (stan.INT, stan.REAL, stan.COMPLEX)


@record(eq=False, repr=False)
class Budget:
    """How many ops may still be added; None: any number."""

    left: int | None

    def take(self, ops: int) -> bool:
        """Whether so many ops may be added, which then have been."""
        if self.left is None:
            return True
        if self.left < ops:
            return False
        self.left -= ops
        return True


def propagate(
    module: ModuleOp,
    scopes: Sequence[Scope],
    name: str,
    limit: int,
    budget: Budget,
    wanted: Callable[[stan.AssignOp, RightHandSide], bool],
    sizes: SizeFactsOnDemand | None,
) -> bool:
    """Substitutes the assignments that are `wanted` in scopes of a module; with `sizes` expressions may move.

    Returns whether there were any.
    """
    calls = call_effects(module)
    changed = False
    for graph in graphs_of(scopes):
        propagation = _Propagation(graph, calls, name, limit, budget, wanted)
        if sizes is not None:
            propagation.moves = Moves(graph, propagation.variables, calls, sizes)
        changed = propagation.run() or changed
    return changed


class _Propagation:
    """One graph. Uses are visited last to first, so that what is copied has not been substituted into yet."""

    def __init__(
        self,
        graph: FlowGraph,
        calls: CallEffects,
        pass_name: str,
        limit: int,
        budget: Budget,
        wanted: Callable[[stan.AssignOp, RightHandSide], bool],
    ) -> None:
        self.graph = graph
        self.variables = Variables(graph)
        self.analysis = AvailableAssignments(graph, self.variables, calls, limit, wanted)
        self.pass_name = pass_name
        self.limit = limit
        self.budget = budget
        self.moves: Moves | None = None
        self._globals: dict[tuple[Operation, int], SSAValue] = {}
        self._changed = False
        self._told: set[int] = set()
        self._moved: set[Operation] = set()
        self._declared: dict[Operation, int] = {}  # declarations → place in program order

    def run(self) -> bool:
        """Whether something was substituted."""
        if not self.analysis.candidates:
            return False
        uses: list[tuple[stan.ReadOp, int, int]] = []
        place = 0
        for node in self.graph.nodes:
            held = self.analysis.holding(node)
            for op in node.ops:
                place += 1
                if type(op) is stan.ReadOp:
                    if held:
                        uses.append((op, held, place))
                    continue
                if type(op) in DECLARATIONS:
                    self._declared[op] = place
                made, ended = self.analysis.step(op)
                held = held & ~ended | made
        for op, held, place in reversed(uses):
            if op not in self._moved:
                self._substitute(op, held, place, self.limit)
        return self._changed

    def _substitute(self, op: stan.ReadOp, held: int, place: int, limit: int) -> int:
        """Replaces a read, and the reads in what replaces it; the number of ops added."""
        candidate = self.analysis.of_variable(held, operand_at(op, 0))
        if candidate is None or not self._fits(candidate, op, place, limit):
            return 0
        moves = self.moves is not None and not is_cheap(candidate)
        if moves and self.moves is not None and not self.moves.may_move(candidate, op):
            return 0
        self._tell(candidate)
        self._changed = True
        added = self._move(candidate, op) if moves else self._copy(candidate, op)
        count = len(added)
        for inner in added:
            if isinstance(inner, stan.ReadOp) and (more := self._substitute(inner, held, place, limit - count + 1)):
                count += more - 1  # in the place of the read
        return count

    def _copy(self, candidate: SubstitutionCandidate, op: stan.ReadOp) -> list[Operation]:
        """Puts a copy of an expression in the place of a read."""
        mapping: dict[SSAValue, SSAValue] = {}
        added: list[Operation] = []
        assert op.parent is not None
        for original in candidate.expression.ops:
            if isinstance(original, stan.ReadOp):
                clone: Operation = read(self._variable(original.var, op), op.location)
                if self.moves is not None:
                    self.moves.copied(original, clone)
            else:
                clone = cloned(original, mapping)
                clone.location = op.location
            for result, copy in zip(original.results, clone.results, strict=True):
                mapping[result] = copy
            op.parent.insert_op_before(clone, op)
            added.append(clone)
        value = candidate.assignment.value
        self._replace(op, mapping.get(value, value))
        return added

    def _move(self, candidate: SubstitutionCandidate, op: stan.ReadOp) -> list[Operation]:
        """Moves an expression from its assignment, which goes, to the place of the only read."""
        assert op.parent is not None
        added = list(candidate.expression.ops)
        for original in added:
            original.detach()
            op.parent.insert_op_before(original, op)
            if isinstance(original, stan.ReadOp):
                self._moved.add(original)
        value = candidate.assignment.value
        variable = candidate.assignment.var.owner
        discard(candidate.assignment)
        self._replace(op, value)
        if isinstance(variable, stan.DeclareOp):
            settle_sizes(variable)
        return added

    def _replace(self, op: stan.ReadOp, value: SSAValue) -> None:
        if self.moves is not None:
            self.moves.replaced(op)
        replace_uses(op.res, value)
        discard(op)

    def _fits(self, candidate: SubstitutionCandidate, use: stan.ReadOp, place: int, limit: int) -> bool:
        expression = candidate.expression
        if len(expression.ops) > limit:
            return False
        for value in expression.outside:
            assert isinstance(value.owner, Block)
            if not _is_around(value.owner, use):
                return False
        for original in expression.ops:
            if isinstance(original, stan.ReadOp) and not self._can_name(operand_at(original, 0), use, place):
                return False
        if not all(isinstance(op, stan.ReadOp | stan.ConstantOp | stan.PromoteOp) for op in expression.ops) and (
            candidate.assignment.value.type not in _SCALARS or any(isinstance(op, stan.CallOp) for op in expression.ops)
        ):
            if _is_in_further_loop(use, candidate.assignment):
                return False
        return self.budget.take(len(expression.ops))

    def _can_name(self, variable: SSAValue, use: Operation, place: int) -> bool:
        """Whether a variable is visible at `use`: declared before it, in its block or around it, or global."""
        declaration = self.variables.declarations[self.variables.number(variable)]
        assert declaration.parent is not None
        if self._declared[declaration] < place and _is_around(declaration.parent, use):
            return True
        return is_global(declaration) and _program_block(declaration) is not _program_block(use)

    def _variable(self, variable: SSAValue, use: Operation) -> SSAValue:
        """The variable as it is named in the block of `use`: its declaration, or a `stan.global`."""
        number = self.variables.number(variable)
        declaration = self.variables.declarations[number]
        block = _program_block(use)
        if _program_block(declaration) is block:
            return declaration.results[0]
        assert block is not None
        found = self._globals.get((block, number)) or self._named_before(block, declaration)
        if found is None:
            op = stan.GlobalOp(declaration.var_name, declaration.res.type, location=use.location)
            body = block.regions[0].block
            body.insert_op_before(op, body.first_op) if body.first_op is not None else body.add_op(op)
            found = op.res
        self._globals[block, number] = found
        return found

    @staticmethod
    def _named_before(block: Operation, declaration: Variable) -> SSAValue | None:
        """The `stan.global` that a block begins with, if it has one for a variable."""
        op = block.regions[0].block.first_op
        while isinstance(op, stan.GlobalOp):
            if op.var_name == declaration.var_name:
                return op.res
            op = op.next_op
        return None

    def _tell(self, candidate: SubstitutionCandidate) -> None:
        if candidate.variable not in self._told:
            self._told.add(candidate.variable)
            declaration = self.variables.declarations[candidate.variable]
            message = "reads replaced by what was assigned"
            remark(self.pass_name, declaration.location, f"variable {declaration.var_name.data}", message, done=True)


def _program_block(op: Operation) -> Operation | None:
    """The `stan.block` or `stan.func` that an op stands in."""
    current: Operation | None = op
    while current is not None and type(current) not in (stan.BlockOp, stan.FuncOp):
        current = current.parent_op()
    return current


def _is_around(block: Block, op: Operation) -> bool:
    """Whether an op stands in a block, or in a region inside of it."""
    current = op.parent
    while current is not None and current is not block:
        parent = current.parent_op()
        current = parent.parent if parent is not None else None
    return current is block


def _is_in_further_loop(use: Operation, assignment: Operation) -> bool:
    """Whether a loop contains `use` but not `assignment`."""
    current = use.parent_op()
    while current is not None and not current.is_ancestor(assignment):
        if isinstance(current, LOOPS):
            return True
        current = current.parent_op()
    return False
