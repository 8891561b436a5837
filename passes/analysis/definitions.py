"""Which definitions of variables reach a place, and which variables are surely assigned there: forward analyses."""

from __future__ import annotations

from functools import partial

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.dialects.walk import result_of
from ulam.passes.analysis.data_flow import Solution, composed, solve_sets
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.variable_form import DECLARATIONS, Variable


class Definitions:
    """Declarations and assignments by number: what gives a variable a value, whole or in part."""

    def __init__(self, graph: FlowGraph, variables: Variables) -> None:
        self.graph = graph
        self.ops: list[Operation] = []
        self.variable: list[int] = []
        self._number: dict[Operation, int] = {}
        self._of_variable: list[int] = [0] * len(variables)
        for node in graph.nodes:
            for op in node.ops:
                if type(op) in DECLARATIONS:
                    self._add(op, variables.number(result_of(op)))
                elif type(op) is stan.AssignOp and (number := variables.find(op.var)) is not None:
                    self._add(op, number)

    def _add(self, op: Operation, variable: int) -> None:
        self._number[op] = len(self.ops)
        self._of_variable[variable] |= 1 << len(self.ops)
        self.ops.append(op)
        self.variable.append(variable)

    def of_variable(self, variable: int) -> int:
        """The definitions of a variable, as bits."""
        return self._of_variable[variable]

    def step(self, op: Operation) -> tuple[int, int]:
        """The definitions that an op makes, and those that it ends."""
        number = self._number.get(op)
        if number is None:
            return 0, 0
        whole = not (isinstance(op, stan.AssignOp) and op.kinds.data)
        return 1 << number, self._of_variable[self.variable[number]] if whole else 0

    def reaching(self) -> Solution[int]:
        """Reaching definitions, as bits: those after which, on some path, the variable was not assigned whole."""
        return solve_sets(self.graph, [composed(node.ops, self.step) for node in self.graph.nodes])


def initialized_step(variables: Variables, op: Operation) -> tuple[int, int]:
    """The variables that an op assigns, in part or whole, and those that it declares anew."""
    if isinstance(op, stan.AssignOp) and (number := variables.find(op.var)) is not None:
        return 1 << number, 0
    if isinstance(op, Variable):
        bit = 1 << variables.number(result_of(op))
        bound = isinstance(op, stan.ParameterOp) or _is_data(op)
        return (bit, 0) if bound else (0, bit)
    return 0, 0


def _is_data(op: Operation) -> bool:
    block = op.parent_op()
    return isinstance(block, stan.BlockOp) and block.kind.data == "data"


def initialized_variables(graph: FlowGraph, variables: Variables) -> Solution[int]:
    """Variables that were assigned on every path, as bits."""
    effects = [composed(node.ops, partial(initialized_step, variables)) for node in graph.nodes]
    return solve_sets(graph, effects, intersect=True, everything=(1 << len(variables)) - 1)
