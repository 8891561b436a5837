"""The two sweeps of one function: the forward sweep is the function itself, the reverse sweep is written behind it.

The target's adjoint is 1 and known before the forward sweep begins; so a loop or branch whose only active effect is to
add to the target gets its reverse into the same body (*fused*), and nothing of it is kept. Others are replayed: a loop
in the reverse sweep, with what it needs kept (see `frames`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NoReturn

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import Float64Type, FunctionType, f64, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.places import in_reverse
from ulam.dialects.scalar_ops import constant_integer, known_constant
from ulam.dialects.walk import operand_tuple, ops_of, ops_within
from ulam.passes.analysis.free_values import free_values
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.autodiff.activity import Activity, is_real
from ulam.passes.autodiff.calls import Derivatives
from ulam.passes.autodiff.frames import Keeper, Memory, ReverseFrame, pop_record
from ulam.passes.autodiff.rules import REVERSE
from ulam.passes.autodiff.shadows import Shadows
from ulam.passes.autodiff.speculated_ops import Bounds
from ulam.passes.builder import BUFFER_REAL, WRAPS, Builder
from ulam.passes.errors import NotSupportedError
from ulam.passes.loops.effects import PURE, kernel_buffers, written_buffers
from ulam.passes.rewriting import rebuild

_KEPT_APART = (rt.ReleaseOp, ad.ProfileBeginOp, ad.ProfileEndOp)
_READERS = (rt.LoadOp, rt.CopyOp, rt.KernelOp, func.CallOp)


class ReverseMode:
    """The differentiation of one function."""

    def __init__(self, function: func.FuncOp, activity: Activity, derivatives: Derivatives) -> None:
        self.function = function
        self.entry = function.body.block
        self.builder = Builder(self.entry)
        self._note_constants()
        self.activity = activity
        self.memory = Memory(self.activity)
        self.keeper = Keeper(self.builder, self.memory)
        self.shadows = Shadows(self.activity, derivatives)
        self._slots: dict[scf.WhileOp, SSAValue] = {}  # where the newest record of a loop is
        self.conditions: dict[SSAValue, SSAValue] = {}  # of the regions of profiles: forward → reverse
        self._adding: set[Operation] = set()  # ops with an active addition to the target inside
        self.contributions: dict[Operation, list[tuple[SSAValue, SSAValue]]] = {}  # fused op → (scalar, its adjoint)
        self.speculated: dict[Operation, Bounds] = {}  # op → loops that alone use it
        self._idle: dict[tuple[Bounds, Block], SSAValue] = {}

    def gradient(self, independent: ad.IndependentOp) -> None:
        """The function, which adds to a target, returns the gradient, too: through a further argument."""
        gradient = self.entry.insert_arg(BUFFER_REAL, 1)
        gradient.name_hint = "gradient"
        theta, count = independent.buffer, independent.count
        independent.detach()
        independent.erase()
        end = terminator(self.entry)
        end.detach()
        self.sweep()
        if (shadow := self.shadows.of.get(theta)) is not None:
            self.builder.copy(gradient, shadow, count, initial=True)
        else:
            self.builder.fill(gradient, self.builder.f64(0.0), count, initial=True)
        self.entry.add_op(end)
        self.builder.finish()
        type_ = FunctionType.from_lists([a.type for a in self.entry.args], [o.type for o in end.operands])
        self.function.properties["function_type"] = type_

    def sweep(self) -> None:
        """The reverse sweep, at the end of the function."""
        self.shadows.make(self.entry)
        self.fuse_all(self.entry)
        self.builder.block = self.entry
        self.reverse_block(self.entry, ReverseFrame(self.entry, self.entry, None))

    def _note_constants(self) -> None:
        for op in self.entry.ops:
            if isinstance(op, arith.ConstantOp) and (known := known_constant(op.result)) is not None:
                self.builder.known[op.result] = known

    # ------------------------------------------------------------ for the rules

    def is_active(self, value: SSAValue) -> bool:
        return self.activity.is_active(value)

    def need(self, value: SSAValue, frame: ReverseFrame) -> SSAValue:
        """A forward value, for reverse code."""
        return self.keeper.need(value, frame)

    def take(self, frame: ReverseFrame, value: SSAValue) -> SSAValue | None:
        """The adjoint of a value of the frame's own block, complete now; None if it is 0."""
        return frame.adjoints.pop(value, None)

    def add(self, frame: ReverseFrame, value: SSAValue, contribution: SSAValue | None) -> None:
        """Adds to the adjoint of a scalar."""
        if contribution is None or not self.is_active(value):
            return
        before = frame.adjoints.get(value)
        if before is not None:
            contribution = self.builder.addf(before, contribution, reassociate=True)
        frame.adjoints[value] = contribution

    def is_idle(self, op: Operation, frame: ReverseFrame) -> SSAValue:
        """Whether none of the loops has an iteration that alone use what an op computes."""
        bounds = self.speculated[op]
        place = (bounds, self.builder.block)
        if (found := self._idle.get(place)) is None:
            nests = [reduce(self.builder.either, [self._never_runs(loop, frame) for loop in nest]) for nest in bounds]
            found = self._idle[place] = reduce(self.builder.both, nests)
        return found

    def _never_runs(self, loop: tuple[SSAValue, ...], frame: ReverseFrame) -> SSAValue:
        first, *limit = (self.need(value, frame) for value in loop)
        return self.builder.cmpi("sge", first, *limit) if limit else self.builder.invert(first)

    def shadow(self, buffer: SSAValue, frame: ReverseFrame) -> SSAValue:
        """The shadow of a forward buffer, for reverse code."""
        found = self.shadows.of.get(buffer)
        if found is None:
            self.unsupported("a container that is data in one case and depends on parameters in another", None)
        return self.need(found, frame)

    def accumulate(self, frame: ReverseFrame, buffer: SSAValue, index: SSAValue, value: SSAValue) -> None:
        """Adds to the adjoint of an element."""
        self.builder.insert(ad.AccumulateOp(self.shadow(buffer, frame), self.need(index, frame), value))

    def unsupported(self, what: str, op: Operation | None) -> NoReturn:
        raise NotSupportedError(f"{what} cannot be differentiated yet", op.location if op is not None else None)

    # ------------------------------------------------------------ fusing

    def fuse_all(self, block: Block) -> None:
        """Puts the reverse of every op that allows it into its own regions."""
        for op in ops_within(block):
            if type(op) is ad.TargetAddOp and self.is_active(op.value):
                parent = op.parent_op()
                while parent is not None and parent not in self._adding:
                    self._adding.add(parent)
                    parent = parent.parent_op()
        self._fuse_in(block)

    def _fuse_in(self, block: Block) -> None:
        op, regions = block.first_op, 0
        while op is not None:
            following = op.next_op
            regions += isinstance(op, ad.ProfileBeginOp) - isinstance(op, ad.ProfileEndOp)
            if op in self._adding:
                if not regions and self._can_fuse(op):
                    self._fuse(op)
                elif not ad.ProfileAttr.marks(op):  # both halves of a region are kept apart
                    for region in op.regions:
                        for inner in region.blocks:
                            self._fuse_in(inner)
            op = following

    def _can_fuse(self, op: Operation) -> bool:
        """Whether all active effects of a region op are additions to the target, and memory of its own."""
        if any(self._is_differentiable(v) for v in _carried_values(op)):
            return False
        if ad.ProfileAttr.marks(op):
            return False
        ops = list(ops_within(op))
        own: set[Operation] = {inner for inner in ops if type(inner) is rt.AllocOp}
        for inner in ops:
            cls = type(inner)
            if cls in PURE:
                continue
            if cls in _KEPT_APART:
                return False
            for buffer in written_buffers(inner):
                if self.is_active(buffer) and not self._is_own(buffer, own):
                    return False
            if cls in _READERS and not self._reads_stable(inner, op, own):
                return False
        return True

    def _is_differentiable(self, value: SSAValue) -> bool:
        return (value.type == f64 or isinstance(value.type, rt.BufferType)) and self.is_active(value)

    def _is_own(self, buffer: SSAValue, own: set[Operation]) -> bool:
        roots = self.activity.roots.get(self.activity.class_of(buffer))
        return bool(roots) and all(root in own for root in roots)

    def _reads_stable(self, inner: Operation, op: Operation, own: set[Operation]) -> bool:
        if isinstance(inner, rt.LoadOp):
            buffers: Sequence[SSAValue] = [inner.buffer]
        elif isinstance(inner, rt.CopyOp):
            buffers = [inner.source]
        elif isinstance(inner, func.CallOp):
            buffers = [o for o in inner.operands if is_real(o) and o.type != f64]
        else:
            assert isinstance(inner, rt.KernelOp)
            buffers = kernel_buffers(inner)[0]
        return all(
            not self.is_active(b) or self._is_own(b, own) or self.memory.is_stable(b, op) for b in buffers)  # fmt: skip

    def _outer_scalars(self, op: Operation) -> list[SSAValue]:
        """Active scalars from outside that a region op uses."""
        free = {v: None for v in free_values(*op.regions) if type(v.type) is Float64Type and self.is_active(v)}
        if not free:
            return []
        return list({**{v: None for v in operand_tuple(op) if v in free}, **free})

    def _fuse(self, op: Operation) -> None:
        outer = self._outer_scalars(op)
        zero = self.builder.f64(0.0)
        if isinstance(op, scf.ForOp):
            block = op.body.block
            arguments = [block.insert_arg(f64, len(block.args)) for _ in outer]
            sums = self._fuse_block(block, outer, arguments)
            self._extend(block, sums)
            new = rebuild(
                op, [*op.operands, *(zero for _ in outer)], [*(r.type for r in op.results), *(f64 for _ in outer)]
            )
        elif isinstance(op, scf.IfOp):
            for region in op.regions:
                if not region.blocks:
                    region.add_block(Block([scf.YieldOp.create()]))
                sums = self._fuse_block(region.block, outer, [zero for _ in outer])
                self._extend(region.block, sums)
            new = rebuild(op, list(op.operands), [*(r.type for r in op.results), *(f64 for _ in outer)])
        elif isinstance(op, scf.WhileOp):
            before, after = op.before_region.block, op.after_region.block
            passed = [before.insert_arg(f64, len(before.args)) for _ in outer]
            self._extend(before, passed)
            arguments = [after.insert_arg(f64, len(after.args)) for _ in outer]
            sums = self._fuse_block(after, outer, arguments)
            self._extend(after, sums)
            new = rebuild(
                op, [*op.operands, *(zero for _ in outer)], [*(r.type for r in op.results), *(f64 for _ in outer)]
            )
        else:
            self.unsupported(f"'{op.name}'", op)
        count = len(new.results) - len(outer)
        for value, result in zip(outer, new.results[count:], strict=True):
            self.activity.declare_like(result, value)
        self.contributions[new] = list(zip(outer, new.results[count:], strict=True))

    def _fuse_block(self, block: Block, outer: Sequence[SSAValue], start: Sequence[SSAValue]) -> list[SSAValue]:
        """Reverse code at the end of a forward block; returns the adjoints of outer scalars."""
        end = terminator(block)
        end.detach()
        self._fuse_in(block)
        frame = ReverseFrame(block, block, None)
        frame.adjoints.update(zip(outer, start, strict=True))
        with self.builder.inside(block):
            self.reverse_block(block, frame)
        block.add_op(end)
        return [frame.adjoints[v] for v in outer]

    def _extend(self, block: Block, values: Sequence[SSAValue]) -> None:
        end = terminator(block)
        end.operands = [*end.operands, *values]

    # ------------------------------------------------------------ the reverse sweep

    def reverse_block(self, block: Block, frame: ReverseFrame) -> None:
        """Writes the reverse of a block's ops, last first, at the builder's position."""
        ops = ops_of(block)
        place = None
        for op in reversed(ops):
            if op.location is not place:
                place = op.location
                self.builder.location = in_reverse(place)
            if (contributions := self.contributions.get(op)) is not None:
                for value, adjoint in contributions:
                    self.add(frame, value, self.need(adjoint, frame))
            elif op.regions:
                self._reverse_region_op(op, frame)
            elif (rule := REVERSE.get(type(op))) is not None:
                rule(self, frame, op)

    def _reverse_region_op(self, op: Operation, frame: ReverseFrame) -> None:
        if not self._has_active_effect(op):
            return
        if isinstance(op, scf.ForOp):
            self._reverse_for(op, frame)
        elif isinstance(op, scf.IfOp):
            self._reverse_if(op, frame)
        elif isinstance(op, scf.WhileOp):
            self._reverse_while(op, frame)
        else:
            self.unsupported(f"'{op.name}'", op)

    def _has_active_effect(self, op: Operation) -> bool:
        if any(self._is_differentiable(v) for v in _carried_values(op)):
            return True
        for inner in ops_within(op):
            if inner.regions:
                continue
            if type(inner) is ad.TargetAddOp:
                if self.is_active(inner.value):
                    return True
            elif any(self.is_active(b) for b in written_buffers(inner)) or inner in self.shadows.calls:
                return True
        return False

    def _active_scalars(self, *groups: Sequence[SSAValue]) -> list[int]:
        """Positions at which one of the groups (results, carried arguments) has an active scalar."""
        return [
            n
            for n, values in enumerate(zip(*groups, strict=True))
            if values[0].type == f64 and any(self.is_active(v) for v in values)
        ]

    def _reverse_for(self, op: scf.ForOp, frame: ReverseFrame) -> None:
        builder = self.builder
        body = op.body.block
        carried = self._active_scalars(op.results, body.args[1:])
        outer = self._outer_scalars(op)
        zero = builder.f64(0.0)
        adjoints = [self.take(frame, op.results[n]) or zero for n in carried]
        trip, forward_position = self._trip_count(op)
        lower = self.need(op.lb, frame)
        count = self.need(trip, frame)
        if op in self.speculated:
            count = builder.select(self.is_idle(op, frame), builder.i64(0), count)
        backwards = self._needs_reverse_order(op, carried)
        block = Block(arg_types=[i64, *(f64 for _ in carried), *(f64 for _ in outer)])
        inner = ReverseFrame(
            body, block, frame, replay=True, loop=op, forward_trip=trip, forward_position=forward_position
        )
        with builder.inside(block):
            step = block.args[0]
            position = builder.sub(builder.sub(count, builder.i64(1)), step) if backwards else step
            inner.position = position
            inner.values[body.args[0]] = builder.add(lower, position)
            inner.adjoints.update(zip(outer, block.args[1 + len(carried) :], strict=True))
            yielded = terminator(body).operands
            for n, argument in zip(carried, block.args[1:], strict=False):
                self.add(inner, yielded[n], argument)
            self.reverse_block(body, inner)
            ends = [self.take(inner, body.args[1 + n]) or zero for n in carried]
            ends += [inner.adjoints[v] for v in outer]
            builder.emit(scf.YieldOp, ends)
        starts = [*adjoints, *(frame.adjoints.get(v, zero) for v in outer)]
        loop = builder.emit(
            scf.ForOp,
            (builder.i64(0), count, builder.i64(1), *starts),
            [f64] * len(starts),
            regions=(Region(block),),
            attributes=_kept(op),
        )
        for v, result in zip(outer, loop.results[len(carried) :], strict=True):
            frame.adjoints[v] = result
        for n, result in zip(carried, loop.results, strict=False):
            self.add(frame, op.iter_args[n], result)

    def _trip_count(self, op: scf.ForOp) -> tuple[SSAValue, SSAValue]:
        """The number of iterations, ahead of all loops that do not change it, and the iteration's number from 0."""
        body, ahead = op.body.block, _in_front_of(op, op.lb, op.ub)
        assert ahead.parent is not None
        first, limit = constant_integer(op.lb), constant_integer(op.ub)
        if first == 0:
            span, position = op.ub, body.args[0]
        else:
            subtract = arith.SubiOp.create(operands=(op.ub, op.lb), result_types=(i64,), properties=WRAPS)
            ahead.parent.insert_op_before(subtract, ahead)
            span = subtract.result
            relative = arith.SubiOp.create(operands=(body.args[0], op.lb), result_types=(i64,), properties=WRAPS)
            assert body.first_op is not None
            body.insert_op_before(relative, body.first_op)
            position = relative.result
        if first is not None and limit is not None:  # LLVM is told of loops of known length
            return self.builder.i64(max(limit - first, 0)), position
        clamp = arith.MaxSIOp.create(operands=(span, self.builder.i64(0)), result_types=(i64,))
        ahead.parent.insert_op_before(clamp, ahead)
        return clamp.result, position

    def _needs_reverse_order(self, op: scf.ForOp, carried: Sequence[int]) -> bool:
        """Whether iterations depend on each other: other than by sums, or through a variable's memory."""
        body = op.body.block
        end = terminator(body)
        for n in carried:
            argument = body.args[1 + n]
            uses = list(argument.uses)
            yielded = end.operands[n]
            is_sum = (
                len(uses) == 1
                and isinstance(uses[0].operation, arith.AddfOp)
                and uses[0].operation.result is yielded
                and yielded.has_one_use()
                and uses[0].operation.parent is body
            )
            if not is_sum:
                return True
        for inner in ops_within(op):
            for buffer in written_buffers(inner):
                if not self.is_active(buffer):
                    continue
                roots = self.activity.roots.get(self.activity.class_of(buffer), [])
                if any(isinstance(root, rt.AllocOp) and root.variable is not None for root in roots):
                    return True
        return any(isinstance(r.type, rt.BufferType) and self.is_active(r) for r in op.results)

    def _reverse_if(self, op: scf.IfOp, frame: ReverseFrame) -> None:
        builder = self.builder
        active = self._active_scalars(op.results)
        outer = self._outer_scalars(op)
        zero = builder.f64(0.0)
        adjoints = [self.take(frame, op.results[n]) or zero for n in active]
        condition = self.conditions.get(op.cond) or self.need(op.cond, frame)
        regions: list[Region] = []
        for region in op.regions:
            block = Block()
            with builder.inside(block):
                if region.blocks:
                    inner = ReverseFrame(region.block, block, frame, replay=True)
                    inner.adjoints.update((v, frame.adjoints.get(v, zero)) for v in outer)
                    end = terminator(region.block)
                    for n, g in zip(active, adjoints, strict=True):
                        self.add(inner, end.operands[n], g)
                    self.reverse_block(region.block, inner)
                    builder.emit(scf.YieldOp, [inner.adjoints[v] for v in outer])
                else:
                    builder.emit(scf.YieldOp, [frame.adjoints.get(v, zero) for v in outer])
            regions.append(Region(block))
        profile = ad.ProfileAttr.of(op)
        attributes = None if profile is None else profile.as_attributes()
        branch = builder.emit(scf.IfOp, (condition,), [f64] * len(outer), regions=regions, attributes=attributes)
        for v, result in zip(outer, branch.results, strict=True):
            frame.adjoints[v] = result

    def _reverse_while(self, op: scf.WhileOp, frame: ReverseFrame) -> None:
        """Iterations push records in the forward sweep; the reverse loop pops them."""
        builder = self.builder
        before, after = op.before_region.block, op.after_region.block
        # Carried: the arguments of the condition. What it passes on to the body and to the results may be fewer.
        carried = [n for n, v in enumerate(before.args) if v.type == f64 and self.is_active(v)]
        outer = self._outer_scalars(op)
        zero = builder.f64(0.0)
        passed = list(terminator(before).operands[1:])
        source = {n: before.args.index(v) for n, v in enumerate(passed) if v in before.args}
        if any(n not in source for n in self._active_scalars(op.results, after.args)):
            self.unsupported("a while loop whose condition changes what it carries", op)
        record_type = rt.BufferType(f64)
        top = self._record_slot(op, record_type)
        last = self.need(top, frame)
        at_end = {n: self.take(frame, result) for n, result in enumerate(op.results) if result.type == f64}
        adjoints = [self._sum([at_end[k] for k, m in source.items() if m == n and k in at_end]) for n in carried]
        types = [record_type, *(f64 for _ in carried), *(f64 for _ in outer)]
        head, block = Block(arg_types=types), Block(arg_types=types)
        with builder.inside(head):
            done = builder.insert(rt.IsNullOp(head.args[0])).res
            builder.emit(scf.ConditionOp, (builder.invert(done), *head.args))
        inner = ReverseFrame(after, block, frame, replay=True, loop=op)
        with builder.inside(block):
            inner.adjoints.update(zip(outer, block.args[1 + len(carried) :], strict=True))
            end = terminator(after)
            for n, argument in zip(carried, block.args[1:], strict=False):
                self.add(inner, end.operands[n], argument)
            self.reverse_block(after, inner)
            taken = {n: self.take(inner, argument) for n, argument in enumerate(after.args) if argument.type == f64}
            ends = [self._sum([taken[k] for k, m in source.items() if m == n and k in taken]) for n in carried]
            ends += [inner.adjoints[v] for v in outer]
            below = self._finish_records(op, inner, block.args[0])
            builder.emit(scf.YieldOp, (below, *ends))
        starts = [last, *adjoints, *(frame.adjoints.get(v, zero) for v in outer)]
        loop = builder.emit(scf.WhileOp, starts, types, regions=(Region(head), Region(block)))
        for v, result in zip(outer, loop.results[1 + len(carried) :], strict=True):
            frame.adjoints[v] = result
        for n, result in zip(carried, loop.results[1:], strict=False):
            self.add(frame, op.arguments[n], result)

    def _sum(self, adjoints: Sequence[SSAValue | None]) -> SSAValue:
        total: SSAValue | None = None
        for adjoint in adjoints:
            if adjoint is not None:
                total = adjoint if total is None else self.builder.addf(total, adjoint, reassociate=True)
        return self.builder.f64(0.0) if total is None else total

    def _record_slot(self, op: scf.WhileOp, record_type: rt.BufferType) -> SSAValue:
        """A place that holds the newest record while the forward loop runs; returns its value after the loop."""
        slot = rt.AllocOp(self.builder.i64(1), rt.BufferType(record_type), stack=True)
        self.builder.at_start(slot)
        zero = self.builder.i64(0)
        null = rt.NullOp(record_type)
        clear = rt.StoreOp(null.res, slot.res, zero)
        after_loop = rt.LoadOp(slot.res, zero)
        assert op.parent is not None
        op.parent.insert_ops_before([null, clear], op)
        op.parent.insert_op_after(after_loop, op)
        self._slots[op] = slot.res
        return after_loop.res

    def _finish_records(self, op: scf.WhileOp, inner: ReverseFrame, record: SSAValue) -> SSAValue:
        """Pushes what was asked for at the end of the forward body, pops it at the start of the reverse one."""
        slot = self._slots[op]
        zero = self.builder.i64(0)
        values = [value for value, _ in inner.pushed]
        previous = rt.LoadOp(slot, zero)
        push = ad.PushOp(previous.res, values)
        store = rt.StoreOp(push.res, slot, zero)
        end = terminator(inner.source)
        inner.source.insert_ops_before([previous, push, store], end)
        return pop_record(inner, record)


def _carried_values(op: Operation) -> list[SSAValue]:
    """What a region op hands on: its results, and what a loop carries from iteration to iteration."""
    if isinstance(op, scf.ForOp):
        return [*op.results, *op.body.block.args[1:]]
    if isinstance(op, scf.WhileOp):
        return [*op.results, *op.before_region.block.args, *op.after_region.block.args]
    return list(op.results)


def _in_front_of(op: Operation, *values: SSAValue) -> Operation:
    """The outermost of the loops around an op in front of which values are there; the op itself if there is none."""
    outer = op.parent_op()
    while isinstance(outer, scf.ForOp) and not any(is_inside(value, outer) for value in values):
        op, outer = outer, outer.parent_op()
    return op


def _kept(loop: Operation) -> dict[str, Attribute] | None:
    """What is noted on a loop that is noted on its reverse, too."""
    fact = rt.LoopAttr.of(loop)
    return fact.as_attributes() if fact is not None and fact.kind.data in ("cold", "kinds") else None
