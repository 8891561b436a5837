"""What the analyses of lazy code motion find at each statement, for `print-analysis`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects
from ulam.passes.analysis.code_motion import CodeMotion
from ulam.passes.analysis.expression_text import expression_text
from ulam.passes.analysis.expressions import Expressions, evaluated
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, members
from ulam.passes.variable_form import is_statement

LEAST_COST = 8
"""Of the candidates; the default of lazy-code-motion."""

Step = Callable[[CodeMotion, FlowNode, Operation, int], int]


def available_step(motion: CodeMotion, node: FlowNode, op: Operation, state: int) -> int:
    """What is available after an op."""
    return state & ~_killed(motion, node, op) | _computed(motion, node, op)


def postponable_step(motion: CodeMotion, node: FlowNode, op: Operation, state: int) -> int:
    """What can still be postponed after an op."""
    return state & ~_computed(motion, node, op)


def anticipated_step(motion: CodeMotion, node: FlowNode, op: Operation, state: int) -> int:
    """What is anticipated before an op."""
    found = motion.found
    if op not in found.occurrence_of and int(found.calls.of(op)) & found.ordered_effects(node):
        state &= ~found.throwing
    return state & ~_killed(motion, node, op) | _computed(motion, node, op)


def used_step(motion: CodeMotion, node: FlowNode, op: Operation, state: int) -> int:
    """Whose stored value is read later, before an op."""
    if op in motion.gone:
        return state
    if op in motion.stored:
        return state & ~(1 << motion.stored[op])
    return state | 1 << motion.redundant[op] if op in motion.redundant else state


def _computed(motion: CodeMotion, node: FlowNode, op: Operation) -> int:
    occurrence = motion.found.occurrence_of.get(op)
    bit = -1 if occurrence is None or op in motion.found.fixed else occurrence.expression.bit
    return 1 << bit if bit >= 0 else 0


def _killed(motion: CodeMotion, node: FlowNode, op: Operation) -> int:
    return motion.found.killed_by(op)[0] if op not in motion.found.occurrence_of else 0


def facts(
    which: str, step: Step, backward: bool, graph: FlowGraph, calls: CallEffects
) -> Iterator[tuple[Operation, list[str]]]:
    """Statement, and the candidates of which something is known: before it, backward after it."""
    found = Expressions(graph, calls, LEAST_COST)
    if not found.candidates:
        return
    motion = CodeMotion(found)
    solution = getattr(motion, which)
    names = [expression_text(candidate.op.results[0]) for candidate in found.candidates]
    for node in graph.nodes:
        state = (solution.after if backward else solution.before)[node.number] or 0
        ops = list(evaluated(node))
        lines: list[tuple[Operation, list[str]]] = []
        known = state  # at the edge of the statement, not amid its expressions
        for op in reversed(ops) if backward else ops:
            known = state if backward else known
            if is_statement(op) and not isinstance(op, stan.YieldOp | stan.ConditionOp | stan.GlobalOp):
                lines.append((op, [names[bit] for bit in members(known)]))
            state = step(motion, node, op, state)
            if is_statement(op):
                known = state
        yield from reversed(lines) if backward else lines


def _entry(
    which: str, step: Step, backward: bool
) -> Callable[[FlowGraph, CallEffects], Iterable[tuple[Operation, list[str]]]]:
    return partial(facts, which, step, backward)


EXPRESSION_ANALYSES = {
    "anticipated-expressions": _entry("anticipated", anticipated_step, True),
    "available-expressions": _entry("available", available_step, False),
    "postponable-expressions": _entry("postponable", postponable_step, False),
    "used-expressions": _entry("used", used_step, True),
}
"""Name → what it finds at each statement of a graph."""
