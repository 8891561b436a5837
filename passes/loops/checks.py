"""Keeps loops free of branches where the program has checks that seldom fail.

A check in a loop keeps the loop from being vectorised. `separate_data_checks` gives the checks that depend on data
alone a loop of their own, which then runs once, when data are bound. `defer_checks` turns the others, as far as nothing
unsafe follows from going on, into a flag that is tested behind the loop.

So a hot unit may notice an error late or early, but never misses one: it leaves with status LOCATE, and the runtime
runs the unit `locate`, in which every check stands where the program has it, to say which error comes first.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i1, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.library.kernels import KERNELS
from ulam.library.statuses import LOCATE, REJECTION
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.rewriting import rebuild

HARMLESS = "harmless"
"""Attribute of a check that may come late: going on with a bad value computes nonsense, but nothing unsafe."""


def must_be_precise(module: ModuleOp) -> bool:
    """Whether a unit prints or draws: then its effects and errors must come in order in the unit itself."""
    return any(isinstance(op, rt.StringOp) or _is_ordered(op) for op in module.walk())


def _is_ordered(op: Operation) -> bool:
    if not isinstance(op, rt.KernelOp):
        return False
    kernel = KERNELS.get(op.function.data)
    return kernel is None or bool(kernel.effects)


# ---------------------------------------------------------------- data checks


def separate_data_checks(function: func.FuncOp) -> bool:
    """Moves checks of data out of top-level loops and branches into such of their own; whether there were any."""
    slices = DataSlices()
    found = False
    for op in list(function.body.block.ops):
        if not isinstance(op, scf.ForOp | scf.IfOp):
            continue
        checks: list[Operation] = []
        _collect(op, slices, checks)
        if not checks:
            continue
        found = True
        function.body.block.insert_op_before(slices.copy(op, checks), op)
        for check in checks:
            check.detach()
            check.erase()
    return found


def _collect(op: Operation, slices: DataSlices, checks: list[Operation]) -> None:
    """Checks of data at or below `op`, as far as only data decide whether they run."""
    if isinstance(op, rt.CheckOp):
        if all(slices.is_data(o) for o in op.operands):
            checks.append(op)
    elif slices.has_data_control(op):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    _collect(inner, slices, checks)


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
    """Domain checks."""
    return check.status is not None and check.status.value.data in (REJECTION, LOCATE)


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
        operands=(new.results[-1], zero.result), result_types=(i1,), properties={"predicate": IntegerAttr(0, i64)}
    )
    check = rt.CheckOp.create(
        operands=(none.result,), properties={"site": IntegerAttr(-1, i64), "status": IntegerAttr(LOCATE, i64)}
    )
    new.parent.insert_ops_after([none, check], new)


def leave_location_open(function: func.FuncOp) -> None:
    """Every check leaves with LOCATE: the error that it sees may not be the first of the program."""
    status = IntegerAttr(LOCATE, i64)
    for op in function.walk():
        if isinstance(op, rt.CheckOp):
            if _is_deferrable(op):
                op.attributes[HARMLESS] = UnitAttr()
            op.properties["status"] = status
