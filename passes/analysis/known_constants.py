"""Which scalar variables have a known value: conditional constant propagation, forward.

What is known decides conditions and loop bounds; arms that are never taken do not spoil constants. Source: Wegman and
Zadeck 1991, on structured control flow instead of SSA edges.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ulam.dialects import stan
from ulam.dialects.scalar_ops import same_value
from ulam.dialects.walk import operand_at, operand_tuple, result_of
from ulam.passes.analysis.data_flow import Solution, solve
from ulam.passes.analysis.flow_graph import FlowGraph, FlowNode, Variables
from ulam.passes.analysis.literals import Literal, evaluate
from ulam.passes.analysis.live_variables import live_variables
from ulam.passes.variable_form import literal_of

_BRANCHES = (stan.IfOp, stan.SelectOp, stan.AndOp, stan.OrOp, stan.ConditionOp)

Constants = dict[int, Literal]
"""Number of a variable → its value. Never changed in place."""


class KnownConstants:
    """The analysis. `types`: of variables that it follows."""

    def __init__(
        self, graph: FlowGraph, variables: Variables, types: Sequence[Attribute] = (stan.INT, stan.REAL)
    ) -> None:
        self.graph = graph
        self.variables = variables
        self.types = types
        self._known: dict[int, Literal] = {}  # by the identity of values, which the graph keeps
        self._live = live_variables(graph, variables).after

    def solve(self) -> Solution[Constants]:
        return solve(self.graph, self, _users_of_values(self.graph))

    # ------------------------------------------------------------ the analysis

    def boundary(self) -> Constants:
        return {}

    def join(self, one: Constants, other: Constants) -> Constants:
        if one is other:
            return one
        return {n: v for n, v in one.items() if n in other and same_value(v, other[n])}

    def transfer(self, node: FlowNode, state: Constants) -> Constants:
        result: Constants | None = None
        if node.after is not None and node.after.results:
            self._note(node.after.results[0], self._lazy(node.after))
        for op in node.ops:
            if not op.results:
                if not isinstance(op, stan.AssignOp):
                    continue
                number, value = self.variables.find(op.var), self._assigned(op)
            elif type(op) is stan.DeclareOp:
                number, value = self.variables.number(result_of(op)), None
            else:
                self._expression(op, state if result is None else result)
                continue
            if number is None:
                continue
            known = state if result is None else result
            if value is not None or number in known:
                result = dict(known) if result is None else result
                result.pop(number, None)
                if value is not None:
                    result[number] = value
        live = self._live[node.number] or 0
        result = state if result is None else result
        if any(not live >> number & 1 for number in result):
            result = {number: value for number, value in result.items() if live >> number & 1}
        return result

    def along(self, node: FlowNode, successor: int, state: Constants) -> Constants | None:
        if len(node.successors) < 2:
            return state
        if node.header_of is not None and not isinstance(node.header_of, stan.WhileOp):
            lower, upper = (self.of(o) for o in node.header_of.operands[:2]) if isinstance(
                node.header_of, stan.ForOp
            ) else (None, None)  # fmt: skip
            never = lower is not None and upper is not None and lower > upper
            return None if never and successor == 0 else state
        branch = node.ops[-1] if node.ops else None
        if not isinstance(branch, _BRANCHES):
            return state  # to the model, and to the generated quantities
        condition = self.of(operand_at(branch, 0))
        if condition is None:
            return state
        taken = bool(condition)
        if isinstance(branch, stan.OrOp):
            taken = not taken  # the right operand is evaluated if the left one is 0
        return state if (successor == 0) == taken else None

    # ------------------------------------------------------------ expressions

    def _expression(self, op: Operation, state: Constants) -> None:
        (result,) = op.results
        if type(op) is stan.ConstantOp:
            self._note(result, literal_of(result))
        elif type(op) is stan.ReadOp:
            number = self.variables.find(op.var)
            self._note(result, None if number is None else state.get(number))
        elif not op.regions:
            known: list[Literal] = []
            for operand in operand_tuple(op):
                value = self.of(operand)
                if value is None:
                    break
                known.append(value)
            else:
                self._note(result, evaluate(op, known) if known else None)
                return
            self._note(result, None)

    def _note(self, result: SSAValue, value: Literal | None) -> None:
        if value is not None:
            self._known[id(result)] = value
        else:
            self._known.pop(id(result), None)

    def of(self, value: SSAValue) -> Literal | None:
        """What is known of an expression of the graph."""
        return self._known.get(id(value))

    def _lazy(self, op: Operation) -> Literal | None:
        """The value of `?:`, `&&`, `||` where the first operand decides."""
        first = self.of(op.operands[0]) if op.operands else None
        if first is None:
            return None
        if isinstance(op, stan.SelectOp):
            taken = (op.then if first else op.otherwise).block.last_op
            assert taken is not None
            return self.of(taken.operands[0])
        if isinstance(op, stan.AndOp | stan.OrOp):
            if bool(first) is isinstance(op, stan.OrOp):
                return int(bool(first))
            end = op.right.block.last_op
            assert end is not None
            right = self.of(end.operands[0])
            return None if right is None else int(right != 0)
        return None

    def _assigned(self, op: stan.AssignOp) -> Literal | None:
        """The value that a scalar variable gets."""
        value = op.value
        return self.of(value) if len(operand_tuple(op)) == 2 and value.type in self.types else None


def _users_of_values(graph: FlowGraph) -> list[set[int]]:
    """Of each node the others that look at the values of its expressions: where lazy operands and loops end a node."""
    home: dict[int, FlowNode] = {id(op): node for node in graph.nodes for op in node.ops if op.results}
    home |= {id(node.after): node for node in graph.nodes if node.after is not None and node.after.results}
    users: list[set[int]] = [set() for _ in graph.nodes]
    for node in graph.nodes:
        looking = list(node.ops)
        if node.header_of is not None:
            looking.append(node.header_of)
        if node.after is not None and node.after.results:
            looking.append(node.after)
            looking += [region.block.last_op for region in node.after.regions if region.block.last_op is not None]
        for op in looking:
            for operand in operand_tuple(op):
                source = home.get(id(operand.op)) if isinstance(operand, OpResult) else None
                if source is not None and source is not node:
                    users[source.number].add(node.number)
    return users
