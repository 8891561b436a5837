"""Loop-invariant code motion: what every iteration computes anew goes in front of the loop.

Innermost loops first, so an op leaves as many loops as it can. An op moves if its operands are defined outside and it may
run although the program would not run it (the loop may have no iteration): no effects, no division that could trap.

A load moves, too, if nothing in the loop may write its buffer and it may be read in advance: it is marked `speculatable`,
or it surely runs (constant bounds that give an iteration, or the condition of a `while`) with nothing before it that
could leave the loop, such as the check of its index.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.passes.analysis.effects_low import (
    Effect,
    Root,
    effect_within,
    is_speculatable,
    may_overlap,
    root,
    written_roots,
)

_LOOPS = (scf.ForOp, scf.WhileOp)


@dataclass(frozen=True)
class LoopInvariantCodeMotion(ModulePass):
    """The pass."""

    name = "licm"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op)


def run_on(op: Operation) -> None:
    """Moves invariant ops out of the loops of every function at or below `op`."""
    for function in (op,) if isinstance(op, func.FuncOp) else op.walk():
        if isinstance(function, func.FuncOp):
            for block in function.body.blocks:
                _visit(block)


def _visit(block: Block) -> tuple[set[Root], bool]:
    """Treats the loops in `block`, the inner ones first; which buffers it may write, and whether it sets bound slots."""
    written: set[Root] = set()
    binds = False
    op = block.first_op
    while op is not None:
        inside = written_roots(op)
        binds_inside = type(op) is rt.SetBoundOp
        for region in op.regions:
            for nested in region.blocks:
                roots, binds_nested = _visit(nested)
                inside |= roots
                binds_inside = binds_inside or binds_nested
        if isinstance(op, _LOOPS):
            _hoist(op, inside, binds_inside)
        written |= inside
        binds = binds or binds_inside
        op = op.next_op
    return written, binds


def _hoist(loop: scf.ForOp | scf.WhileOp, written: set[Root], binds: bool) -> None:
    if isinstance(loop, scf.ForOp):
        _hoist_from(loop.body.block, loop, written, binds, surely_runs=_has_iteration(loop))
    else:
        _hoist_from(loop.before_region.block, loop, written, binds, surely_runs=True)
        _hoist_from(loop.after_region.block, loop, written, binds, surely_runs=False)


def _hoist_from(block: Block, loop: Operation, written: set[Root], binds: bool, *, surely_runs: bool) -> None:
    """Moves the invariant ops of `block` in front of `loop`."""
    variant: set[SSAValue] = set(block.args)
    outer = loop.parent
    assert outer is not None
    op = block.first_op
    while op is not None:
        following = op.next_op
        if variant.isdisjoint(op.operands) and _may_move(op, written, binds, surely_runs):
            op.detach()
            outer.insert_op_before(op, loop)
        else:
            variant.update(op.results)
            surely_runs = surely_runs and not effect_within(op) & (Effect.LEAVE | Effect.ORDERED)
        op = following


def _may_move(op: Operation, written: set[Root], binds: bool, surely_runs: bool) -> bool:
    if isinstance(op, rt.LoadOp):
        if not surely_runs and "speculatable" not in op.attributes:
            return False
        source = root(op.buffer)
        return not any(may_overlap(source, w) for w in written)
    if binds and type(op) is rt.BoundOp:
        return False
    return is_speculatable(op)


def _has_iteration(loop: scf.ForOp) -> bool:
    """Whether the bounds are constants that give at least one iteration."""
    lower, upper = _integer(loop.lb), _integer(loop.ub)
    return lower is not None and upper is not None and lower < upper


def _integer(value: SSAValue) -> int | None:
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None
