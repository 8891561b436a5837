"""`print-analysis{name=live-variables}`: what an analysis found, per statement, on standard error.

    reaching-definitions of model
      8:3 assign s: {s@7:8, x@3:8}

Forward analyses show what holds before a statement, backward ones (live variables, anticipated expressions) what holds
after it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.available_assignments import AvailableAssignments
from ulam.passes.analysis.data_flow import Step, facts_along
from ulam.passes.analysis.definitions import Definitions, initialized_step, initialized_variables
from ulam.passes.analysis.expression_facts import EXPRESSION_ANALYSES
from ulam.passes.analysis.expression_text import expression_text, variable_name
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, Variables, members
from ulam.passes.analysis.known_constants import KnownConstants
from ulam.passes.analysis.live_variables import live_step, live_variables
from ulam.passes.analysis.needed_ops import NeededOps
from ulam.passes.analysis.scopes import graphs
from ulam.passes.pipelines import PipelineError
from ulam.passes.variable_form import Variable, is_statement

Facts = Iterable[tuple[Operation, list[str]]]
"""Statement → what is known there."""


@record(frozen=True)
class PrintAnalysis(ModulePass):
    """Prints what an analysis found, per statement; changes nothing."""

    name = "print-analysis"

    analysis: str

    def __post_init__(self) -> None:
        if self.analysis not in ANALYSES:
            raise PipelineError(f"print-analysis: unknown analysis '{self.analysis}'; there are {', '.join(ANALYSES)}")

    # In pipelines the option is called `name`, which for the class is the name of the pass.
    @classmethod
    def from_spec(cls, spec: ArgSpec) -> PrintAnalysis:
        parameters = {"analysis" if key == "name" else key: value for key, value in spec.parameters.items()}
        return super().from_spec(ArgSpec(spec.name, parameters))

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        return ArgSpec(self.name, {"name": (self.analysis,)})

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        find = ANALYSES[self.analysis]
        calls = CallEffects(o for o in ops_within(op) if isinstance(o, stan.FuncOp))
        for graph in graphs(op):
            body: Operation | None = None
            for statement, facts in find(graph, calls):
                if (around := _body_of(statement)) is not body:
                    body = around
                    print(f"{self.analysis} of {_name_of(body)}", file=sys.stderr)
                print(f"  {_place(statement)} {_describe(statement)}: {{{', '.join(facts)}}}", file=sys.stderr)


def _body_of(op: Operation) -> Operation:
    current: Operation | None = op
    while not isinstance(current, stan.BlockOp | stan.FuncOp):
        assert current is not None
        current = current.parent_op()
    return current


def _name_of(body: Operation) -> str:
    if isinstance(body, stan.BlockOp):
        return body.kind.data
    assert isinstance(body, stan.FuncOp)
    return body.stan_name.data


def _place(op: Operation) -> str:
    location = op.location
    return f"{location.line.data}:{location.column.data}" if isinstance(location, FileLineColLoc) else "?"


def _describe(op: Operation) -> str:
    name = op.name.removeprefix("stan.")
    if isinstance(op, Variable):
        return f"{name} {op.var_name.data}"
    return f"{name} {variable_name(op.var)}" if isinstance(op, stan.AssignOp) else name


# ---------------------------------------------------------------- the analyses


def _is_shown(op: Operation) -> bool:
    return is_statement(op) and not isinstance(op, stan.YieldOp | stan.ConditionOp)


def _statements(node: FlowNode) -> Iterator[Operation]:
    return (op for op in node.ops if _is_shown(op))


def _at_statements(ops: Iterable[Operation], step: Step, facts: int | None) -> Iterator[tuple[Operation, int]]:
    return ((op, bits) for op, bits in facts_along(ops, step, facts or 0) if _is_shown(op))


def _names(variables: Variables, bits: int) -> list[str]:
    return sorted(variables.declarations[number].var_name.data for number in members(bits))


def _reaching(graph: FlowGraph, calls: CallEffects) -> Facts:
    variables = Variables(graph)
    definitions = Definitions(graph, variables)
    before = definitions.reaching().before

    def text(number: int) -> str:
        name = variables.declarations[definitions.variable[number]].var_name.data
        return f"{name}@{_place(definitions.ops[number])}"

    for node in graph.nodes:
        for op, facts in _at_statements(node.ops, definitions.step, before[node.number]):
            yield op, [text(number) for number in members(facts)]


def _initialized(graph: FlowGraph, calls: CallEffects) -> Facts:
    variables = Variables(graph)
    before = initialized_variables(graph, variables).before
    for node in graph.nodes:
        for op, facts in _at_statements(node.ops, partial(initialized_step, variables), before[node.number]):
            yield op, _names(variables, facts)


def _live(graph: FlowGraph, calls: CallEffects) -> Facts:
    variables = Variables(graph)
    after = live_variables(graph, variables).after
    for node in graph.nodes:
        known = _at_statements(reversed(node.ops), partial(live_step, variables), after[node.number])
        yield from reversed([(op, _names(variables, facts)) for op, facts in known])


def _constants(graph: FlowGraph, calls: CallEffects) -> Facts:
    variables = Variables(graph)
    before = KnownConstants(graph, variables).solve().before
    for node in graph.nodes:
        state = before[node.number]
        for op in _statements(node):
            if state is None:
                yield op, ["never reached"]
            else:
                yield op, [f"{variables.declarations[n].var_name.data} = {v}" for n, v in sorted(state.items())]
            break  # what is known at the first statement of a node


def _available_assignments(graph: FlowGraph, calls: CallEffects) -> Facts:
    variables = Variables(graph)
    analysis = AvailableAssignments(graph, variables, calls, 16, lambda op, expression: True)
    for node in graph.nodes:
        for op, facts in _at_statements(node.ops, analysis.step, analysis.holding(node)):
            found = [analysis.candidates[number].assignment for number in members(facts)]
            yield op, [f"{variable_name(a.var)} = {expression_text(a.value)}" for a in found]


def _needed(graph: FlowGraph, calls: CallEffects) -> Facts:
    needed = NeededOps(graph, Variables(graph), calls).needed
    for node in graph.nodes:
        for op in _statements(node):
            yield op, ["needed"] if op in needed else []


ANALYSES: dict[str, Callable[[FlowGraph, CallEffects], Facts]] = {
    "reaching-definitions": _reaching,
    "initialized-variables": _initialized,
    "live-variables": _live,
    "constants": _constants,
    "available-assignments": _available_assignments,
    "needed": _needed,
    **EXPRESSION_ANALYSES,
}
"""Name → what it finds at each statement of a graph."""
