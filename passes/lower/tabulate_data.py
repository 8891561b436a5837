"""Costly data-only expressions in loops become tables that are filled when data are bound.

    for i: ... lgamma(y[i] + 1) ...    →    bind:      for i: table[i] = lgamma(y[i] + 1)
                                            evaluate:  for i: ... table[i] ...

Only where data alone decide on the iterations: top-level loops, and loops and branches nested in them, with bounds and
conditions that are data. A table has an entry for each iteration of the nest.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, f64, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.lower.data_slices import DataSlices

CHEAP_MATH = frozenset(
    {"square", "abs", "fabs", "fma", "value_of", "floor", "ceil", "round", "trunc", "step", "fmin", "fmax"}
)
OVERFLOW = {"overflowFlags": arith.IntegerOverflowAttr("none")}


@dataclass
class _Entry:
    """An expression that gets a table, with the loops around it, outermost first."""

    op: Operation
    loops: tuple[scf.ForOp, ...]


def tabulate_data(function: func.FuncOp) -> bool:
    """Makes tables for all loops of a function; whether there were any."""
    slices = DataSlices()
    costly: dict[SSAValue, bool] = {}
    found = False
    for op in list(function.body.block.ops):
        if not isinstance(op, scf.ForOp | scf.IfOp):
            continue
        entries: list[_Entry] = []
        _collect(op, op, (), slices, costly, entries)
        if entries:
            _tabulate(op, entries, slices)
            found = True
    return found


def _collect(
    nest: Operation,
    op: Operation,
    loops: tuple[scf.ForOp, ...],
    slices: DataSlices,
    costly: dict[SSAValue, bool],
    entries: list[_Entry],
) -> None:
    if op.regions:
        if not slices.has_data_control(op):
            return
        if isinstance(op, scf.ForOp):
            if any(_is_inside(bound, nest) for bound in (op.lb, op.ub)) and op is not nest:
                return  # its trip count depends on the iteration of an outer loop
            loops = (*loops, op)
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    _collect(nest, inner, loops, slices, costly, entries)
    elif (
        loops
        and len(op.results) == 1
        and op.results[0].type == f64
        and slices.is_data(op.results[0])
        and _is_costly(op.results[0], nest, costly)
        and not all(_is_data_user(use.operation, slices) for use in op.results[0].uses)
    ):
        entries.append(_Entry(op, loops))


def _is_inside(value: SSAValue, nest: Operation) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent is not None and nest.is_ancestor(parent)
    return owner is not nest and nest.is_ancestor(owner)


def _is_data_user(op: Operation, slices: DataSlices) -> bool:
    """Whether the only consequence of a use is another data-only real."""
    return len(op.results) == 1 and op.results[0].type == f64 and not op.regions and slices.is_data(op.results[0])


def _is_costly(value: SSAValue, nest: Operation, costly: dict[SSAValue, bool]) -> bool:
    """Whether a function worth a table is evaluated inside of `nest` for this value."""
    if not _is_inside(value, nest) or not isinstance(op := value.owner, Operation):
        return False
    if (known := costly.get(value)) is None:
        costly[value] = False
        known = costly[value] = (isinstance(op, rt.MathOp) and op.function.data not in CHEAP_MATH) or any(
            _is_costly(operand, nest, costly) for operand in op.operands)  # fmt: skip
    return known


def _tabulate(nest: Operation, entries: list[_Entry], slices: DataSlices) -> None:
    assert nest.parent is not None
    tables: dict[Operation, SSAValue] = {}
    for entry in entries:
        tables[entry.op] = _allocate(nest, entry)
    loops = {entry.op: entry.loops for entry in entries}

    def store(original: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
        block = copy.parent
        assert block is not None
        ops, index = _index(loops[original], values)
        write = rt.StoreOp.create(
            operands=(copy.results[0], tables[original], index), properties={"initial": UnitAttr()}
        )
        block.add_ops([*ops, write])

    nest.parent.insert_op_before(slices.copy(nest, [e.op for e in entries], store), nest)
    for entry in entries:
        block = entry.op.parent
        assert block is not None
        ops, index = _index(entry.loops, {})
        load = rt.LoadOp.create(operands=(tables[entry.op], index), result_types=(f64,), location=entry.op.location)
        block.insert_ops_before([*ops, load], entry.op)
        entry.op.results[0].replace_all_uses_with(load.res)
        entry.op.detach()
        entry.op.erase()


def _allocate(nest: Operation, entry: _Entry) -> SSAValue:
    """Memory for an entry's table, before the nest."""
    assert nest.parent is not None
    zero = arith.ConstantOp.create(result_types=(i64,), properties={"value": IntegerAttr(0, i64)})
    nest.parent.insert_op_before(zero, nest)
    count: SSAValue | None = None
    for loop in entry.loops:
        span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=OVERFLOW)
        trip = arith.MaxSIOp.create(operands=(span.result, zero.result), result_types=(i64,))
        nest.parent.insert_ops_before([span, trip], nest)
        if count is None:
            count = trip.result
        else:
            product = arith.MuliOp.create(operands=(count, trip.result), result_types=(i64,), properties=OVERFLOW)
            nest.parent.insert_op_before(product, nest)
            count = product.result
    assert count is not None
    alloc = rt.AllocOp.create(operands=(count,), result_types=(rt.BufferType(f64),), location=entry.op.location)
    nest.parent.insert_op_before(alloc, nest)
    return alloc.res


def _index(loops: tuple[scf.ForOp, ...], values: dict[SSAValue, SSAValue]) -> tuple[list[Operation], SSAValue]:
    """Ops that compute the number of the present iteration of a nest; `values` maps the loop variables."""
    ops: list[Operation] = []
    index: SSAValue | None = None
    for loop in loops:
        variable = values.get(loop.body.block.args[0], loop.body.block.args[0])
        position = arith.SubiOp.create(operands=(variable, loop.lb), result_types=(i64,), properties=OVERFLOW)
        ops.append(position)
        if index is None:
            index = position.result
            continue
        span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=OVERFLOW)
        scaled = arith.MuliOp.create(operands=(index, span.result), result_types=(i64,), properties=OVERFLOW)
        total = arith.AddiOp.create(operands=(scaled.result, position.result), result_types=(i64,), properties=OVERFLOW)
        ops += [span, scaled, total]
        index = total.result
    assert index is not None
    return ops, index
