"""The four analyses of lazy code motion, and where they put expressions.

    anticipated   on every path from here the expression is computed, before anything it reads changes   backward, all
    available     on every path to here it was computed, and nothing it reads has changed since          forward, all
    postponable   where it could be computed earliest, and from there on as long as nothing uses it     forward, all
    used          its value is read later                                                                backward, some

An expression is inserted on an edge of the flow graph if it is postponable up to there but not beyond. An expression
that may throw is anticipated only before the next effect whose order counts, so no error changes its place. One that
cannot throw counts as anticipated before a loop if each iteration computes it, even if there may be none.

Edges are places at the end of a node with one successor, or at the start of one with one predecessor. Candidates that
would need another place (out of a loop past its header, where breaks join; inside lazy operands and conditions) are
not moved. Since insertion may thus be left out for some, what is redundant is decided last, by what is stored for
certain: `held`. So no insertion is needed for the result to be right.
Source: Knoop, Ruething, Steffen 1992; Drechsler, Stadel 1993; Aho, Lam, Sethi, Ullman, "Compilers", section 9.5.
"""

from __future__ import annotations

from heapq import heappop, heappush

from xdsl.ir import Block, Operation

from ulam.dialects import stan
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.data_flow import Solution, solve_sets
from ulam.passes.analysis.expressions import Expressions, NumberedExpression, is_lazy, loop_ranges, stores_in
from ulam.passes.analysis.flow_graph import FlowNode, members
from ulam.passes.variable_form import literal_of

_FAR = 64  # nodes that are looked at to find where an inserted expression would have been computed


@record(slots=True, eq=False, repr=False)
class Loop:
    """`first` to `end`: its nodes. `decides`: the one that goes on to the body or past the loop.

    `changed`: candidates that an iteration kills, `blocked`: also those that must not move across it because of errors.
    `hoistable`: what each iteration surely computes and what may be computed once before them, even if there is none.
    """

    op: Operation
    first: int
    end: int
    decides: FlowNode
    changed: int
    blocked: int
    leaves_elsewhere: bool
    hoistable: int = 0


def find_loops(found: Expressions) -> list[Loop]:
    """The loops of a graph, inner ones first."""
    loops: list[Loop] = []
    nodes = found.graph.nodes
    for op, (first, end) in sorted(loop_ranges(found.graph).items(), key=lambda item: item[1][1] - item[1][0]):
        decides = nodes[first]
        if isinstance(op, stan.WhileOp):
            condition = op.condition.block
            decides = next(n for n in nodes[first:end] if n.ops and n.ops[-1] is condition.last_op)
        changed = blocked = 0
        elsewhere = False
        for node in nodes[first:end]:
            changed |= found.sets[node.number].killed
            blocked |= _blocked(found, node)
            elsewhere |= any(not first <= successor.number <= end for successor in node.successors)
        loops.append(Loop(op, first, end, decides, changed, blocked, elsewhere))
    inner: dict[int, Loop] = {}
    for loop in loops:
        kinds = found.everything if _surely_iterates(loop.op) else ~found.throwing
        loop.hoistable = _computed_by_iteration(found, loop, inner) & kinds & ~loop.changed
        inner[loop.end - 1] = loop
    return loops


def _blocked(found: Expressions, node: FlowNode) -> int:
    """The candidates that cannot be computed before a node instead of after it."""
    sets = found.sets[node.number]
    return sets.killed | (found.throwing if sets.ordered else 0)


def _surely_iterates(op: Operation) -> bool:
    if not isinstance(op, stan.ForOp):
        return False
    lower, upper = literal_of(op.lower), literal_of(op.upper)
    return lower is not None and upper is not None and lower <= upper


def _computed_by_iteration(found: Expressions, loop: Loop, inner: dict[int, Loop]) -> int:
    """What an iteration surely computes; `inner`: the loops inside, by the number of their last node."""
    nodes = found.graph.nodes
    before: dict[int, int] = {}
    number = loop.end - 1
    while number > loop.decides.number:
        within = inner.get(number)
        if within is not None and within.decides.number > loop.decides.number:
            # Not its body: what is computed after the loop is still to come before it, unless it can be left elsewhere.
            number = within.decides.number
            state = 0 if within.leaves_elsewhere else before.get(within.end, 0) & ~within.blocked
            state |= within.hoistable
        else:
            state = found.everything if nodes[number].successors else 0
            for successor in nodes[number].successors:
                state &= before.get(successor.number, 0)  # the next iteration and what follows the loop do not count
        before[number] = found.sets[number].exposed | state & ~_blocked(found, nodes[number])
        number -= 1
    return before.get(loop.decides.successors[0].number, 0)


def anticipated(found: Expressions, loops: list[Loop]) -> Solution[int]:
    """Candidates that are surely computed later."""
    nodes = found.graph.nodes
    everything = found.everything
    hoistable = {loop.decides.number: loop.hoistable for loop in loops}
    blocked = [_blocked(found, node) for node in nodes]
    before, after = [everything] * len(nodes), [everything] * len(nodes)
    changed = True
    while changed:
        changed = False
        for node in reversed(nodes):
            number = node.number
            state = everything if node.successors else 0
            extra = hoistable.get(number, 0)
            for position, successor in enumerate(node.successors):
                state &= before[successor.number] | (extra if position else 0)
            after[number] = state
            state = found.sets[number].exposed | state & ~blocked[number]
            if state != before[number]:
                before[number] = state
                changed = True
    return Solution(list(before), list(after))


def available(found: Expressions) -> Solution[int]:
    """Candidates that were computed before and have still that value, as the program stands."""
    sets = found.sets
    everything = found.everything
    effects = [(s.computed, s.killed) for s in sets]
    return solve_sets(found.graph, effects, intersect=True, everything=everything)


class CodeMotion:
    """The analyses together: where candidates are inserted, and what is stored where.

    Per node: `at_start` and `at_end` are the candidates to insert there, `held` those stored when its first op begins
    (`held_at_end`: behind its last, before those of `at_end`), `live` those whose stored value is read after it.
    `redundant`: occurrences that are replaced by what is stored; `gone`: parts of these; `stored`: occurrences whose
    result is kept.
    """

    def __init__(self, found: Expressions) -> None:
        self.found = found
        self.loops = find_loops(found)
        count = len(found.graph.nodes)
        self.at_start, self.at_end = [0] * count, [0] * count
        self._first_in: dict[int, dict[int, Operation]] = {}
        self.anticipated = anticipated(found, self.loops)
        self.available = available(found)
        self.postponable = self._postponable()
        self._place_all()
        self._find_held()
        self._computed_again: set[Operation] = set()
        while True:
            self._find_redundant()
            self.used = self._used()
            self.stored = self._find_stored()
            # What another one left out does not store anything: who would read that computes it again.
            missing = set(self.redundant.values()) - set(self.stored.values()) - self._inserted()
            if not missing:
                break
            self._computed_again.update(op for op, bit in self.redundant.items() if bit in missing)

    # ------------------------------------------------------------ where to insert

    def _earliest(self, node: FlowNode, successor: FlowNode) -> int:
        blocked = _blocked(self.found, node)
        movable = self.anticipated.after[node.number] or 0
        here = self.anticipated.before[successor.number] or 0
        return here & ~(self.available.after[node.number] or 0) & (blocked | ~movable)

    def _postponable(self) -> Solution[int]:
        graph = self.found.graph
        sets = self.found.sets
        self._on_edge: dict[tuple[int, int], int] = {}
        wanted = [state or 0 for state in self.anticipated.before]
        earliest: dict[tuple[int, int], int] = {
            (node.number, successor.number): self._earliest(node, successor)
            for node in graph.nodes
            if node.number in self.found.reached
            for successor in node.successors
        }
        before = [self.found.everything] * len(graph.nodes)
        changed = True
        while changed:
            changed = False
            for node in graph.nodes:
                number = node.number
                if number not in self.found.reached:
                    continue
                state = wanted[number]
                if node is not graph.entry:
                    for one in node.predecessors:
                        edge = one.number, number
                        if edge in earliest:
                            state &= earliest[edge] | before[one.number] & ~sets[one.number].exposed
                if state != before[number]:
                    before[number] = state
                    changed = True
        after = [state & ~s.exposed for state, s in zip(before, sets, strict=True)]
        for edge, first in earliest.items():
            self._on_edge[edge] = (first | after[edge[0]]) & wanted[edge[1]] & ~before[edge[1]]
        return Solution(list(before), list(after))

    def _place_all(self) -> None:
        nodes = self.found.graph.nodes
        placed: list[tuple[FlowNode, bool, int]] = []
        impossible = 0
        for (number, to), bits in self._on_edge.items():
            if not bits:
                continue
            place = self._place(nodes[number], nodes[to])
            if place is None:
                impossible |= bits
            else:
                placed.append((*place, bits))
        for node, at_end, bits in placed:
            for bit in members(bits & self.found.throwing & ~impossible):
                if not self.found.is_retold(node) and not self._fails_there(self.found.candidates[bit], node, at_end):
                    impossible |= 1 << bit
        for node, at_end, bits in placed:
            (self.at_end if at_end else self.at_start)[node.number] |= bits & ~impossible

    def _place(self, node: FlowNode, successor: FlowNode) -> tuple[FlowNode, bool] | None:
        """Where to put what is inserted between two nodes: a node, and whether at its end."""
        if len(node.successors) == 1 and stores_in(node.block) and not self.found.sets[node.number].barrier:
            return node, True
        if len(successor.predecessors) == 1 and stores_in(successor.block) and successor.header_of is None:
            return successor, False
        return None

    def _fails_there(self, expression: NumberedExpression, node: FlowNode, at_end: bool) -> bool:
        """Whether an inserted expression fails in the place of the program where it would have failed: there is one."""
        location = expression.op.location
        pending = list(node.successors) if at_end else [node]
        seen: set[int] = set()
        while pending:
            current = pending.pop()
            if current.number in seen:
                continue
            seen.add(current.number)
            if len(seen) > _FAR:
                return False
            first = self._first_occurrence(expression, current)
            if first is None:
                pending += current.successors
            elif first.location != location:
                return False
        return True

    def _first_occurrence(self, expression: NumberedExpression, node: FlowNode) -> Operation | None:
        if is_lazy(node.block):
            return None
        if node.number not in self._first_in:
            first = self._first_in[node.number] = dict[int, Operation]()
            for op, occurrence, _ in self.found.sets[node.number].events:
                if occurrence is not None:
                    first.setdefault(occurrence.expression.bit, op)
        return self._first_in[node.number].get(expression.bit)

    # ------------------------------------------------------------ what is stored

    def _find_held(self) -> None:
        found = self.found
        self._parts: dict[int, int] = {0: 0}
        starts = [self.parts(bits) for bits in self.at_start]
        ends = [self.parts(bits) for bits in self.at_end]
        effects = [
            (s.kept | start & ~s.killed | end, s.killed) for s, start, end in zip(found.sets, starts, ends, strict=True)
        ]
        solution = solve_sets(found.graph, effects, intersect=True, everything=found.everything)
        self.held = [state or 0 for state in solution.before]
        self.held_at_end = [0] * len(effects)

    def parts(self, bits: int) -> int:
        """The candidates that are computed when those of a set are."""
        if bits not in self._parts:
            self._parts[bits] = self.found.parts(bits)
        return self._parts[bits]

    def _find_redundant(self) -> None:
        found = self.found
        self.redundant: dict[Operation, int] = {}
        self.gone: set[Operation] = set()
        for node in found.graph.nodes:
            if node.number not in found.reached:
                continue
            held = self.held[node.number] | self.parts(self.at_start[node.number])
            stores = stores_in(node.block)
            for op, occurrence, killed in found.sets[node.number].events:
                if occurrence is not None:
                    bit = occurrence.expression.bit
                    if held >> bit & 1 and op not in self._computed_again:
                        self.redundant[op] = bit
                    elif stores:
                        held |= 1 << bit
                held &= ~killed
            self.held_at_end[node.number] = held
        for op in self.redundant:
            if op not in self.gone:
                self._leave_out(op)

    def _leave_out(self, root: Operation) -> None:
        """Notes that what only `root` uses is not computed any more."""
        pending = [root]
        while pending:
            op = pending.pop()
            for region in op.regions:
                self.gone.update(ops_within(region))
            for operand in op.operands:
                owner = operand.owner
                if not isinstance(owner, Block) and owner not in self.gone and owner in self.found.occurrence_of:
                    if all(use.operation is op for use in operand.uses):
                        self.gone.add(owner)
                        pending.append(owner)

    # ------------------------------------------------------------ what is read

    def insertions(self, bits: int, held: int, live: int) -> tuple[list[NumberedExpression], int]:
        """What to store, in this order, where `bits` are inserted; and what is live before that.

        Stored is what is live afterwards, and what would otherwise be computed twice here.
        """
        found = self.found
        roots = self.parts(bits) & live & ~held
        if not roots:
            return [], live
        needed = 0
        stored: list[NumberedExpression] = []
        demand = {found.candidates[bit].number: 1 for bit in members(roots)}
        heap = sorted(-number for number in demand)
        while heap:
            expression = found.expressions[-heappop(heap)]
            count = demand[expression.number]
            bit = expression.bit
            if bit >= 0 and held >> bit & 1:
                needed |= 1 << bit
                continue
            if bit >= 0 and (live >> bit & 1 or count > 1):
                stored.append(expression)
                live &= ~(1 << bit)
                count = 1
            for operand in expression.operands[: expression.lazy]:
                if operand not in demand:
                    demand[operand] = 0
                    heappush(heap, -operand)
                demand[operand] += count
        stored.reverse()
        return stored, live | needed

    def _used(self) -> Solution[int]:
        graph = self.found.graph
        count = len(graph.nodes)
        reads, defines = [0] * count, [0] * count
        for node in graph.nodes:
            for op, bit in reversed(list(self._accesses(node))):
                if op in self.redundant:
                    reads[node.number] |= 1 << bit
                else:
                    reads[node.number] &= ~(1 << bit)
                    defines[node.number] |= 1 << bit
        before, after = [0] * count, [0] * count
        changed = True
        while changed:
            changed = False
            for node in reversed(graph.nodes):
                number = node.number
                state = 0
                for successor in node.successors:
                    state |= before[successor.number]
                after[number] = state
                if self.at_end[number]:
                    state = self.insertions(self.at_end[number], self.held_at_end[number], state)[1]
                state = reads[number] | state & ~defines[number]
                if self.at_start[number]:
                    state = self.insertions(self.at_start[number], self.held[number], state)[1]
                if state != before[number]:
                    before[number] = state
                    changed = True
        return Solution(list(before), list(after))

    def _inserted(self) -> set[int]:
        """The candidates that insertions store."""
        found: set[int] = set()
        for node in self.found.graph.nodes:
            number = node.number
            if bits := self.at_start[number]:
                inserted = self.insertions(bits, self.held[number], self.live_at_start[number])[0]
                found.update(expression.bit for expression in inserted)
            if bits := self.at_end[number]:
                inserted = self.insertions(bits, self.held_at_end[number], self.used.after[number] or 0)[0]
                found.update(expression.bit for expression in inserted)
        return found

    def _accesses(self, node: FlowNode) -> list[tuple[Operation, int]]:
        """The occurrences of candidates that read or could store their value."""
        stores = stores_in(node.block)
        accesses: list[tuple[Operation, int]] = []
        for op, occurrence, _ in self.found.sets[node.number].events:
            if occurrence is not None and op not in self.gone and (stores or op in self.redundant):
                accesses.append((op, occurrence.expression.bit))
        return accesses

    def _find_stored(self) -> dict[Operation, int]:
        """Occurrences that stay and whose value is read later; notes what is live at the start of each node's ops."""
        stored: dict[Operation, int] = {}
        self.live_at_start = [0] * len(self.found.graph.nodes)
        for node in self.found.graph.nodes:
            number = node.number
            live = self.used.after[number] or 0
            if self.at_end[number]:
                live = self.insertions(self.at_end[number], self.held_at_end[number], live)[1]
            for op, bit in reversed(self._accesses(node)):
                if op in self.redundant:
                    live |= 1 << bit
                elif live >> bit & 1:
                    stored[op] = bit
                    live &= ~(1 << bit)
            self.live_at_start[number] = live
        return stored
