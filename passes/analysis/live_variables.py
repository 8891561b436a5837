"""Which variables may still be read: a backward analysis. What the program puts out is live at its end."""

from __future__ import annotations

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.stan.effects import takes_any_size
from ulam.passes.analysis.data_flow import Solution, solve_sets
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.variable_form import is_global

# Transformed data count: the program as it was written reads them, too, to tell an error (unit `locate`).
OUTPUT_BLOCKS = ("transformed_data", "parameters", "transformed_parameters", "generated_quantities")


_WRITES = frozenset[type]((stan.AssignOp, stan.DeclareOp))


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
    gen: list[int] = []
    kill: list[int] = []
    for node in graph.nodes:
        read = written = 0
        for op in reversed(node.ops):
            read, written = _step(op, variables, read, written)
        gen.append(read)
        kill.append(written)
    return solve_sets(graph, gen, kill, backward=True, boundary=outputs(variables))


def _step(op: Operation, variables: Variables, read: int, written: int) -> tuple[int, int]:
    """What a node reads before it writes, and what it writes, with `op` put in front."""
    if type(op) is stan.ReadOp:
        if (number := variables.find(op.operands[0])) is not None:
            read |= 1 << number
    elif type(op) not in _WRITES:
        pass
    elif isinstance(op, stan.AssignOp) and op.kinds.data and takes_any_size(op.var):
        if (number := variables.find(op.var)) is not None:
            read |= 1 << number  # it has the sizes of what was assigned before
    elif (bit := _written(op, variables)) != 0:
        read &= ~bit
        written |= bit
    return read, written


def _written(op: Operation, variables: Variables) -> int:
    """The variable that an op gives a new value as a whole, as a bit."""
    if isinstance(op, stan.AssignOp) and not op.kinds.data:
        number = variables.find(op.var)
        return 0 if number is None else 1 << number
    return 1 << variables.number(op.res) if isinstance(op, stan.DeclareOp) else 0


def live_step(op: Operation, variables: Variables, live: int) -> int:
    """What is live before an op, given what is after it."""
    read, written = _step(op, variables, 0, 0)
    return live & ~written | read
