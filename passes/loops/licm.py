"""Loop-invariant code motion: what every iteration computes anew goes in front of the loop.

Innermost loops first, so an op leaves as many loops as it can. An op moves if its operands are defined outside and it
may run although the program would not run it (the loop may have no iteration): no effects, no division that could trap.

A load moves, too, if nothing in the loop may write its buffer and it surely runs (constant bounds that give an
iteration, or the condition of a `while`) with nothing before it that could leave the loop, such as the check of its
index.

With `guarded`, invariant checks leave counted loops, too: they then hold if the loop has no iteration. Loads of arena
memory follow them, at index 0 if there is no iteration: behind every arena block is some slack. Errors may so come
earlier than the program has them (see `checks`). With `branches`, too, loads leave branches in such loops, which then
may do nothing but compute: those of elements so near to the begin that there is memory, whatever the size.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.dialects.walk import blocks_of, following_op, operand_tuple, ops_of, ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.effects import (
    ANYTHING_BITS,
    EFFECT_BITS,
    Effect,
    Root,
    effect_within,
    is_speculatable,
    may_overlap,
    root,
    viewed,
    written_roots,
)
from ulam.passes.loops.function_passes import FunctionPass

_LOOPS = (scf.ForOp, scf.WhileOp)
_WRITE = int(Effect.WRITE)
_LEAVES = int(Effect.LEAVE | Effect.ORDERED)
_SLACK = 8
"""So many elements may be read behind every block of the arena (runtime/c/arena.c)."""


@record(frozen=True)
class Licm(FunctionPass):
    """Moves loop-invariant ops out of loops, of all functions or of the one that is named.

    `guarded`: those that may fail, too, under the condition that the loop runs; with `branches` also loads in branches.
    """

    name = "licm"
    settles = True

    guarded: bool = False
    branches: bool = False

    def changes_function(self, function: func.FuncOp) -> bool:
        motion = _Motion(self.guarded, self.branches)
        for block in function.body.blocks:
            motion.visit(block)
        return motion.changed


class _Motion:
    """The walk through a function."""

    def __init__(self, guarded: bool, branches: bool) -> None:
        self._guarded = guarded
        self._branches = branches
        self.changed = False

    def visit(self, block: Block) -> tuple[set[Root], bool]:
        """Treats the loops in `block`, inner ones first; which buffers it may write, and whether it sets slots."""
        written: set[Root] = set()
        binds = False
        op = block.first_op
        while op is not None:
            if op.regions:
                inside = written_roots(op)
                binds_inside = False
                for nested in blocks_of(op):
                    roots, binds_nested = self.visit(nested)
                    inside |= roots
                    binds_inside = binds_inside or binds_nested
                if isinstance(op, _LOOPS):
                    self._hoist(op, inside, binds_inside)
                    if self._guarded and isinstance(op, scf.ForOp):
                        self._hoist_guarded(op, inside, binds_inside)
                written |= inside
                binds = binds or binds_inside
            elif type(op) is rt.SetBoundOp:
                binds = True
            elif EFFECT_BITS.get(type(op), ANYTHING_BITS) & _WRITE:
                written |= written_roots(op)
            op = following_op(op)
        return written, binds

    def _hoist(self, loop: scf.ForOp | scf.WhileOp, written: set[Root], binds: bool) -> None:
        if isinstance(loop, scf.ForOp):
            self._hoist_from(loop.body.block, loop, written, binds, surely_runs=_has_iteration(loop))
        else:
            self._hoist_from(loop.before_region.block, loop, written, binds, surely_runs=True)
            self._hoist_from(loop.after_region.block, loop, written, binds, surely_runs=False)

    def _hoist_from(self, block: Block, loop: Operation, written: set[Root], binds: bool, *, surely_runs: bool) -> None:
        """Moves the invariant ops of `block` in front of `loop`."""
        variant = set(map(id, block.args))
        op = block.first_op
        while op is not None:
            following = following_op(op)
            if variant.isdisjoint(map(id, operand_tuple(op))) and _may_move(op, written, binds, surely_runs):
                self._move(op, loop)
            else:
                variant.update(map(id, op.results))
                surely_runs = surely_runs and not effect_within(op) & _LEAVES
            op = following

    def _move(self, op: Operation, loop: Operation) -> None:
        self.changed = True
        op.detach()
        _before(loop, op)

    def _hoist_guarded(self, loop: scf.ForOp, written: set[Root], binds: bool) -> None:
        """Moves invariant checks, and loads of arena memory behind them, in front of a loop that may not run."""
        if effect_within(loop) & Effect.ORDERED and any(_is_ordered(op) for op in ops_within(loop)):
            return
        guard = _Guard(loop)
        variant = set(map(id, loop.body.block.args))
        op = loop.body.block.first_op
        while op is not None:
            following = following_op(op)
            if not variant.isdisjoint(map(id, operand_tuple(op))):
                variant.update(map(id, op.results))
            elif isinstance(op, rt.CheckOp):
                self._move(op, loop)
                op.operands[0] = guard.or_empty(op)
            elif isinstance(op, rt.LoadOp) and _is_arena(op.buffer) and not _is_written(op.buffer, written):
                self._move(op, loop)
                if not guard.known:
                    op.operands[1] = guard.or_first(op)
                    rt.AheadAttr().put(op)
            elif _may_move(op, written, binds, False):
                self._move(op, loop)
            else:
                variant.update(map(id, op.results))
            if self._branches and isinstance(op, scf.IfOp):
                self._hoist_from_branch(op, loop, written)
            op = following

    def _hoist_from_branch(self, branch: scf.IfOp, loop: scf.ForOp, written: set[Root]) -> None:
        """Moves loads of arena memory near the begin of a block out of a branch of a loop, into the front of it."""
        for op in [op for nested in blocks_of(branch) for op in ops_of(nested)]:
            if isinstance(op, scf.IfOp):
                self._hoist_from_branch(op, loop, written)
            elif (
                isinstance(op, rt.LoadOp)
                and _is_in_slack(op.index)
                and not is_inside(op.buffer, loop)
                and _is_arena(op.buffer)
                and not _is_written(op.buffer, written)
            ):
                self._move(op, loop)
                rt.AheadAttr().put(op)


def _is_in_slack(index: SSAValue) -> bool:
    """Whether an index is so near to the begin that memory is there, of however few elements."""
    number = constant_integer(index)
    return number is not None and 0 <= number < _SLACK


def _may_move(op: Operation, written: set[Root], binds: bool, surely_runs: bool) -> bool:
    if isinstance(op, rt.LoadOp):
        return surely_runs and not _is_written(op.buffer, written)
    if binds and type(op) is rt.BoundOp:
        return False
    return is_speculatable(op)


def _has_iteration(loop: scf.ForOp) -> bool:
    """Whether the bounds are constants that give at least one iteration."""
    lower, upper = constant_integer(loop.lb), constant_integer(loop.ub)
    return lower is not None and upper is not None and lower < upper


class _Guard:
    """Makes, when first needed, the condition that a loop has an iteration."""

    def __init__(self, loop: scf.ForOp) -> None:
        self.loop = loop
        self.known = _has_iteration(loop)
        self._runs: SSAValue | None = None

    def runs(self, before: Operation) -> SSAValue:
        """Whether the loop has an iteration, as a value in front of `before`."""
        if self._runs is None:
            compare = arith.CmpiOp.create(
                operands=(self.loop.lb, self.loop.ub), result_types=(i1,), properties={"predicate": CMPI["slt"]}
            )
            _before(before, compare)
            self._runs = compare.result
        return self._runs

    def or_empty(self, check: rt.CheckOp) -> SSAValue:
        """The check's condition, or that there is no iteration."""
        if self.known:
            return check.ok
        return self._if_runs(check, check.ok, 1)

    def or_first(self, load: rt.LoadOp) -> SSAValue:
        """The load's index, or 0 if there is no iteration."""
        return load.index if _is_in_slack(load.index) else self._if_runs(load, load.index, 0)

    def _if_runs(self, before: Operation, value: SSAValue, otherwise: int) -> SSAValue:
        other = constant(otherwise, value.type)
        runs = self.runs(before)
        either = arith.SelectOp.create(operands=(runs, value, other.result), result_types=(value.type,))
        _before(before, other)
        _before(before, either)
        return either.results[0]


def _before(op: Operation, new: Operation) -> None:
    assert op.parent is not None
    op.parent.insert_op_before(new, op)


def _is_ordered(op: Operation) -> bool:
    return isinstance(op, rt.KernelOp | func.CallOp | rt.ReleaseOp | rt.SetBoundOp)


def _is_arena(buffer: SSAValue) -> bool:
    """Memory of the arena, from its beginning or as a view that begins inside of it."""
    return isinstance(viewed(buffer).owner, rt.AllocOp)


def _is_written(buffer: SSAValue, written: set[Root]) -> bool:
    source = root(buffer)
    return any(may_overlap(source, w) for w in written)
