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

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

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
_MOST_READ = 64
"""Of those that read one memory so many are looked at, before few of them are chosen."""


def speculated_ops(block: Block) -> dict[Operation, Bounds]:
    """Scalars of a block, and loops in it, that loops alone use → these loops. The same in branches of the block, and
    in each iteration of loops, whose bodies have inner loops."""
    found: dict[Operation, Bounds] = {}
    blocks = [block, *(op.body.block for op in ops_within(block) if type(op) is scf.ForOp)]
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
        self._readers: dict[tuple[SSAValue, Block], _Readers | None] = {}
        self._read_in: dict[Operation, list[_Readers]] = {}
        """Ops that were not looked at → memory of which readers were asked for, and that is read there."""
        self._seen: set[Operation] = set()
        self._passive: dict[Operation, bool] = {}

    def look_at(self, block: Block) -> None:
        """Notes the ops of a block, and of its branches."""
        op = block.last_op
        while op is not None:
            bounds: Bounds | None = None
            if type(op) in _READ_OR_COMPUTED:
                bounds = self._around((use.operation for use in op.results[0].uses), block)
            elif type(op) is scf.ForOp:
                bounds = self._behind_loop(op, block)
            elif type(op) is rt.StoreOp:
                bounds = self._of_memory(viewed(op.buffer), block)
            elif type(op) is scf.IfOp:
                for inner in blocks_of(op):
                    self.look_at(inner)
            if bounds is not None and len(bounds := _few(bounds)) <= _MOST:
                self.loops[op] = bounds
            self._seen.add(op)
            for readers in self._read_in.pop(op, ()):
                readers.replace(op, self._around(readers.within[op], block))
            op = op.prev_op

    def _behind_loop(self, loop: scf.ForOp, block: Block) -> Bounds | None:
        """The loops that alone use the results of a loop of a block, and memory that it writes; None if it does more,
        or what uses these is not known."""
        written: dict[SSAValue, None] = {}
        for inner in ops_within(loop):
            if isinstance(inner, ad.TargetAddOp | func.CallOp):
                return None
            written |= dict.fromkeys(map(viewed, written_buffers(inner)))
        if any(isinstance(result.type, rt.BufferType) for result in loop.results):
            return None
        found = self._around((use.operation for result in loop.results for use in result.uses), block)
        if found is None:
            return None
        bounds = dict.fromkeys(found)
        for memory in written:
            readers = self._readers_in(memory, block)
            others = None if readers is None else readers.bounds_without(loop)
            if others is None:
                return None
            bounds |= dict.fromkeys(others)
        return tuple(bounds)

    def _readers_in(self, memory: SSAValue, block: Block) -> _Readers | None:
        """What reads memory, by the op of a block that it stands in; None if that is not known. The same for all loops
        that write it: what is known of ops is noted there when they are looked at."""
        place = (memory, block)
        if place not in self._readers:
            self._readers[place] = readers = self._found_readers(memory, block)
            if readers is not None:
                for op in readers.within:
                    if op not in self._seen:
                        self._read_in.setdefault(op, []).append(readers)
        return self._readers[place]

    def _found_readers(self, memory: SSAValue, block: Block) -> _Readers | None:
        users = _readers_of(memory, block)
        if users is None:
            return None
        within: dict[Operation, list[Operation]] = {}
        for user in users:
            top = ancestor_in(user, block)
            if top is None:
                return None
            within.setdefault(top, []).append(user)
        return _Readers(within, {op: self._around(inner, block) for op, inner in within.items()})

    def _of_memory(self, memory: SSAValue, block: Block) -> Bounds | None:
        """The loops that alone read memory. It is looked at where a block stores to it last: what reads it is known
        then, or is not."""
        place = (memory, block)
        if place not in self._memory:
            self._memory[place] = self._around(_readers_of(memory, block), block)
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


class _Readers:
    """The ops of a block in which memory is read, and the loops that alone use what each reads.

    Each loop that writes asks what all others read. That is counted, so that it costs no look at each of them.
    """

    def __init__(self, within: dict[Operation, list[Operation]], bounds: dict[Operation, Bounds | None]) -> None:
        self.within = within
        """Ops of the block → what reads memory in them."""
        self._bounds = bounds
        self._counts = Counter(each for op in bounds for each in self._of(op))

    def _of(self, op: Operation) -> Sequence[Nest | None]:
        if op not in self._bounds:
            return ()
        found = self._bounds[op]
        return (None,) if found is None else found

    def replace(self, op: Operation, bounds: Bounds | None) -> None:
        """Notes what is known of an op now."""
        for each in self._of(op):
            self._counts[each] -= 1
            if not self._counts[each]:
                del self._counts[each]
        self._bounds[op] = bounds
        self._counts.update(self._of(op))

    def bounds_without(self, op: Operation) -> Bounds | None:
        """The loops that alone use what is read elsewhere than in an op; None if there are others, or too many."""
        own = Counter(self._of(op))
        if self._counts[None] > own[None]:
            return None
        found: list[Nest] = []
        for each, count in self._counts.items():
            if each is not None and count > own[each]:
                found.append(each)
                if len(found) > _MOST_READ:
                    return None
        return tuple(found)


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
        return tuple(dict.fromkeys(nest[:1] for nest in bounds))
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
                if (loop := _loop_that_has_iterations(outer.operands[0])) is not None:
                    nests = [(*nest, loop) for nest in nests]
                else:
                    conditions.append((outer.operands[0],))
            continue
        if loops and all(_may_be_idle(loop, op) for loop in loops):
            nests = [(*nest, (loop.lb, loop.ub)) for nest in nests for loop in loops]
    return tuple(tuple(dict.fromkeys((*nest, *conditions))) for nest in nests if nest)


def _is_told_by_condition(op: Operation, around: Operation) -> bool:
    """Whether an op is reached in a branch only if its condition holds."""
    return isinstance(around, scf.IfOp) and ancestor_in(op, around.true_region.block) is not None


def _loop_that_has_iterations(condition: SSAValue) -> tuple[SSAValue, ...] | None:
    """Begin and end of a loop that has an iteration if a condition holds, as of what such a loop alone needs."""
    test = condition.owner
    is_one = isinstance(test, arith.CmpiOp) and test.predicate == CMPI["slt"] and known_constant(test.rhs) is None
    return tuple(test.operands) if is_one else None


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


def _readers_of(memory: SSAValue, block: Block) -> list[Operation] | None:
    """Ops that use elements of memory; None if it may be that of others, or is there ahead of a block: another
    iteration may read what this one has stored.
    """
    memory = viewed(memory)
    if not isinstance(memory.owner, rt.AllocOp) or ancestor_in(memory.owner, block) is None:
        return None
    pending = [memory]
    users: dict[Operation, None] = {}
    while pending:
        value = pending.pop()
        for use in value.uses:
            user = use.operation
            if isinstance(user, rt.ViewOp):
                pending.append(user.res)
            elif not isinstance(user, rt.StoreOp | rt.ReleaseOp | rt.FillOp):
                users[user] = None
    return list(users)


def _evaluates(loop: scf.ForOp) -> bool:
    return any(isinstance(op, rt.MathOp | arith.DivfOp) for op in ops_within(loop))
