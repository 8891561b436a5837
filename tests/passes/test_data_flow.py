"""The analyses against executions: what they claim holds whenever a random program passes the place."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hypothesis import HealthCheck, assume, given, settings
from stan_interpreter import UNINITIALIZED, Interpreter, _OutOfFuel
from stan_programs import build, programs
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.stan import CallEffects
from ulam.passes import verify_dominance
from ulam.passes.analysis.available_assignments import AvailableAssignments
from ulam.passes.analysis.data_flow import facts_along
from ulam.passes.analysis.definitions import Definitions, initialized_step, initialized_variables
from ulam.passes.analysis.flow_graph import FlowGraph, Variables, members
from ulam.passes.analysis.known_constants import KnownConstants
from ulam.passes.analysis.live_variables import live_step, live_variables
from ulam.passes.pipelines import parse_pipeline
from ulam.passes.variable_form import is_statement

_SLOW = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
_CALLS = CallEffects(())
PASSES = (
    "constant-propagation",
    "copy-propagation",
    "expression-propagation",
    "dead-code-elimination",
    'repeat{passes="constant-propagation,copy-propagation,expression-propagation,dead-code-elimination"}',
)


class Watched(Interpreter):
    """Calls `before` with every op that is about to be executed."""

    def __init__(self, before: Callable[[Watched, Operation], None]) -> None:
        super().__init__(5_000)
        self.before = before

    def op(self, op: Operation) -> None:
        self.before(self, op)
        super().op(op)


def execute(module: ModuleOp, before: Callable[[Watched, Operation], None]) -> tuple[Any, list[Any]]:
    function = next(op for op in module.walk() if isinstance(op, stan.FuncOp))
    run = Watched(before)
    try:
        result = run.call(function, [5, 0, 2], [7, 8, 9])
    except _OutOfFuel:
        assume(False)
        raise
    return result, run.printed


def nothing(run: Watched, op: Operation) -> None:
    """Watches nothing."""


def graph_of(module: ModuleOp) -> FlowGraph:
    return FlowGraph(next(op for op in module.walk() if isinstance(op, stan.FuncOp)))


@settings(max_examples=30, suppress_health_check=_SLOW)
@given(programs)
def test_definitions_reach_and_variables_are_initialized(program: list[Any]) -> None:
    graph = graph_of(module := build(program))
    variables = Variables(graph)
    definitions = Definitions(graph, variables)
    reaching, initialized = definitions.reaching().before, initialized_variables(graph, variables).before
    reach_at: dict[Operation, set[Operation]] = {}
    assigned_at: dict[Operation, set[int]] = {}
    for node in graph.nodes:
        for op, facts in facts_along(node.ops, definitions.step, reaching[node.number] or 0):
            reach_at[op] = {definitions.ops[n] for n in members(facts)}
        for op, facts in facts_along(node.ops, partial(initialized_step, variables), initialized[node.number] or 0):
            assigned_at[op] = set(members(facts))
    last: dict[int, Operation] = {}

    def before(run: Watched, op: Operation) -> None:
        if isinstance(op, stan.ReadOp):
            number = variables.number(op.var)
            assert last[number] in reach_at[op]
            if number in assigned_at[op]:
                assert isinstance(last[number], stan.AssignOp)
        elif isinstance(op, stan.AssignOp):
            last[variables.number(op.var)] = op
        elif isinstance(op, stan.DeclareOp):
            last[variables.number(op.res)] = op

    execute(module, before)


@settings(max_examples=30, suppress_health_check=_SLOW)
@given(programs)
def test_a_variable_that_is_not_live_may_be_overwritten(program: list[Any]) -> None:
    graph = graph_of(module := build(program))
    variables = Variables(graph)
    after = live_variables(graph, variables).after
    live_at: dict[Operation, int] = {}
    for node in graph.nodes:
        for op, live in facts_along(reversed(node.ops), partial(live_step, variables), after[node.number] or 0):
            read, written = live_step(variables, op)
            live_at[op] = live & ~written | read
    expected = execute(module, nothing)

    def spoil(run: Watched, op: Operation) -> None:
        for number, declaration in enumerate(variables.declarations):
            if not live_at[op] >> number & 1 and isinstance(run.variables.get(declaration.results[0]), int):
                run.variables[declaration.results[0]] = 12345

    assert execute(module, spoil) == expected


@settings(max_examples=30, suppress_health_check=_SLOW)
@given(programs)
def test_known_constants_are_what_is_read(program: list[Any]) -> None:
    graph = graph_of(module := build(program))
    variables = Variables(graph)
    analysis = KnownConstants(graph, variables)
    solution = analysis.solve()
    reached = {op for node in graph.nodes if solution.before[node.number] is not None for op in node.ops}

    def before(run: Watched, op: Operation) -> None:
        assert op in reached
        if isinstance(op, stan.ReadOp) and (value := analysis.of(op.res)) is not None:
            assert run.variables[op.var] == value

    execute(module, before)


@settings(max_examples=30, suppress_health_check=_SLOW)
@given(programs)
def test_an_available_assignment_has_the_value_of_its_variable(program: list[Any]) -> None:
    graph = graph_of(module := build(program))
    variables = Variables(graph)
    analysis = AvailableAssignments(graph, variables, _CALLS, 16, lambda op, expression: True)
    held_at: dict[Operation, int] = {}
    for node in graph.nodes:
        held_at.update(facts_along(node.ops, analysis.step, analysis.holding(node)))

    def before(run: Watched, op: Operation) -> None:
        for number in members(held_at[op]) if is_statement(op) else ():
            candidate = analysis.candidates[number]
            again = Interpreter()
            again.values, again.variables = dict(run.values), run.variables
            for inner in candidate.expression.ops:
                again.op(inner)
            value = again.values[candidate.assignment.value]
            assert run.variables[candidate.assignment.var] == value

    execute(module, before)


@settings(max_examples=30, suppress_health_check=_SLOW)
@given(programs)
def test_passes_do_not_change_what_a_function_does(program: list[Any]) -> None:
    expected = execute(build(program), nothing)
    for pipeline in PASSES:
        module = build(program)
        for entry in parse_pipeline(pipeline):
            entry.apply(Context(), module)
            module.verify()
            verify_dominance.run_on(module)
        assert execute(module, nothing) == expected, pipeline


def test_uninitialized_ints_are_not_constants() -> None:
    assert UNINITIALIZED == -(2**31)  # what the compiled program has, and no analysis claims
