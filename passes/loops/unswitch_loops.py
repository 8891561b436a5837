"""Loops that branch the same way in each iteration, and compute much in the arms, become loops that do not branch.

    for i: x = if c: f(u[i])  else: g(u[i])      →      if c: for i: x = f(u[i])
                                                        else: for i: x = g(u[i])

Bounds of parameters that are data are the case that many programs have: any of them may be infinite, and then there is
another transform, for all elements. LLVM would compute the functions of all arms for all iterations, or none side by
side. Behind reverse mode, so loops of gradients are treated by themselves; where there would be too many loops, the one
stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp, i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE

_MOST_VERSIONS = 4
_MOST_OPS = 400
"""In all versions of a loop together."""

Known = Mapping[SSAValue, bool]


class UnswitchLoops(TellingPass):
    """Takes branches that are the same for all iterations out of the innermost loops of `evaluate`."""

    name = "unswitch-loops"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return run_on(evaluate_of(module, self.name))


def run_on(function: func.FuncOp) -> bool:
    """Takes invariant branches out of the innermost loops of a function; whether there were any."""
    changed = False
    for loop in [op for op in ops_within(function) if type(op) is scf.ForOp and not _has_loop(op)]:
        if _first_condition(loop.body.block, loop, {}) is None:
            continue
        versions = sum(1 for _ in _versions(loop, {}))
        size = sum(1 for _ in ops_within(loop))
        if versions > _MOST_VERSIONS or versions * size > _MOST_OPS:
            told = f"its branches stay: {versions} loops of {size} ops without them are too much code"
            remark_on(UnswitchLoops.name, loop, told, done=False)
            continue
        remark_on(UnswitchLoops.name, loop, f"{versions} loops for what is alike in all iterations", done=True)
        block = loop.parent
        assert block is not None
        choice = _written(loop, {})
        block.insert_op_before(choice, loop)
        for old, new in zip(loop.results, choice.results, strict=True):
            replace_uses(old, new)
        discard(loop)
        changed = True
    return changed


def _has_loop(loop: scf.ForOp) -> bool:
    return any(op is not loop and type(op) in (scf.ForOp, scf.WhileOp) for op in ops_within(loop))


def _first_condition(block: Block, loop: scf.ForOp, known: Known) -> SSAValue | None:
    """The first condition from outside of the loop, and not known, that decides about costly functions; of branches
    within branches the outer one's."""
    for op in block.ops:
        if not isinstance(op, scf.IfOp):
            continue
        taken = [region.block for region in op.regions if region.blocks]
        if op.cond in known:
            taken = taken[:1] if known[op.cond] else taken[1:]
        elif not is_inside(op.cond, loop) and any(is_costly_function(inner) for inner in ops_within(op)):
            return op.cond
        for arm in taken:
            if (found := _first_condition(arm, loop, known)) is not None:
                return found
    return None


def _versions(loop: scf.ForOp, known: Known) -> Iterator[Known]:
    """What is known in each loop that takes the place of `loop`."""
    condition = _first_condition(loop.body.block, loop, known)
    if condition is None:
        yield known
        return
    for value in (True, False):
        yield from _versions(loop, {**known, condition: value})


def _written(loop: scf.ForOp, known: Known) -> Operation:
    """The loop, or a choice between loops, where some conditions are known."""
    condition = _first_condition(loop.body.block, loop, known)
    if condition is None:
        return _version(loop, known)
    arms = [Region(Block(_yielding(_written(loop, {**known, condition: value})))) for value in (True, False)]
    return scf.IfOp.create(operands=(condition,), result_types=loop.result_types, regions=arms, location=loop.location)


def _yielding(op: Operation) -> list[Operation]:
    return [op, scf.YieldOp.create(operands=op.results, location=op.location)]


def _version(loop: scf.ForOp, known: Known) -> scf.ForOp:
    """A copy of the loop that has constants for what is known."""
    copy = cloned(loop)
    body = copy.body.block
    for condition, value in known.items():
        literal = constant(value, i1, loop.location)
        assert body.first_op is not None
        body.insert_op_before(literal, body.first_op)
        for op in list(ops_within(copy)):
            for position, operand in enumerate(op.operands):
                if operand is condition:
                    op.operands[position] = literal.result
    return copy
