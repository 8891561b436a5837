"""Squares that rows add up beside something else have a loop of their own, if its rows are reduced then.

    for n: if seen[n]: target += square(y[n] - m)         for n: if seen[n]: target += square(y[n] - m)
           else:       target += f(m)                →    for n: if !seen[n]: target += f(m)

So censored outcomes are written, and several outcomes of a row. What the squares' rows check goes with them where it
holds for all coefficients that reduced rows are used for (`linear-layouts`); else it stays. Means that a product with a
design has filled are filled once for each of the loops, if no row needs them in both: of reduced rows no one computes
them, and those of the others are left (`unique-designs`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue, Use

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import Arms, are_apart, arms_around, terminator
from ulam.passes.loops.affine_rows import target_additions
from ulam.passes.loops.coalesced_rows import is_coalesced
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.filled_buffers import memory_filled_by, walk_users
from ulam.passes.loops.linear_layouts import are_reduced, fills_if_reduced, squares_of_rows
from ulam.passes.loops.ragged_rows import is_flag
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.loops.unused_ops import discard_unused
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard, replace_uses, sink_into_arm
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES


class SplitSquares(TellingPass):
    """Gives squares loops of their own."""

    name = "split-squares"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        top, slices = evaluate_of(module, self.name).body.block, DataSlices()
        changed = False
        for loop in outermost_loops(top, slices):
            if not all(is_flag(loop, position) for position in range(len(loop.results))) or is_coalesced(loop):
                continue
            if (additions := len(target_additions(loop))) < 2:
                continue
            squares = squares_of_rows(loop, slices)
            if 0 < len(squares) < additions and _split(loop, squares, slices):
                remark_on(self.name, loop, "squares of its rows have a loop of their own, to be reduced", done=True)
                changed = True
        return changed


def _split(loop: scf.ForOp, squares: Collection[ad.TargetAddOp], slices: DataSlices) -> bool:
    """Moves squares to a loop in front of theirs, whose rows are reduced; whether they are."""
    (alone,) = copies([loop], {})
    assert isinstance(alone, scf.ForOp) and loop.parent is not None
    loop.parent.insert_op_before(alone, loop)
    for op, copy in list(zip(ops_within(loop), ops_within(alone), strict=True)):
        if isinstance(op, ad.TargetAddOp) and op not in squares:
            discard(copy)
    discard_unused(alone)
    has_flags = are_reduced(alone, slices)
    if not has_flags:
        terminator(alone.body.block).operands = list(alone.body.block.args[1:])
        discard_unused(alone)
        if not are_reduced(alone, slices):
            discard(alone)
            return False
    arms = [arms_around(op, loop) for op in squares]
    for op in squares:
        discard(op)
    if has_flags:
        terminator(loop.body.block).operands = list(loop.body.block.args[1:])
        for result, new in zip(loop.results, alone.results, strict=True):
            replace_uses(result, new)
    discard_unused(loop)
    for op in reversed(list(loop.body.block.ops)):
        if type(op) in PURE or isinstance(op, rt.LoadOp):
            sink_into_arm(op)  # rows that had squares need it no more
    _fill_apart(alone, loop, arms, slices)
    return True


_WRITES = (rt.StoreOp, rt.FillOp, ad.AccumulateOp)


def _fill_apart(squares: scf.ForOp, others: scf.ForOp, arms: Sequence[Arms], slices: DataSlices) -> None:
    """Gives squares memory of their own for what nests ahead fill, with a loop for each element, if no row of what was
    one loop needs it both in the arms where squares stood and in others.
    """
    from ulam.passes.loops.linear_evaluation import copy_fill, is_product, read_copies  # seldom needed

    fills = fills_if_reduced(squares, slices) or {}
    shared = [fill for fill, stays in fills.items() if stays]
    if not any(map(is_product, shared)):
        return
    for user in (user for fill in shared for alloc in memory_filled_by(fill) for user in walk_users(alloc)):
        if isinstance(user, _WRITES) or any(loop.is_ancestor(user) for loop in (squares, *fills)):
            continue
        if not others.is_ancestor(user) or not all(are_apart(a, b) for a in arms for b in _arms_needing(user, others)):
            return
    copied: dict[SSAValue, SSAValue] = {}
    for fill in shared:
        copy_fill(fill, squares, copied)
    read_copies(squares, copied)


def _arms_needing(op: Operation, loop: scf.ForOp) -> list[Arms]:
    """The arms around what needs the value of an op, or what is computed of it."""
    found: list[Arms] = []
    work, seen = [op], {op}
    while work:
        current = work.pop()
        for use in (use for result in current.results for use in result.uses):
            user = use.operation
            if type(user) not in PURE:
                found += [arms_around(user, loop)] if _is_needed(use) else []
            elif user not in seen:
                seen.add(user)
                work.append(user)
    return found


def _is_needed(use: Use) -> bool:
    """Whether a use is more than to give what nothing needs."""
    branch = use.operation.parent_op()
    if not isinstance(use.operation, scf.YieldOp) or not isinstance(branch, scf.IfOp):
        return True
    return any(map(_is_needed, branch.results[use.index].uses))
