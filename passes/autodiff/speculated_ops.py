"""What is computed in front of loops, and used there alone: where these have no iteration, nothing uses it.

    x = log(a)                          the adjoint of a gets (N > 0 ? g / a : 0), of the adjoint g of x
    for n < N: target += x * y[n]

    for k: t[k] = log(c[k])             the reverse loop over k has no iteration if that over n had none
    for n < N: target += t[g[n]]

Invariants leave loops that may have no iteration: at a = 0 the program would have computed no logarithm, and what is
computed for nothing must not have a slope of 0 * infinity. Where a loop runs slopes are what they were, NaN included.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import blocks_of, ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.autodiff.partials import SCALAR_OPS, is_constant, row_name
from ulam.passes.loops.effects import viewed, written_buffers

Bounds = tuple[tuple[SSAValue, SSAValue], ...]
"""Begins and ends of loops."""

_SCALARS = (*SCALAR_OPS, arith.SelectOp)
_MOST = 8
"""Loops whose bounds are compared for one op."""


def speculated_ops(block: Block) -> dict[Operation, Bounds]:
    """Scalars of a block, and loops in it, that loops alone use → these loops. The same in branches of the block."""
    found: dict[Operation, Bounds] = {}
    _find(block, found)
    return found


def _find(block: Block, found: dict[Operation, Bounds]) -> None:
    op = block.last_op
    while op is not None:
        if isinstance(op, _SCALARS):
            bounds = _of_users((use.operation for use in op.results[0].uses), block, found)
        elif isinstance(op, scf.ForOp) and constant_integer(op.ub) is None and _evaluates(op):
            # Neither loops of known length, which LLVM unrolls, nor those of which a reader is as long as they.
            users = _users_of_loop(op)
            bounds = None if users is None else _of_users(users, block, found)
            bounds = None if not bounds or (op.lb, op.ub) in bounds else bounds
        else:
            for inner in blocks_of(op) if isinstance(op, scf.IfOp) else ():
                _find(inner, found)
            bounds = None
        if bounds is not None and len(bounds) <= _MOST:
            found[op] = bounds
        op = op.prev_op


def _of_users(users: Iterable[Operation], block: Block, found: dict[Operation, Bounds]) -> Bounds | None:
    """Loops of which one has an iteration if any of some ops is reached; None if others may be."""
    bounds: dict[tuple[SSAValue, SSAValue], None] = {}
    for user in users:
        if _is_passive(user):
            continue
        if user.parent is block:
            if (others := found.get(user)) is None or not isinstance(user, _SCALARS):
                return None
            bounds |= dict.fromkeys(others)
        elif (loop := _loop_around(user, block)) is not None:
            bounds[loop.lb, loop.ub] = None
        elif not _is_passive(ancestor_in(user, block)):
            return None
    return tuple(bounds)


def _is_passive(op: Operation | None) -> bool:
    """Whether an op uses reals, and hands them no adjoints; a branch, if it finds out a condition alone."""
    if isinstance(op, scf.IfOp):
        inside = (*_SCALARS, arith.CmpfOp, arith.AndIOp, arith.OrIOp, arith.ConstantOp, scf.YieldOp)
        return all(result.type == i1 for result in op.results) and all(
            isinstance(inner, inside) for inner in ops_within(op) if inner is not op
        )
    return isinstance(op, arith.CmpfOp | rt.CheckOp) or (isinstance(op, rt.MathOp) and is_constant(row_name(op)))


def _loop_around(op: Operation, block: Block) -> scf.ForOp | None:
    """A loop around an op that may have no iteration, of bounds that are there ahead of what stands in the block."""
    around: list[Operation] = []
    while op.parent is not block:
        if (parent := op.parent_op()) is None:  # a use of memory from around the block, outside of it
            return None
        around.append(op := parent)
    for loop in reversed(around):
        if isinstance(loop, scf.ForOp) and not any(is_inside(bound, op) for bound in (loop.lb, loop.ub)):
            first, limit = constant_integer(loop.lb), constant_integer(loop.ub)
            if first is None or limit is None or first >= limit:
                return loop
    return None


def _users_of_loop(loop: scf.ForOp) -> list[Operation] | None:
    """Ops that use the results of a loop, or memory that it writes; None if it does more, or they are not known."""
    pending: list[SSAValue] = list(loop.results)
    for inner in ops_within(loop):
        if isinstance(inner, ad.TargetAddOp | func.CallOp):
            return None
        for buffer in map(viewed, written_buffers(inner)):
            if not isinstance(buffer.owner, rt.AllocOp):
                return None
            pending.append(buffer)
    users: dict[Operation, None] = {}
    pending = list(dict.fromkeys(pending))
    while pending:
        for use in pending.pop().uses:
            user = use.operation
            if isinstance(user, rt.ViewOp):
                pending.append(user.res)
            elif not isinstance(user, rt.ReleaseOp | rt.FillOp) and not loop.is_ancestor(user):
                users[user] = None
    return list(users)


def _evaluates(loop: scf.ForOp) -> bool:
    return any(isinstance(op, rt.MathOp | arith.DivfOp) for op in ops_within(loop))
