"""What is computed in front of loops, and used there alone: where these have no iteration, nothing uses it.

    x = log(a)                          the adjoint of a gets (N > 0 ? g / a : 0), of the adjoint g of x
    for n < N: target += x * y[n]

    for k: t[k] = log(c[k])             the reverse loop over k has no iteration if that over n had none
    for n < N: target += t[g[n]]

    for k < K: for n < N: target += x   a nest has an iteration if all of its loops have one

    target += N == 0 ? 0 : N * log(a)   a loop whose iterations are counted is no other

Invariants leave loops that may have no iteration: at a = 0 the program would have computed no logarithm, and what is
computed for nothing must not have a slope of 0 * infinity. Where a loop runs slopes are what they were, NaN included.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64, i1
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant_integer, known_constant
from ulam.dialects.walk import blocks_of, ops_within
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.autodiff.partials import SCALAR_OPS, is_constant, row_name
from ulam.passes.loops.effects import Effect, effect_within, viewed, written_buffers

Nest = tuple[tuple[SSAValue, ...], ...]
"""Begins and ends of loops inside of each other, and conditions of branches around: there is an iteration if all loops
have one, and all conditions hold."""
Bounds = tuple[Nest, ...]
"""Those of nests of which any may run."""

_SCALARS = frozenset[type]((*SCALAR_OPS, arith.SelectOp))
_READ_OR_COMPUTED = _SCALARS | {rt.LoadOp}
_RECORDED = _READ_OR_COMPUTED | {rt.StoreOp}
_NESTED = scf.IfOp | scf.ForOp
_ANY_EFFECT = Effect.WRITE | Effect.LEAVE | Effect.ORDERED
_MOST = 8
"""Nests whose bounds are compared for one op."""


def speculated_ops(block: Block) -> dict[Operation, Bounds]:
    """Scalars of a block, and loops in it, that loops alone use → these loops. The same in branches of the block, and
    in each iteration of loops, whose bodies have inner loops."""
    found: dict[Operation, Bounds] = {}
    blocks = [block, *(op.body.block for op in ops_within(block) if isinstance(op, scf.ForOp))]
    for inner in reversed(blocks):  # those inside of others first
        users = _Users(found)
        users.look_at(inner)
        found |= users.loops
    return {op: bounds for op, bounds in found.items() if _may_have_slopes(op, bounds)}


def _may_have_slopes(op: Operation, bounds: Bounds) -> bool:
    """Whether an op may have infinite slopes, and it pays not to compute those.

    It does not for loops of known length, which LLVM unrolls, nor for those of which a reader is as long as they.
    """
    if not isinstance(op, scf.ForOp):
        return type(op) in _SCALARS
    return bool(bounds) and constant_integer(op.ub) is None and ((op.lb, op.ub),) not in bounds and _evaluates(op)


class _Users:
    """What uses ops, from the last op of a block on."""

    def __init__(self, inside: Mapping[Operation, Bounds]) -> None:
        self._inside = inside
        """The same of ops in loops of the block."""
        self.loops: dict[Operation, Bounds] = {}
        """Ops that compute, fill memory or store → the loops that alone use what they do."""
        self._memory: dict[tuple[SSAValue, Block], Bounds | None] = {}
        self._passive: dict[Operation, bool] = {}

    def look_at(self, block: Block) -> None:
        """Notes the ops of a block, and of its branches."""
        op = block.last_op
        while op is not None:
            bounds: Bounds | None = None
            if type(op) in _READ_OR_COMPUTED:
                bounds = self._around((use.operation for use in op.results[0].uses), block)
            elif isinstance(op, scf.ForOp):
                bounds = self._around(_users_of_loop(op, block), block)
            elif isinstance(op, rt.StoreOp):
                bounds = self._of_memory(viewed(op.buffer), block)
            elif isinstance(op, scf.IfOp):
                for inner in blocks_of(op):
                    self.look_at(inner)
            if bounds is not None and len(bounds := _few(bounds)) <= _MOST:
                self.loops[op] = bounds
            op = op.prev_op

    def _of_memory(self, memory: SSAValue, block: Block) -> Bounds | None:
        """The loops that alone read memory. It is looked at where a block stores to it last: what reads it is known
        then, or is not."""
        place = (memory, block)
        if place not in self._memory:
            self._memory[place] = self._around(_readers_of((memory,), block), block)
        return self._memory[place]

    def _around(self, users: Iterable[Operation] | None, block: Block) -> Bounds | None:
        """Loops of which one has an iteration if any of some ops is reached; None if others may be, or are unknown."""
        if users is None:
            return None
        bounds: dict[Nest, None] = {}
        for user in users:
            top = ancestor_in(user, block)
            if top is None:  # a use of memory from around the block, outside of it
                return None
            if any(map(self._is_passive, _with_those_around(user, top))):
                continue
            if top is user:
                others = self.loops.get(user) if type(user) in _RECORDED else None
                if others is None and (others := _counted(user)) is None:
                    return None
                bounds |= dict.fromkeys(others)
                continue
            others = self.loops.get(top)  # what uses a loop: bounds that are there in the block, too
            if others is None and not (others := self._nests_that_use(user, top, block)):
                others = self._in_branch(user, top)
            if others is None:
                return None
            bounds |= dict.fromkeys(others)
        return tuple(bounds)

    def _nests_that_use(self, user: Operation, top: Operation, block: Block) -> Bounds:
        """Those that an op stands in, with those that alone use it there, as far as bounds are there ahead of `top`."""
        found = _nests_around(user, block)
        within = self._inside.get(user, ()) if type(user) in _READ_OR_COMPUTED else ()
        known = [tuple(loop for loop in nest if not any(is_inside(bound, top) for bound in loop)) for nest in within]
        if not found or not known or not all(known):
            return found
        return tuple(tuple(dict.fromkeys((*nest, *other))) for nest in found for other in known)

    def _in_branch(self, user: Operation, top: Operation) -> Bounds | None:
        """The loops that alone use what an op in branches of `top` computes, of bounds that are there ahead of it."""
        around = list(_with_those_around(user, top))[1:]
        bounds = self.loops.get(user) if type(user) in _RECORDED else None
        if bounds is None or not all(isinstance(op, scf.IfOp) for op in around):
            return None
        return None if any(is_inside(bound, top) for nest in bounds for pair in nest for bound in pair) else bounds

    def _is_passive(self, op: Operation) -> bool:
        """Whether an op hands no adjoints to reals that it uses: what it computes, if anything, decides something."""
        known = self._passive.get(op)
        if known is None:
            if isinstance(op, arith.CmpfOp | rt.CheckOp) or (isinstance(op, rt.MathOp) and is_constant(row_name(op))):
                known = True
            elif type(op) in _SCALARS or (isinstance(op, _NESTED) and not effect_within(op) & _ANY_EFFECT):
                decides = (use.operation for result in op.results if result.type != i1 for use in result.uses)
                known = all(map(self._is_passive, decides))
            else:
                known = False
            self._passive[op] = known
        return known


def _with_those_around(op: Operation, top: Operation) -> Iterator[Operation]:
    """An op, and those that it stands in up to one of them."""
    while op is not top:
        yield op
        parent = op.parent_op()
        assert parent is not None
        op = parent
    yield top


def _few(bounds: Bounds) -> Bounds:
    """Nests of which no other is a part; of many the outer loops alone."""
    if len(bounds) > _MOST:
        bounds = tuple(dict.fromkeys(nest[:1] for nest in bounds))
    return tuple(nest for nest in bounds if not any(set(other) < set(nest) for other in bounds))


def _nests_around(op: Operation, block: Block) -> Bounds:
    """Nests of which one has an iteration where an op is reached, but may have none, of bounds that are there ahead of
    what stands in the block: of loops around the op, or of those in the place of which it computes."""
    around: list[Operation] = []
    user = op
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        around.append(op := parent)
    nests: list[Nest] = [()]
    conditions: list[tuple[SSAValue, ...]] = []
    for outer in reversed(around):
        if isinstance(outer, scf.ForOp):
            loops = [outer]
        elif rt.ReducedAttr.marks(outer):
            loops = list(_loops_that_add(blocks_of(outer)[1]))
        else:
            if _is_told_by_condition(user, outer) and not is_inside(outer.operands[0], op):
                conditions.append((outer.operands[0],))
            continue
        if loops and all(_may_be_idle(loop, op) for loop in loops):
            nests = [(*nest, (loop.lb, loop.ub)) for nest in nests for loop in loops]
    return tuple(tuple(dict.fromkeys((*nest, *conditions))) for nest in nests if nest)


def _is_told_by_condition(op: Operation, around: Operation) -> bool:
    """Whether an op is reached in a branch only if its condition holds."""
    return isinstance(around, scf.IfOp) and ancestor_in(op, around.true_region.block) is not None


def _loops_that_add(block: Block) -> Iterator[scf.ForOp]:
    """The loops of a block and its branches that sum up; others fill memory for these."""
    for op in block.ops:
        if isinstance(op, scf.IfOp):
            for inner in blocks_of(op):
                yield from _loops_that_add(inner)
        elif isinstance(op, scf.ForOp):
            sums = any(result.type == f64 for result in op.results)
            if sums or any(isinstance(each, ad.TargetAddOp) for each in ops_within(op)):
                yield op


def _counted(op: Operation) -> Bounds | None:
    """A loop from 0 to the number of equal terms that an op takes, as in `count == 0 ? 0 : count * x`."""
    if not isinstance(op, arith.SelectOp) or known_constant(op.lhs) != 0:
        return None
    test = op.cond.owner
    if not isinstance(test, arith.CmpiOp) or test.predicate != CMPI["eq"] or constant_integer(test.rhs) != 0:
        return None
    return (((test.rhs, test.lhs),),)


def _may_be_idle(loop: scf.ForOp, ahead_of: Operation) -> bool:
    """Whether a loop may have no iteration, of bounds that are there ahead of an op around it."""
    first, limit = constant_integer(loop.lb), constant_integer(loop.ub)
    is_known = first is not None and limit is not None and first < limit
    return not is_known and not any(is_inside(bound, ahead_of) for bound in (loop.lb, loop.ub))


def _users_of_loop(loop: scf.ForOp, block: Block) -> list[Operation] | None:
    """Ops that use the results of a loop of a block, or memory that it writes; None if it does more, or they are not
    known.
    """
    pending: list[SSAValue] = list(loop.results)
    for inner in ops_within(loop):
        if isinstance(inner, ad.TargetAddOp | func.CallOp):
            return None
        pending += written_buffers(inner)
    users = _readers_of(pending, block)
    return None if users is None else [user for user in users if not loop.is_ancestor(user)]


def _readers_of(values: Iterable[SSAValue], block: Block) -> list[Operation] | None:
    """Ops that use values, of buffers the elements; None if buffers may be those of others, or are there ahead of a
    block: another iteration may read what this one has stored.
    """
    pending: dict[SSAValue, None] = {}
    for value in values:
        if isinstance(value.type, rt.BufferType):
            value = viewed(value)
            if not isinstance(value.owner, rt.AllocOp) or ancestor_in(value.owner, block) is None:
                return None
        pending[value] = None
    users: dict[Operation, None] = {}
    while pending:
        value, _ = pending.popitem()
        for use in value.uses:
            user = use.operation
            if isinstance(user, rt.ViewOp):
                pending[user.res] = None
            elif isinstance(user, rt.StoreOp):
                if user.value is value:
                    users[user] = None
            elif not isinstance(user, rt.ReleaseOp | rt.FillOp):
                users[user] = None
    return list(users)


def _evaluates(loop: scf.ForOp) -> bool:
    return any(isinstance(op, rt.MathOp | arith.DivfOp) for op in ops_within(loop))
