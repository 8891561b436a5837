"""Which variables may still be read: a backward analysis. What the program puts out is live at its end."""

from __future__ import annotations

from functools import partial

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.dialects.stan.effects import takes_any_size
from ulam.dialects.walk import operand_tuple, result_of
from ulam.passes.analysis.data_flow import Solution, composed, solve_sets
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.variable_form import is_global

# Transformed data count: the program as it was written reads them, too, to tell an error (unit `locate`).
OUTPUT_BLOCKS = ("transformed_data", "parameters", "transformed_parameters", "generated_quantities")


def outputs(variables: Variables) -> int:
    """The variables that a program puts out, as bits."""
    bits = 0
    for number, declaration in enumerate(variables.declarations):
        block = declaration.parent_op()
        if is_global(declaration) and isinstance(block, stan.BlockOp) and block.kind.data in OUTPUT_BLOCKS:
            bits |= 1 << number
    return bits


def live_variables(graph: FlowGraph, variables: Variables) -> Solution[int]:
    """Variables that are live at the begin and at the end of each node, as bits."""
    effects = [composed(reversed(node.ops), partial(live_step, variables)) for node in graph.nodes]
    return solve_sets(graph, effects, backward=True, boundary=outputs(variables))


def live_step(variables: Variables, op: Operation) -> tuple[int, int]:
    """The variables that an op reads, and those that it gives a new value."""
    cls = type(op)
    if cls is stan.ReadOp:
        (variable,) = operand_tuple(op)
        return _bit(variable, variables), 0
    if cls is stan.DeclareOp:
        bit = _bit(result_of(op), variables)
    elif op.results or not isinstance(op, stan.AssignOp):
        return 0, 0
    elif op.kinds.data:  # in part; a variable without sizes has those of what was assigned before
        return _bit(op.var, variables) if takes_any_size(op.var) else 0, 0
    else:
        bit = _bit(op.var, variables)
    return 0, bit


def _bit(variable: SSAValue, variables: Variables) -> int:
    number = variables.find(variable)
    return 0 if number is None else 1 << number
