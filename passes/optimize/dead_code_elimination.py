"""Dead code elimination: what has no effect on the program's behaviour goes.

    int i; i = 5; for (j in 1:10); if (0) { print("Dead code"); } else { print("Hi!"); }   →   int i; print("Hi!");

* A branch, a `while` or a range whose condition or bounds are literals: only what is executed stays.
* Statements that nothing needs (see `needed_ops`): assignments that are not read, loops and branches without effect.

Declarations stay, but for those of variables that passes made. What prints, throws, draws, adds to the target or is
profiled stays, too, used or not; so does an assignment that checks sizes. Source: optimization levels documentation,
"Dead code elimination".
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.traits import IsTerminator

from ulam.dialects import stan
from ulam.dialects.walk import ops_of
from ulam.passes.analysis.flow_graph import FlowGraph, Variables
from ulam.passes.analysis.needed_ops import NeededOps
from ulam.passes.analysis.scopes import Scope, bodies_of, call_effects, graphs_of
from ulam.passes.analysis.sizes import SizeFactsOnDemand
from ulam.passes.optimize.scope_passes import ScopePass
from ulam.passes.remarks import remark
from ulam.passes.rewriting import discard
from ulam.passes.variable_form import Variable, erase_unused, literal_of, mark_local, settle_sizes


class DeadCodeElimination(ScopePass):
    """Takes out statements that have no effect on the behaviour of the program."""

    name = "dead-code-elimination"
    asks_callees = True

    def work_on(self, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
        for body in bodies_of(scopes):
            for region in body.regions:
                _decide_branches(region.block)
        calls = call_effects(module)
        facts = SizeFactsOnDemand(module)
        for graph in graphs_of(scopes):
            variables = Variables(graph)
            needed = NeededOps(graph, variables, calls, facts.succeeds).needed
            _remove(graph, variables, needed)
            for declaration in variables.declarations:
                if isinstance(declaration, stan.DeclareOp) and declaration.parent is not None:
                    settle_sizes(declaration)
        return True


# ---------------------------------------------------------------- literal conditions


def _decide_branches(block: Block) -> None:
    """Replaces branches and loops with literal conditions by what is executed, in all regions."""
    op = block.first_op
    while op is not None:
        following = op.next_op
        if type(op) is stan.IfOp and (condition := literal_of(op.condition)) is not None:
            _tell(op, "the condition is always " + ("true" if condition else "false"))
            following = _take_arm(op, (op.then if condition else op.otherwise).block)
        elif _never_runs(op):
            _tell(op, "it never runs")
            following = _take_condition(op) if isinstance(op, stan.WhileOp) else following
            _erase(op)
        else:
            for region in op.regions:
                _decide_branches(region.block)
        op = following


def _never_runs(op: Operation) -> bool:
    if type(op) is stan.WhileOp:
        end = op.condition.block.last_op
        return isinstance(end, stan.ConditionOp) and literal_of(end.condition) == 0
    if type(op) is stan.ForOp:
        lower, upper = literal_of(op.lower), literal_of(op.upper)
        return lower is not None and upper is not None and lower > upper
    return False


def _take_condition(op: stan.WhileOp) -> Operation | None:
    """Puts what a condition does, once, before its loop, which never runs; the op to go on with."""
    moved = ops_of(op.condition.block)[:-1]
    following = op.next_op
    _move_before(op, moved)
    return moved[0] if moved else following


def _move_before(op: Operation, moved: list[Operation]) -> None:
    block = op.parent
    assert block is not None
    for inner in moved:
        inner.detach()
        block.insert_op_before(inner, op)
        if isinstance(block.parent_op(), stan.BlockOp):
            mark_local(inner)


def _take_arm(op: stan.IfOp, arm: Block) -> Operation | None:
    """Puts the ops of an arm in the place of the `if`; the op to go on with."""
    block = op.parent
    assert block is not None
    moved = ops_of(arm)
    leaves = not isinstance(moved[-1], stan.YieldOp)
    following = op.next_op
    if leaves:  # what follows is never reached
        while block.last_op is not op:
            assert block.last_op is not None
            discard(block.last_op)
    else:
        moved[-1].detach()
        moved.pop().erase()
    _move_before(op, moved)
    _erase(op)
    return moved[0] if moved else following


def _erase(op: Operation) -> None:
    operands = list(op.operands)
    discard(op)
    erase_unused(operands)


# ---------------------------------------------------------------- what nothing needs


def _remove(graph: FlowGraph, variables: Variables, needed: set[Operation]) -> None:
    for node in reversed(graph.nodes):
        for op in reversed(node.ops):
            if op in needed or op.parent is None or op.has_trait(IsTerminator):
                continue
            if isinstance(op, Variable):
                unsized = isinstance(op, stan.DeclareOp) and op.takes_assigned_sizes
                if op.results[0].first_use is None and (unsized or op.var_name.data.endswith("__")):
                    discard(op)
                continue
            if isinstance(op, stan.GlobalOp) and op.res.first_use is not None:
                continue
            if isinstance(op, stan.AssignOp):
                name = variables.declarations[variables.number(op.var)].var_name.data
                remark(DeadCodeElimination.name, op.location, f"assignment to {name}", "never read", done=True)
            elif not op.results:
                _tell(op, "it has no effect")
            discard(op)


def _tell(op: Operation, message: str) -> None:
    remark(DeadCodeElimination.name, op.location, op.name.removeprefix("stan."), message, done=True)
