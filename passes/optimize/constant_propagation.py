"""Constant propagation: a read of a variable whose value is known becomes that literal.

    int n = 100; array[n] int a; for (i in 1:n) ...   →   int n = 100; array[100] int a; for (i in 1:100) ...

Conditional: what is known decides branches, and an arm that is never taken does not count. One analysis for the whole
program, so that constants reach from transformed data into the model; functions by themselves. Assignments stay; dead
ones are left to dead-code-elimination. With `preserve-numerics` only ints are propagated.
Source: optimization levels documentation, "Constant propagation".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, SSAValue

from ulam.dialects import stan
from ulam.library.records import record
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.analysis.known_constants import KnownConstants
from ulam.passes.analysis.scopes import Scope, graphs_of
from ulam.passes.optimize.scope_passes import ScopePass
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.variable_form import constant


@record(frozen=True)
class ConstantPropagation(ScopePass):
    """Substitutes literals for variables whose value is known."""

    name = "constant-propagation"
    # A copy is known as what it copies, and what goes reaches no read that stays.
    finds_no_more_after = frozenset(("copy-propagation", "dead-code-elimination"))

    preserve_numerics: bool = False

    def work_on(self, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
        changed = [self._propagate(graph) for graph in graphs_of(scopes)]
        return any(changed)

    def _propagate(self, graph: FlowGraph) -> bool:
        """Whether something was substituted."""
        types = (stan.INT,) if self.preserve_numerics else (stan.INT, stan.REAL)
        if not _assigns_literals(graph, types):
            return False
        variables = Variables(graph)
        analysis = KnownConstants(graph, variables, types)
        solution = analysis.solve()
        told: set[int] = set()
        changed = False
        for node in graph.nodes:
            if solution.before[node.number] is None:
                continue
            for op in node.ops:
                if type(op) is not stan.ReadOp or (value := analysis.of(op.res)) is None:
                    continue
                literal = constant(value, op.location)
                assert op.parent is not None
                op.parent.insert_op_before(literal, op)
                replace_uses(op.res, literal.res)
                literal.res.name_hint = None
                number = variables.number(op.var)
                if number not in told:
                    told.add(number)
                    declaration = variables.declarations[number]
                    name = declaration.var_name.data
                    remark(self.name, declaration.location, f"variable {name}", f"replaced by {value}", done=True)
                discard(op)
                changed = True
        return changed


def _assigns_literals(graph: FlowGraph, types: Sequence[Attribute]) -> bool:
    """Whether a variable gets a value that is not computed from variables: else none has a value that is known."""
    return any(
        type(op) is stan.AssignOp and op.value.type in types and not _reads(op.value)
        for node in graph.nodes
        for op in node.ops
    )


def _reads(value: SSAValue) -> bool:
    """Whether a variable is needed for a value; not, if a choice may leave it out."""
    pending = [value]
    while pending:
        op = pending.pop().owner
        if isinstance(op, Block | stan.ReadOp):
            return True
        if op.regions:
            return False
        pending += op.operands
    return False
