"""Data-only work done once: moves what depends on data alone from `evaluate` to `bind`.

`bind` runs once when data are bound; what `evaluate` still needs of its results goes through further slots of the
bound table. A check that fails in `bind` is kept by the runtime and raised by every evaluation.
Only whole top-level ops move; loops with all they contain.

A `reject` belongs to the prints before it, which stay, and so does what it stands in. With `rejections` they move, too,
as other checks of data do, unless the unit prints or draws: which error comes first another unit tells (`checks`).
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FunctionType, ModuleOp, StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.kernels import KERNELS
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import OpOrder, ancestor_in, is_inside, terminator
from ulam.passes.loops.checks import must_be_precise
from ulam.passes.loops.effects import PURE, viewed, written_buffers
from ulam.passes.loops.filled_buffers import users
from ulam.passes.loops.unit_modules import bind_of, evaluate_of, set_slots, slots_of
from ulam.passes.rewriting import cloned
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_WRITES = (rt.StoreOp, rt.CopyOp, rt.FillOp, ad.AccumulateOp)
_OF_REVERSE = (ad.AccumulateOp, ad.PushOp, ad.KeepOp)
_HAND_ON = frozenset[type]((
    ad.PushOp, ad.KeepOp, rt.StoreOp, scf.ForOp, scf.WhileOp, scf.YieldOp, scf.ConditionOp, arith.SelectOp,
))  # fmt: skip
_FREE = (arith.ConstantOp, rt.BoundOp, rt.ConstantsOp)
_BOUND_VALUES = (rt.BoundOp, rt.ConstantsOp, rt.ViewOp)
_COSTLY = (rt.KernelOp, rt.LayoutOp, rt.SetBoundOp, rt.CheckOp, rt.MathOp, rt.AllocOp, arith.DivfOp, *_WRITES)
_OF_MEMORY = (rt.LoadOp, rt.KernelOp, *_WRITES)
_MOVABLE_RT = frozenset[type]((
    rt.LoadOp, rt.ViewOp, rt.MathOp, rt.CheckOp, rt.AllocOp, rt.StringOp, rt.ConstantsOp, rt.LayoutOp, rt.SetBoundOp,
    rt.BoundOp, *_WRITES,
))  # fmt: skip


@record(frozen=True)
class HoistData(TellingPass):
    """Moves what depends on data alone from `evaluate` to `bind`.

    `rejections`: what may reject, too. `variables`: variables that are filled before anything else reads them, too.
    """

    name = "hoist-data"
    changes_only = ENTRIES

    rejections: bool = False
    variables: bool = False

    def changes(self, module: ModuleOp) -> bool:
        bind = bind_of(module)
        before = None if bind is None else _last_of(bind)
        rejections = self.rejections and not must_be_precise(module)
        evaluate, slots = evaluate_of(module, self.name), slots_of(module)
        set_slots(module, hoist_data(evaluate, slots, rejections=rejections, variables=self.variables))
        bind = bind_of(module)
        return bind is not None and before is not _last_of(bind)


def hoist_data(
    evaluate: func.FuncOp,
    n_slots: int,
    written: Iterable[Operation] | None = None,
    *,
    rejections: bool = False,
    variables: bool = False,
) -> int:
    """Splits `evaluate` of a unit; adds the function `bind`. Returns the number of slots then needed.

    `written`: ops of data that a pass has just written, whose memory nothing else writes: only these are looked at, and
    what they need. `rejections`: what may reject moves, too; `variables`: as of the pass.
    """
    module = evaluate.parent_op()
    assert isinstance(module, ModuleOp)
    block = evaluate.body.block
    moved = None if written is None else _needed_by(written, block)
    moved = _data_only(block, rejections, variables) if moved is None else moved
    bind = _last_function(module)
    end = terminator(bind.body.block)
    end.detach()
    n_slots = _Mover(block, bind.body.block, moved, n_slots).run()
    bind.body.block.add_op(end)
    return n_slots


def _last_function(module: ModuleOp) -> func.FuncOp:
    """The `bind` that an earlier run made, or a new one; behind all other functions."""
    bind = bind_of(module)
    if bind is None:
        bind = func.FuncOp.create(
            properties={"sym_name": StringAttr("bind"), "function_type": FunctionType.from_lists([], [])},
            attributes=rt.EntryAttr().as_attributes(),
            regions=[Region(Block([func.ReturnOp.create()]))],
        )
    else:
        bind.detach()
    module.body.block.add_op(bind)
    return bind


def _last_of(function: func.FuncOp) -> Operation | None:
    """The op ahead of its return."""
    return terminator(function.body.block).prev_op


def _data_only(block: Block, rejections: bool, variables: bool) -> list[Operation]:
    """Top-level ops, in order, that depend on data alone and whose effects only such ops see."""
    candidates: dict[Operation, bool] = {}
    inputs: dict[Operation, list[Operation]] = {}
    writers: dict[SSAValue, list[Operation]] = {}
    is_reached = True
    # What functions of solvers need for their gradients is written in place: there are adjoints before reverse mode.
    has_adjoints = any(type(op) in _OF_REVERSE for op in ops_within(block))
    for op in block.ops:
        makers = _inputs(op, block) if is_reached and _may_move(op, rejections, variables) else None
        candidates[op] = makers is not None
        # What stands behind a check that fails surely may rely on it, such as on a size that fits.
        is_reached = is_reached and not _surely_fails(op)
        inputs[op] = makers or []
        for inner in ops_within(op):
            for buffer in written_buffers(inner):
                writers.setdefault(viewed(buffer), []).append(op)
            if has_adjoints and _hands_on(inner):
                for root in filter(_is_allocated, map(viewed, inner.operands)):
                    writers.setdefault(root, []).append(op)  # under another name it may be written
    candidates.update({op: False for op in block.ops if _is_variable(op) and op.results[0] not in writers})
    order = OpOrder()
    for root, ops in writers.items():
        if not _may_be_written_ahead(root, ops, block, order):
            candidates.update(dict.fromkeys(ops, False))
            if isinstance(root.owner, rt.AllocOp):
                candidates[root.owner] = False
    needing: dict[Operation, list[Operation]] = {}  # an op → those that only move with it
    for op, makers in inputs.items():
        for maker in makers:
            needing.setdefault(maker, []).append(op)
    for root, ops in writers.items():  # a memory block moves only with all its writers
        owner = root.owner
        if isinstance(owner, rt.AllocOp) and owner.parent is block:
            for op in ops:
                needing.setdefault(op, []).append(owner)
    stay = [op for op, may_move in candidates.items() if not may_move]
    while stay:
        for op in needing.get(stay.pop(), ()):
            if candidates[op]:
                candidates[op] = False
                stay.append(op)
    return [op for op in block.ops if candidates[op]]


def _may_be_written_ahead(root: SSAValue, writers: list[Operation], block: Block, order: OpOrder) -> bool:
    """Whether what ops of a block write to memory may be there before the block begins: a variable's value depends on
    when it is read.
    """
    owner = root.owner
    if not isinstance(owner, rt.AllocOp):
        return False
    if owner.parent is not block or owner.variable is None:
        return True
    readers = {top for op in users(owner) if (top := ancestor_in(op, block)) is not None} - set(writers)
    if not all(order.is_before(writers[-1], reader) for reader in readers):
        return False
    return all(isinstance(op, _OF_MEMORY) for op in users(owner))


def _is_variable(op: Operation) -> bool:
    """Whether it is memory of a variable of the program."""
    return isinstance(op, rt.AllocOp) and op.variable is not None


def _hands_on(op: Operation) -> bool:
    """Whether a buffer that `op` uses may have another name behind it: of called functions, in what they return."""
    if type(op) is func.CallOp:
        return any(isinstance(result.type, rt.BufferType) for result in op.results)
    return type(op) in _HAND_ON


def _is_allocated(value: SSAValue) -> bool:
    return type(value.owner) is rt.AllocOp


def _needed_by(written: Iterable[Operation], block: Block) -> list[Operation] | None:
    """These ops and all that they need, in order; None if that is more than values of what is bound, or if a check that
    fails surely, on which they may rely, stands ahead.
    """
    if any(map(_surely_fails, block.ops)):
        return None
    found = set(written)
    work = list(found)
    while work:
        for maker in _inputs(work.pop(), block) or ():
            if maker in found:
                continue
            if type(maker) not in PURE and not isinstance(maker, _BOUND_VALUES):
                return None
            found.add(maker)
            work.append(maker)
    return [op for op in block.ops if op in found]


def _surely_fails(op: Operation) -> bool:
    """Whether nothing behind `op` is executed: a check of a constant that is false, alone or in each iteration.

    A loop may have no iterations, but then a loop behind it that relies on its check has none either.
    """
    if type(op) is scf.ForOp:
        return any(_surely_fails(inner) for inner in op.body.block.ops)
    return type(op) is rt.CheckOp and constant_integer(op.ok) == 0


def _may_move(op: Operation, rejections: bool, variables: bool) -> bool:
    if _is_variable(op) and not variables:
        return False
    for inner in ops_within(op):
        cls = type(inner)
        if cls.name.startswith(("arith.", "scf.")):
            continue
        if not rejections and isinstance(inner, rt.CheckOp) and isinstance(inner.ok.owner, arith.ConstantOp):
            return False
        if isinstance(inner, rt.KernelOp) and (kernel := KERNELS.get(inner.function.data)) and not kernel.effects:
            continue
        if cls not in _MOVABLE_RT:
            return False
    return True


def _inputs(op: Operation, block: Block) -> list[Operation] | None:
    """The ops of the block that make what `op` uses; None if it uses an argument of the block."""
    makers: list[Operation] = []
    for value in free_values_of_op(op):
        owner = value.owner
        if owner is block:
            return None
        if isinstance(owner, Operation) and owner.parent is block:
            makers.append(owner)
    return makers


class _Mover:
    """Moves ops to `bind` and passes on what stays behind needs."""

    def __init__(self, block: Block, bind: Block, moved: list[Operation], n_slots: int) -> None:
        self.block = block
        self.bind = bind
        self.moved = moved
        self.n_slots = n_slots
        self._copies: dict[SSAValue, SSAValue] = {}  # of what both functions need

    def run(self) -> int:
        """The number of slots then needed."""
        # Cheap ops alone are not worth a slot: what does not feed a loop, a check, math or memory stays.
        worth = self._worth(set(self.moved))
        for op in self.moved:
            if op not in worth:
                continue
            if isinstance(op, _FREE):
                copy = cloned(op)
                self.bind.add_op(copy)
                self._copies.update(zip(op.results, copy.results, strict=True))
                continue
            op.detach()
            self.bind.add_op(op)
        self._pass_on()
        return self.n_slots

    def _worth(self, moved: set[Operation]) -> set[Operation]:
        """Ops that cost something, and all that they need."""
        worth: set[Operation] = set()
        work = [op for op in self.moved if op.regions or isinstance(op, _COSTLY)]
        while work:
            op = work.pop()
            if op in worth or op not in moved:
                continue
            worth.add(op)
            for inner in ops_within(op):
                for operand in inner.operands:
                    owner = operand.owner
                    if isinstance(owner, Operation) and owner.parent is self.block:
                        work.append(owner)
        return worth

    def _pass_on(self) -> None:
        """Gives ops that moved the copies, and ops that stayed a slot for each result that they need."""
        for op in ops_within(self.bind):
            for n, operand in enumerate(op.operands):
                if operand in self._copies:
                    op.operands[n] = self._copies[operand]
        for op in list(self.bind.ops):
            for result in op.results:
                if any(self._is_outside(use.operation) for use in result.uses):
                    self._through_slot(result)

    def _is_outside(self, op: Operation) -> bool:
        current: Operation | None = op
        while current is not None and current.parent is not self.bind and current.parent is not self.block:
            current = current.parent_op()
        return current is not None and current.parent is self.block

    def _through_slot(self, value: SSAValue) -> None:
        slot = self.n_slots
        self.n_slots += 1
        value = self._lasting(value)
        owner = value.owner
        assert isinstance(owner, Operation)
        self.bind.insert_op_after(rt.SetBoundOp(slot, value), owner)
        read = rt.BoundOp(slot, value.type)
        assert self.block.first_op is not None
        self.block.insert_op_before(read, self.block.first_op)
        for use in list(value.uses):
            if self._is_outside(use.operation):
                use.operation.operands[use.index] = read.results[0]

    def _lasting(self, value: SSAValue) -> SSAValue:
        """`value`; if it is a buffer, it and all that it may be part of are from now on in memory that outlives `bind`.

        Of a buffer that an op with regions gives, that may be any that is allocated within it or handed to it.
        """
        if not isinstance(value.type, rt.BufferType):
            return value
        owner = viewed(value).owner
        if isinstance(owner, rt.AllocOp):
            lasting = self._make_lasting(owner)
            return lasting if value is owner.res else value
        assert isinstance(owner, Operation)
        for inner in list(ops_within(owner)):
            if isinstance(inner, rt.AllocOp):
                self._make_lasting(inner)
        for inner in ops_within(owner):
            for operand in inner.operands:
                if not is_inside(operand, owner):
                    self._lasting(operand)
        return value

    def _make_lasting(self, owner: rt.AllocOp) -> SSAValue:
        """Puts an allocation of memory of bound data in the place of one from the arena; the new buffer."""
        persistent = rt.AllocBoundOp(owner.count, owner.res.type, owner.site, location=owner.location)
        assert owner.parent is not None
        owner.parent.insert_op_before(persistent, owner)
        if owner.zero is not None:
            self._zero(persistent.results[0], owner)
        owner.res.replace_all_uses_with(persistent.results[0])
        owner.detach()
        return persistent.results[0]

    def _zero(self, buffer: SSAValue, owner: rt.AllocOp) -> None:
        assert isinstance(buffer.type, rt.BufferType)
        zero = constant(0, buffer.type.element)
        fill = rt.FillOp(buffer, zero.results[0], owner.count, initial=True)
        assert owner.parent is not None
        owner.parent.insert_ops_before([zero, fill], owner)
