"""Keeps loops free of branches where the program has checks that seldom fail.

A check in a loop keeps the loop from being vectorised. `separate_data_checks` gives the checks that depend on data
alone a loop of their own, which then runs once, when data are bound. `defer_checks` turns the others, as far as nothing
unsafe follows from going on, into a flag that is tested behind the loop.

So a hot unit may notice an error late or early, but never misses one: it leaves with status LOCATE, and the runtime runs
the unit `locate`, in which every check stands where the program has it, to say which error comes first.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i1, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.passes.autodiff.shadows import rebuild

LOCATE = 3
"""Status of a hot unit: an error happened; the unit `locate` tells which."""

_REJECTION = 1
_PURE = (
    arith.ConstantOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.CmpiOp,
    arith.CmpfOp, arith.SelectOp, arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp, arith.SIToFPOp,
    arith.TruncIOp, arith.ExtSIOp, arith.ExtUIOp, arith.MinSIOp, arith.MaxSIOp, rt.MathOp, rt.ViewOp, rt.BoundOp,
)  # fmt: skip


def must_be_precise(module: ModuleOp) -> bool:
    """Whether a unit prints or draws: then its effects and errors must come in order in the unit itself."""
    return any(isinstance(op, rt.StringOp) or _is_ordered(op) for op in module.walk())


def _is_ordered(op: Operation) -> bool:
    from ulam.library.kernels import KERNELS

    if not isinstance(op, rt.KernelOp):
        return False
    kernel = KERNELS.get(op.function.data)
    return kernel is None or bool(kernel.effects)


# ---------------------------------------------------------------- data checks


def separate_data_checks(function: func.FuncOp) -> bool:
    """Moves checks of data out of top-level loops and branches into such of their own; whether there were any."""
    found = False
    block = function.body.block
    separator = _Separator(block)
    for op in list(block.ops):
        if isinstance(op, scf.ForOp | scf.IfOp) and separator.separate(op):
            found = True
    return found


class _Separator:
    """Of one function: which values depend on data alone."""

    def __init__(self, entry: Block) -> None:
        self.entry = entry
        self._data: dict[SSAValue, bool] = {}

    def separate(self, loop: scf.ForOp | scf.IfOp) -> bool:
        """Copies the checks of data in `loop`, with what is around them, to in front of it, and removes them from it."""
        checks: set[Operation] = set()
        self._collect(loop, checks)
        if not checks:
            return False
        needed: set[Operation] = set()
        for check in checks:
            self._need(check, needed, loop)
        copy = self._copy(loop, checks, needed, {})
        assert loop.parent is not None
        loop.parent.insert_op_before(copy, loop)
        for check in checks:
            check.detach()
            check.erase()
        return True

    def _has_data_bounds(self, loop: scf.ForOp) -> bool:
        return self.is_data(loop.lb) and self.is_data(loop.ub)

    def _collect(self, op: Operation, checks: set[Operation]) -> None:
        if isinstance(op, rt.CheckOp):
            if all(self.is_data(o) for o in op.operands):
                checks.add(op)
        elif (isinstance(op, scf.ForOp) and self._has_data_bounds(op)) or (
            isinstance(op, scf.IfOp) and self.is_data(op.cond)
        ):
            for region in op.regions:
                for block in region.blocks:
                    for inner in block.ops:
                        self._collect(inner, checks)

    def is_data(self, value: SSAValue) -> bool:
        """Whether a value depends on data alone."""
        known = self._data.get(value)
        if known is None:
            self._data[value] = False  # while it is being found out
            known = self._data[value] = self._find_out(value)
        return known

    def _find_out(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return isinstance(loop, scf.ForOp) and value.index == 0 and self._has_data_bounds(loop)
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            return self._is_data_buffer(op.buffer) and self.is_data(op.index)
        return isinstance(op, _PURE) and all(self.is_data(o) for o in op.operands)

    def _is_data_buffer(self, buffer: SSAValue) -> bool:
        while isinstance(buffer.owner, rt.ViewOp):
            if not self.is_data(buffer.owner.offset):
                return False
            buffer = buffer.owner.buffer
        return isinstance(buffer.owner, rt.BoundOp)

    def _need(self, op: Operation, needed: set[Operation], loop: Operation) -> None:
        """What must be copied along with `op`: inside `loop`, all that computes its operands, and what is around it."""
        work: list[Operation] = [op]
        while work:
            current = work.pop()
            if current in needed or current is loop or not loop.is_ancestor(current):
                continue
            needed.add(current)
            parent = current.parent_op()
            if parent is not None:
                work.append(parent)
            for operand in current.operands if not current.regions else _bounds(current):
                if isinstance(operand.owner, Operation):
                    work.append(operand.owner)

    def _copy(self, op: Operation, checks: set[Operation], needed: set[Operation], values: dict[SSAValue, SSAValue]) -> Operation:
        if isinstance(op, scf.ForOp):
            body = Block(arg_types=[i64])
            values[op.body.block.args[0]] = body.args[0]
            self._copy_block(op.body.block, body, checks, needed, values)
            operands = [values.get(o, o) for o in (op.lb, op.ub, op.step)]
            return scf.ForOp.create(operands=operands, regions=[Region(body)], location=op.location)
        if isinstance(op, scf.IfOp):
            regions = []
            for region in op.regions:
                block = Block()
                if region.blocks:
                    self._copy_block(region.block, block, checks, needed, values)
                else:
                    block.add_op(scf.YieldOp.create())
                regions.append(Region(block))
            return scf.IfOp.create(operands=[values.get(op.cond, op.cond)], regions=regions, location=op.location)
        return op.clone(value_mapper=values)

    def _copy_block(
        self, source: Block, target: Block, checks: set[Operation], needed: set[Operation], values: dict[SSAValue, SSAValue]
    ) -> None:
        for op in source.ops:
            if op in needed and (not isinstance(op, rt.CheckOp) or op in checks):
                target.add_op(self._copy(op, checks, needed, values))
        target.add_op(scf.YieldOp.create())


def _bounds(op: Operation) -> list[SSAValue]:
    if isinstance(op, scf.ForOp):
        return [op.lb, op.ub, op.step]
    return [op.operands[0]] if isinstance(op, scf.IfOp) else list(op.operands)


# ---------------------------------------------------------------- deferred checks


def defer_checks(function: func.FuncOp) -> None:
    """Replaces checks in loops by a flag that is tested behind the loop."""
    _defer_in(function.body.block)


def _defer_in(block: Block) -> None:
    op = block.first_op
    while op is not None:
        following = op.next_op
        for region in op.regions:
            for inner in region.blocks:
                _defer_in(inner)
        if isinstance(op, scf.ForOp) and _may_go_on(op):
            checks = [c for c in op.body.block.ops if isinstance(c, rt.CheckOp) and _is_deferrable(c)]
            if checks:
                _defer(op, checks)
        op = following


def _is_deferrable(check: rt.CheckOp) -> bool:
    """Domain checks: going on with a bad value computes nonsense, but nothing unsafe."""
    return check.status is not None and check.status.value.data in (_REJECTION, LOCATE)


def _may_go_on(loop: scf.ForOp) -> bool:
    """Whether the loop surely ends, and is without effects, also on nonsense."""
    return not any(isinstance(op, scf.WhileOp | func.CallOp | rt.KernelOp | rt.SetBoundOp) for op in loop.walk())


def _defer(loop: scf.ForOp, checks: list[rt.CheckOp]) -> None:
    body = loop.body.block
    flag = body.insert_arg(i64, len(body.args))
    current: SSAValue = flag
    for check in checks:
        true = arith.ConstantOp.create(result_types=(i1,), properties={"value": IntegerAttr(1, i1)})
        bad = arith.XOrIOp.create(operands=(check.ok, true.result), result_types=(i1,))
        wide = arith.ExtUIOp.create(operands=(bad.result,), result_types=(i64,))
        both = arith.OrIOp.create(operands=(current, wide.result), result_types=(i64,))
        body.insert_ops_before([true, bad, wide, both], check)
        check.detach()
        check.erase()
        current = both.result
    end = body.last_op
    assert end is not None and loop.parent is not None
    end.operands = [*end.operands, current]
    zero = arith.ConstantOp.create(result_types=(i64,), properties={"value": IntegerAttr(0, i64)})
    loop.parent.insert_op_before(zero, loop)
    new = rebuild(loop, [*loop.operands, zero.result], [*(r.type for r in loop.results), i64])
    assert new.parent is not None
    none = arith.CmpiOp.create(
        operands=(new.results[-1], zero.result), result_types=(i1,), properties={"predicate": IntegerAttr(0, i64)})  # fmt: skip
    check = rt.CheckOp.create(
        operands=(none.result,), properties={"site": IntegerAttr(-1, i64), "status": IntegerAttr(LOCATE, i64)})  # fmt: skip
    new.parent.insert_ops_after([none, check], new)


def leave_location_open(function: func.FuncOp) -> None:
    """Every check leaves with LOCATE: the error that it sees may not be the first of the program."""
    status = IntegerAttr(LOCATE, i64)
    for op in function.walk():
        if isinstance(op, rt.CheckOp):
            op.properties["status"] = status
