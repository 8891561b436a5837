"""Loop fusion: two counted loops over the same range become one.

    for i: x[i] = f(i)          for i: x[i] = f(i)
    for i: y[i] = g(x[i])   →          y[i] = g(x[i])

The first loop moves down to the second; of the ops between them those that need the first go behind. Not applied where
an element would be touched in another order (`accesses`), where ops between allow neither place, where that would cost
the vectorisation of one (the other branches, loops, or carries a value from iteration to iteration), or above a size.
With `reassociate` branches that only compute and add to the target may have what they alone read computed beside them,
and loops that call functions one by one are kept from those that compute them for several iterations at once.
A sum that the second loop takes over from the first is carried once, if it may be re-associated.

Before reverse mode, a loop that only adds to the target gets its reverse into the same body, so it must stay such a
loop: it is fused with its like, or with loops whose results it alone reads. Additions to the target, and to a sum that
goes on from one loop to the next, change their order and are left alone without `reassociate` (levels 0 to 2). With it,
an element that both loops set, or add to, is set or added to once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import field
from functools import cached_property

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64
from xdsl.dialects.utils.fast_math import FastMathFlag
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import blocks_of, following_op, operand_tuple, ops_of
from ulam.library.costs import WIDENED
from ulam.library.kernels import KERNELS, PULLBACKS
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_before, is_inside, terminator
from ulam.passes.loops.accesses import Access, Kind, LoopAccesses, meet_in_order
from ulam.passes.loops.dead_stores import add_elements_once, forward_elements
from ulam.passes.loops.effects import (
    ANYTHING_BITS,
    DIVISIONS,
    EFFECT_BITS,
    PURE,
    UNKNOWN,
    Effect,
    Root,
    changed_roots,
    functions,
    overlap,
    root,
    written_roots,
)
from ulam.passes.loops.function_passes import FunctionPass
from ulam.passes.loops.tables import is_costly_function
from ulam.passes.rewriting import discard, replace_uses

_REACH = 400
"""So many ops behind a loop its partner is looked for."""
_SIZE = 400
"""Ops that a fused body may have."""
_MOST_PARTNERS = 32
"""Loops over the same range that are tried for one loop."""
_HARMLESS = int(Effect.TRAP | Effect.CONTROL | Effect.READ_BOUND)
_ORDERED, _LEAVE = int(Effect.ORDERED), int(Effect.LEAVE)


@record(frozen=True)
class LoopFusion(FunctionPass):
    """Fuses loops, of all functions or of the one that is named."""

    name = "loop-fusion"

    before_reverse_mode: bool = False
    reassociate: bool = False

    def changes_function(self, function: func.FuncOp) -> bool:
        return run_on(function, self.before_reverse_mode, self.reassociate)


def run_on(op: Operation, before_reverse_mode: bool, reassociate: bool) -> bool:
    """Fuses loops in every function at or below `op`; whether there were any."""
    fusion = Fusion(before_reverse_mode, reassociate)
    for function in functions(op):
        for block in function.body.blocks:
            fusion.visit(block)
    return fusion.changed


@record
class _Summary:
    """What an op between two loops needs and does, regions included. `reassociate`: as that of the pass."""

    reassociate: bool
    used: set[SSAValue] = field(default_factory=set[SSAValue])
    read: set[Root] = field(default_factory=set[Root])
    written: set[Root] = field(default_factory=set[Root])
    adds_to_target: bool = False
    is_fixed: bool = False  # nothing may pass it
    may_leave: bool = False

    def visit(self, op: Operation) -> None:
        self.used.update(operand_tuple(op))
        bits = EFFECT_BITS.get(type(op), ANYTHING_BITS)
        if not bits & ~_HARMLESS and not op.regions:
            return
        if type(op) is ad.TargetAddOp:
            self.adds_to_target = True
        elif isinstance(op, rt.KernelOp):
            kernel = KERNELS.get(op.function.data)
            if kernel is None or kernel.effects:
                self.is_fixed = self.is_fixed or op.function.data not in PULLBACKS
            self.may_leave = self.may_leave or op.throws is not None
        else:
            self.is_fixed = self.is_fixed or bool(bits & _ORDERED) or isinstance(op, rt.MarkOp)
            if bits & _LEAVE and not rt.HarmlessAttr.marks(op):
                self.may_leave = True
        self.written |= changed_roots(op) if self.reassociate else written_roots(op)
        for operand in operand_tuple(op):
            if type(type_ := operand.type) is rt.BufferType:
                self.read.add(UNKNOWN if isinstance(type_.element, rt.BufferType) else root(operand))
        for block in blocks_of(op):
            for inner in ops_of(block):
                self.visit(inner)

    def add(self, other: _Summary) -> None:
        self.read |= other.read
        self.written |= other.written
        self.adds_to_target = self.adds_to_target or other.adds_to_target


def _conflict(a: _Summary, b: _Summary) -> bool:
    """Whether the memory that one writes is touched by the other."""
    return overlap(a.written, b.written) or overlap(a.written, b.read) or overlap(b.written, a.read)


class CountedLoop:
    """A loop and what is known of it."""

    def __init__(self, op: scf.ForOp, reassociate: bool = False, accesses: LoopAccesses | None = None) -> None:
        self.op = op
        self.accesses = LoopAccesses(op) if accesses is None else accesses
        self.summary = _Summary(reassociate)
        self.is_serial = any(is_serial(op.body.block, k) for k in range(len(op.results)))
        if self.accesses.is_known:
            self.summary.used = {*op.operands, *self.accesses.used}
            self.summary.read = {access.root for access in self.accesses.accesses}
            self.summary.written = {access.root for access in self.accesses.accesses if access.kind is not Kind.READ}
            self.summary.adds_to_target = self.accesses.adds_to_target
        else:
            self.summary.visit(op)

    @property
    def is_candidate(self) -> bool:
        return self.accesses.is_known and not self.summary.is_fixed

    def only_adds_to_target(self) -> bool:
        """Whether reverse mode can put the reverse into the body: no sums, nothing written but memory of its own."""
        return (
            self.accesses.adds_to_target
            and all(result.type != f64 and not isinstance(result.type, rt.BufferType) for result in self.op.results)
            and not self.written_outside
        )

    @cached_property
    def written_outside(self) -> set[Root]:
        """Roots of the memory that it writes, other than what iterations take for themselves."""
        written = {access.root for access in self.accesses.accesses if access.kind is not Kind.READ}
        return {memory for memory in written if not self.is_own(memory)}

    def is_own(self, buffer: Root) -> bool:
        """Whether each iteration takes the memory for itself."""
        return isinstance(buffer, SSAValue) and is_inside(buffer, self.op)

    def only_checks(self) -> bool:
        """Whether it neither adds to the target nor writes nor sums."""
        return (
            not self.accesses.adds_to_target
            and all(result.type != f64 for result in self.op.results)
            and not any(access.kind != Kind.READ for access in self.accesses.accesses)
        )


def _range(op: scf.ForOp) -> tuple[object, ...]:
    """Equal for loops over the same range."""
    lower, upper, step, *_ = operand_tuple(op)
    if constant_integer(lower) == 0:
        upper = not_clamped(upper)
    return tuple(v if (known := constant_integer(v)) is None else known for v in (lower, upper, step))


@record
class _Late:
    """Ops between two loops that go behind the fused one. `results`: theirs and the first loop's."""

    results: set[SSAValue]
    ops: list[Operation] = field(default_factory=list[Operation])
    summary: _Summary = field(default_factory=lambda: _Summary(True))


class Fusion:
    """Walks over a function and fuses its loops."""

    def __init__(self, before_reverse_mode: bool, reassociate: bool) -> None:
        self.before_reverse_mode = before_reverse_mode
        self.reassociate = reassociate
        self.changed = False
        self._ranges: dict[Operation, tuple[object, ...]] = {}
        self._loops: dict[Operation, CountedLoop] = {}
        self._summaries: dict[Operation, _Summary] = {}

    def visit(self, block: Block) -> None:
        while self._fuse_in(block, absorb=False) or (self.before_reverse_mode and self._fuse_in(block, absorb=True)):
            self.changed = True
        for op in ops_of(block):
            for inner in blocks_of(op):
                self.visit(inner)

    def _fuse_in(self, block: Block, *, absorb: bool) -> bool:
        """One walk over `block`; with `absorb`, loops go into the loop that alone reads their results."""
        self._ranges.clear()  # bounds may be variables of a loop that has become one with another
        left = Counter(self._range(op) for op in ops_of(block) if type(op) is scf.ForOp)
        changed = False
        op = block.first_op
        while op is not None:
            fused = None
            if type(op) is scf.ForOp:
                bounds = self._range(op)
                left[bounds] -= 1
                if left[bounds]:
                    fused = self._fuse_with_next(op, bounds, min(left[bounds], _MOST_PARTNERS), absorb)
            changed = changed or fused is not None
            op = fused if fused is not None else op.next_op
        return changed

    def _range(self, op: scf.ForOp) -> tuple[object, ...]:
        found = self._ranges.get(op)
        if found is None:
            found = self._ranges[op] = _range(op)
        return found

    def _loop(self, op: scf.ForOp) -> CountedLoop:
        found = self._loops.get(op)
        if found is None:
            found = self._loops[op] = CountedLoop(op, self.reassociate)
        return found

    def _summary(self, op: Operation) -> _Summary:
        if type(op) is scf.ForOp:
            return self._loop(op).summary
        found = self._summaries.get(op)
        if found is None:
            found = self._summaries[op] = _Summary(self.reassociate)
            found.visit(op)
        return found

    def _fuse_with_next(self, op: scf.ForOp, bounds: object, partners: int, absorb: bool) -> scf.ForOp | None:
        """Looks behind `op` for a partner among as many loops over the same range; the fused loop."""
        first = self._loop(op)
        if not first.is_candidate:
            return None
        late = _Late(set(op.results))
        other = op.next_op
        for second in self._wanted(first, bounds, partners, absorb):
            while other is not None and other is not second.op:
                if not self._pass_by(other, first, late):
                    return None
                other = other.next_op
            if self._is_legal(first, second, late):
                return self.fuse(op, second.op, late.ops)
        return None

    def _wanted(self, first: CountedLoop, bounds: object, partners: int, absorb: bool) -> Iterator[CountedLoop]:
        """Of as many loops over the same range those that had better be one with `first`, in order."""
        other = following_op(first.op)
        for _ in range(_REACH):
            if other is None or not partners:
                return
            if type(other) is scf.ForOp and self._range(other) == bounds:
                partners -= 1
                if self.is_wanted(first, second := self._loop(other), absorb):
                    yield second
            other = following_op(other)

    # ------------------------------------------------------------ whether

    def _pass_by(self, op: Operation, first: CountedLoop, late: _Late) -> bool:
        """Finds a place for an op before or behind the fused loop; whether there is one."""
        if not EFFECT_BITS.get(type(op), ANYTHING_BITS) & ~_HARMLESS and not op.regions:
            if not late.results.isdisjoint(operand_tuple(op)):
                late.ops.append(op)
                late.results.update(op.results)
            return True
        summary = self._summary(op)
        if summary.is_fixed:
            return False
        follows = not summary.used.isdisjoint(late.results)
        if follows or self._ordered(first.summary, summary) or self._ordered(late.summary, summary):
            if summary.may_leave:
                return False
            late.ops.append(op)
            late.results.update(op.results)
            late.summary.add(summary)
        return True

    def _ordered(self, a: _Summary, b: _Summary) -> bool:
        return _conflict(a, b) or (a.adds_to_target and b.adds_to_target and not self.reassociate)

    def is_wanted(self, first: CountedLoop, second: CountedLoop, absorb: bool) -> bool:
        """Whether two loops had better be one; `absorb`: since the second alone reads what the first writes."""
        if not self.is_possible(first, second):
            return False
        if first.accesses.has_regions != second.accesses.has_regions:
            # At levels 3 and 4 arms that only compute become selects where the loop is widened.
            chooses = absorb and self.reassociate and not first.accesses.has_regions
            if not chooses or not _only_chooses(second.op.body.block):
                return False
        if self.reassociate and not absorb and _loses_vectors(first, second):
            return False
        if not self.before_reverse_mode or first.only_checks() or second.only_checks():
            return not absorb
        alike = first.only_adds_to_target() == second.only_adds_to_target()
        if absorb:
            return not alike and second.only_adds_to_target() and _dissolves(first, second)
        return alike

    def is_possible(self, first: CountedLoop, second: CountedLoop) -> bool:
        """Whether two loops are such as may become one, which then is not too large."""
        if first.accesses.size + second.accesses.size > _SIZE or first.op.attributes != second.op.attributes:
            return False
        if not second.is_candidate:
            return False
        return first.is_serial == second.is_serial or not (second if first.is_serial else first).accesses.has_math

    def _is_legal(self, first: CountedLoop, second: CountedLoop, late: _Late) -> bool:
        if first.accesses.adds_to_target and second.accesses.adds_to_target and not self.reassociate:
            return False
        if not second.accesses.used.isdisjoint(late.results) or self._ordered(late.summary, second.summary):
            return False
        chained = self._chained(first.op, second.op)
        if any(start in late.results and start not in chained for start in second.op.operands):
            return False
        return self.keeps_order(first, second)

    def keeps_order(self, first: CountedLoop, second: CountedLoop) -> bool:
        """Whether no element is touched in another order."""
        # Reverse mode takes iterations to be independent of each other but for carried values and variables.
        same = self.before_reverse_mode
        return all(meet_in_order(a, b, same) for a in first.accesses.accesses for b in second.accesses.accesses)

    def _chained(self, first: scf.ForOp, second: scf.ForOp) -> dict[SSAValue, int]:
        """The sums that both loops add to: fused, the loop adds their terms in another order."""
        return dict(_chained_sums(first, second)) if self.reassociate else {}

    # ------------------------------------------------------------ doing it

    def fuse(self, first: scf.ForOp, second: scf.ForOp, late: list[Operation]) -> scf.ForOp:
        """One loop instead of two, with `late` behind it."""
        outer, begin = second.parent, second.body.block.first_op
        assert outer is not None and begin is not None
        known = self._loop(first).accesses
        self._forget_users((first, second))
        chained = self._chained(first, second)
        fused = _merge(first, second, chained)
        if begin.parent is fused.body.block:
            self._loops[fused] = CountedLoop(fused, self.reassociate, known.extended(fused, begin))
        if self.before_reverse_mode and self.reassociate and self._access_once(fused):
            del self._loops[fused]
        outer.insert_op_before(fused, second)
        count = len(first.results)
        n = count
        for k, result in enumerate(second.results):
            position = chained.get(second.iter_args[k])
            if position is None:
                replace_uses(result, fused.results[n])
                n += 1
            else:
                replace_uses(result, fused.results[position])
        for result, by in zip(first.results, fused.results[:count], strict=True):
            replace_uses(result, by)
        discard(first)
        discard(second)
        behind: Operation = fused
        for op in late:
            op.detach()
            outer.insert_op_after(op, behind)
            behind = op
        return fused

    def _access_once(self, loop: scf.ForOp) -> bool:
        """Lets iterations read what they have stored without loading it, and set and add to an element once; whether
        there was such an element."""
        body = loop.body.block
        kinds = {access.kind for access in self._loop(loop).accesses.accesses}
        is_less = Kind.WRITE in kinds and forward_elements(body)
        return (Kind.ADD in kinds and add_elements_once(body)) or is_less

    def _forget_users(self, loops: tuple[scf.ForOp, ...]) -> None:
        """What is known of ops that use results of the loops is no longer true when these are replaced, nor of them."""
        for loop in loops:
            self._loops.pop(loop, None)
            for result in loop.results:
                for use in result.uses:
                    user: Operation | None = use.operation
                    while user is not None:
                        self._ranges.pop(user, None)
                        self._loops.pop(user, None)
                        self._summaries.pop(user, None)
                        user = user.parent_op()


def _merge(first: scf.ForOp, second: scf.ForOp, chained: dict[SSAValue, int]) -> scf.ForOp:
    """A loop that does both, not yet in a block; results: of the first, then of the second without chained sums.

    Its body is that of the first, behind which the ops of the second are put.
    """
    body, other = first.body.block, second.body.block
    first.body.detach_block(body)
    end = terminator(body)
    yielded = list(end.operands)
    discard(end)
    replace_uses(other.args[0], body.args[0])
    own: list[int] = []
    for k, start in enumerate(second.iter_args):
        argument = other.args[k + 1]
        if start in chained:
            replace_uses(argument, yielded[chained[start]])
        else:
            own.append(k)
            replace_uses(argument, body.insert_arg(argument.type, len(body.args)))
    passed = _move_ops(other, body)
    for k, start in enumerate(second.iter_args):
        if start in chained:
            yielded[chained[start]] = passed[k]
    yielded += [passed[k] for k in own]
    body.add_op(scf.YieldOp.create(operands=yielded))
    return scf.ForOp.create(
        operands=[*first.operands, *(second.iter_args[k] for k in own)],
        result_types=[argument.type for argument in body.args][1:],
        regions=[Region(body)],
        attributes=second.attributes,
        location=second.location,
    )


def _move_ops(source: Block, destination: Block) -> list[SSAValue]:
    """Moves all but the terminator; returns its operands."""
    end = terminator(source)
    operands = list(end.operands)
    discard(end)
    op = source.first_op
    while op is not None:
        following = op.next_op
        op.detach()
        destination.add_op(op)
        op = following
    return operands


def _chained_sums(first: scf.ForOp, second: scf.ForOp) -> list[tuple[SSAValue, int]]:
    """Sums that the second loop goes on with: the first's result, and its position."""
    found: list[tuple[SSAValue, int]] = []
    for k, start in enumerate(second.iter_args):
        if start.owner is first and sum(1 for _ in start.uses) == 1:
            position = first.results.index(start)
            if is_sum(first.body.block, position) and is_sum(second.body.block, k):
                found.append((start, position))
    return found


def is_serial(body: Block, position: int) -> bool:
    """Whether iterations wait for each other: for a carried real other than a sum."""
    argument, end = body.args[position + 1], body.last_op
    assert end is not None
    return argument.type == f64 and end.operands[position] is not argument and not is_sum(body, position)


def is_sum(body: Block, position: int) -> bool:
    """Whether the carried value is only added to, by additions that may be re-associated."""
    end = terminator(body)
    value: SSAValue = body.args[position + 1]
    if value.type != f64:
        return False
    while value is not end.operands[position] or value is body.args[position + 1]:
        uses = list(value.uses)
        if len(uses) != 1 or not isinstance(add := uses[0].operation, arith.AddfOp) or add.parent is not body:
            return False
        if FastMathFlag.REASSOC not in add.fastmath.data:
            return False
        value = add.result
    return all(use.operation is end for use in value.uses) and sum(1 for _ in value.uses) == 1


_IN_ARMS = (*PURE, *DIVISIONS, rt.LoadOp, ad.TargetAddOp, scf.YieldOp)


def _only_chooses(body: Block) -> bool:
    """Whether branches in a loop do nothing but compute, read and add to the target, so that it is widened."""
    return all(_is_widened(op, in_arm=False) for op in body.ops)


def _is_widened(op: Operation, *, in_arm: bool) -> bool:
    if isinstance(op, rt.MathOp):
        return op.function.data in WIDENED or not is_costly_function(op)
    if isinstance(op, scf.IfOp):
        return all(_is_widened(inner, in_arm=True) for arm in op.regions for block in arm.blocks for inner in block.ops)
    return not op.regions and (not in_arm or isinstance(op, _IN_ARMS))


def _loses_vectors(first: CountedLoop, second: CountedLoop) -> bool:
    """Whether just one of two loops calls functions one by one, where neither reads what the other writes: with these
    the functions of the other would not be computed for several iterations at once.
    """
    if not (first.accesses.has_math and second.accesses.has_math) or _conflict(first.summary, second.summary):
        return False
    return WIDENED.issuperset(first.accesses.functions) != WIDENED.issuperset(second.accesses.functions)


def _dissolves(first: CountedLoop, second: CountedLoop) -> bool:
    """Whether all that `first` computes goes to `second`, element by element, by memory that nothing else reads."""
    if first.accesses.adds_to_target or any(result.type == f64 for result in first.op.results):
        return False
    writes = [a for a in first.accesses.accesses if a.kind != Kind.READ and not first.is_own(a.root)]
    return bool(writes) and all(_is_passed_on(write, first, second) for write in writes)


def _is_passed_on(write: Access, first: CountedLoop, second: CountedLoop) -> bool:
    buffer = write.root
    if not isinstance(write.op, rt.StoreOp) or write.op.parent is not first.op.body.block:
        return False
    if isinstance(buffer, str) or write.op.buffer is not buffer or not isinstance(buffer.owner, rt.AllocOp):
        return False
    index = write.op.index
    for use in buffer.uses:
        user = use.operation
        if user is write.op:
            continue
        if not isinstance(user, rt.LoadOp) or user.index.type != index.type:
            return False
        if user.parent is first.op.body.block and user.index is index:
            # a load of what was stored before it
            if not is_before(write.op, user):
                return False
        elif user.parent is not second.op.body.block:
            return False
    elements = [a.element for a in second.accesses.accesses if a.root is buffer]
    return all(element is not None and element == write.element for element in elements)
