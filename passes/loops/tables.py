"""Tables with an entry for each iteration of a nest of loops: their size, and which entry is whose."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPF, constant
from ulam.library.costs import FunctionCost
from ulam.library.functions import function
from ulam.library.records import record
from ulam.passes.analysis.nesting import enclosing, is_inside
from ulam.passes.builder import WRAPS
from ulam.passes.loops.effects import PURE, is_speculatable


@record(frozen=True)
class RowsOfStrips:
    """A loop over rows inside of one over strips of them: both as one loop over all rows."""

    body: Region
    lb: SSAValue
    ub: SSAValue


Loops = tuple[scf.ForOp, ...]
"""Of a nest, outermost first. No bound depends on the iteration of an outer one."""
LoopsOrStrips = tuple[scf.ForOp | RowsOfStrips, ...]

_MOST = 2**56
"""Entries that no memory holds."""
_AS_THEY_ARE: Mapping[SSAValue, SSAValue] = {}
_FAST = {"fastmath": arith.FastMathFlagsAttr("none")}


def is_costly_function(op: Operation) -> bool:
    """Whether reading a table is cheaper than this function."""
    return isinstance(op, rt.MathOp) and function(op.function.data).cost is FunctionCost.CALL


def is_costly_within(
    value: SSAValue, nest: Operation, known: dict[SSAValue, bool], also: tuple[type[Operation], ...] = ()
) -> bool:
    """Whether a function worth a table is evaluated inside of `nest` for this value, or an op of the classes `also`.

    `known`: of nests side by side.
    """
    if not is_inside(value, nest) or not isinstance(op := value.owner, Operation):
        return False
    if (costly := known.get(value)) is None:
        known[value] = False
        costly = known[value] = (
            isinstance(op, also)
            or is_costly_function(op)
            or any(is_costly_within(o, nest, known, also) for o in op.operands)
        )
    return costly


def may_leave(value: SSAValue, nest: Operation) -> bool:
    """Whether a value is there in front of a nest, or may be: where branches compute it, and no loops."""
    if not is_inside(value, nest):
        return True
    op = value.owner
    if isinstance(op, Block) or not is_speculatable(op):
        return False
    loop = enclosing(op, scf.ForOp)
    if loop is not None and (loop is nest or nest.is_ancestor(loop)):
        return False
    return all(may_leave(operand, nest) for operand in op.operands)


def leave(value: SSAValue, nest: Operation) -> None:
    """Takes what computes a value out of the branches of a nest."""
    if is_inside(value, nest):
        op = value.owner
        assert isinstance(op, Operation) and nest.parent is not None
        for operand in op.operands:
            leave(operand, nest)
        op.detach()
        nest.parent.insert_op_before(op, nest)


def are_as_many_as_data(loops: LoopsOrStrips, ops: Iterable[Operation]) -> bool:
    """Whether a table with an entry for each iteration of a nest takes no more memory than data that are read there.

    `ops` are those of the nest. Of several loops one load has to have an element for each: pairs of all rows are far
    more than rows. The number of iterations of a single loop is no matter: they take more time than memory.
    """
    if len(loops) == 1:
        return True
    variables = {loop.body.block.args[0] for loop in loops}
    return any(variables <= _strided_in(op) for op in ops if isinstance(op, rt.LoadOp))


def _strided_in(load: rt.LoadOp) -> set[SSAValue]:
    """What the index of an element, with the views of its memory, is computed from; nothing without a stride."""
    found: set[SSAValue] = set()
    work = [load.index]
    buffer = load.buffer.owner
    while isinstance(buffer, rt.ViewOp):
        work.append(buffer.offset)
        buffer = buffer.buffer.owner
    has_stride = False
    while work:
        value = work.pop()
        if value not in found:
            found.add(value)
            if isinstance(value.owner, Operation) and type(value.owner) in PURE:
                has_stride = has_stride or isinstance(value.owner, arith.MuliOp)
                work += value.owner.operands
    return found if has_stride and isinstance(buffer, rt.BoundOp) else set()


class IterationTable:
    """The number of entries that a nest needs. `ops` compute it: they belong in front of the nest.

    `moves`: they will be hoisted to another function, from which every number that entries need would take a slot. Trip
    counts are then computed again.
    """

    def __init__(self, loops: LoopsOrStrips, *, moves: bool = False) -> None:
        self.loops = loops
        self.moves = moves
        zero = constant(0, i64)
        self.ops: list[Operation] = [zero]
        self._trips: list[SSAValue] = []
        self.count: SSAValue | None = None
        for loop in loops:
            span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=WRAPS)
            trip = arith.MaxSIOp.create(operands=(span.result, zero.result), result_types=(i64,))
            self.ops += [span, trip]
            self._trips.append(trip.result)
            self.count = trip.result if self.count is None else _product(self.count, trip.result, self.ops)
        if len(loops) > 1:
            assert self.count is not None
            self.count = bounded(self.count, self._trips, self.ops)

    @property
    def trips(self) -> Sequence[SSAValue]:
        """How often each loop runs."""
        return self._trips

    def allocate(self, like: Operation, element: Attribute = f64) -> rt.AllocOp:
        """Memory for the values of an expression; it goes behind `ops`."""
        assert self.count is not None
        return rt.AllocOp(self.count, rt.BufferType(element), location=like.location)

    def allocate_parts(self, like: rt.AllocOp) -> tuple[list[Operation], SSAValue]:
        """Memory with as many elements for each entry as an allocation has: what takes it, behind `ops`, and itself."""
        assert self.count is not None
        zero = constant(0, i64)
        width = arith.MaxSIOp.create(operands=(like.count, zero.result), result_types=(i64,))
        ops: list[Operation] = [zero, width]
        total = _product(self.count, width.results[0], ops)
        total = bounded(total, [*self._trips, width.results[0]], ops)
        ops.append(memory := rt.AllocOp(total, like.res.type, location=like.location))
        return ops, memory.res

    def entry(self, variables: Sequence[SSAValue]) -> tuple[list[Operation], SSAValue]:
        """The number of the entry for the loops' `variables`, and the ops that compute it."""
        ops: list[Operation] = []
        if not self.loops:
            zero = constant(0, i64)
            return [zero], zero.result
        index: SSAValue | None = None
        for loop, variable, trip in zip(self.loops, variables, self._trips, strict=True):
            position = arith.SubiOp.create(operands=(variable, loop.lb), result_types=(i64,), properties=WRAPS)
            ops.append(position)
            if index is None:
                index = position.result
                continue
            if self.moves:
                span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=WRAPS)
                ops.append(span)
                trip = span.result
            scaled = _product(index, trip, ops)
            total = arith.AddiOp.create(operands=(scaled, position.result), result_types=(i64,), properties=WRAPS)
            ops.append(total)
            index = total.result
        assert index is not None
        return ops, index

    def entry_here(self, values: Mapping[SSAValue, SSAValue] = _AS_THEY_ARE) -> tuple[list[Operation], SSAValue]:
        """As `entry`, for the present iteration. `values`: what the loops' variables are in a copy of the nest."""
        variables = (loop.body.block.args[0] for loop in self.loops)
        return self.entry([values.get(variable, variable) for variable in variables])

    def read_instead(self, op: Operation, table: SSAValue) -> None:
        """Replaces an expression in the nest by the entry of the present iteration."""
        assert op.parent is not None
        ops, index = self.entry_here()
        load = rt.LoadOp(table, index, location=op.location)
        op.parent.insert_ops_before([*ops, load], op)
        op.results[0].replace_all_uses_with(load.res)
        op.detach()
        op.erase()


def table_ahead(nest: Operation, loops: LoopsOrStrips, tables: dict[LoopsOrStrips, IterationTable]) -> IterationTable:
    """The table for some loops of a nest: one of `tables`, or a new one, whose size is computed ahead of the nest."""
    if (found := tables.get(loops)) is None:
        assert nest.parent is not None
        for bound in (bound for loop in loops for bound in (loop.lb, loop.ub)):
            leave(bound, nest)
        found = tables[loops] = IterationTable(loops, moves=True)
        nest.parent.insert_ops_before(found.ops, nest)
    return found


def bounded(count: SSAValue, factors: Sequence[SSAValue], ops: list[Operation]) -> SSAValue:
    """`count`, the product of `factors`; more than any memory holds where it does not fit into 64 bits."""
    product: SSAValue | None = None
    for factor in factors:
        real = arith.SIToFPOp.create(operands=(factor,), result_types=(f64,))
        ops.append(real)
        product = real.result if product is None else _real_product(product, real.result, ops)
    assert product is not None
    most = constant(float(_MOST), f64)
    too_many = constant(2 * _MOST, i64)
    fits = arith.CmpfOp.create(
        operands=(product, most.result), result_types=(i1,), properties={"predicate": CMPF["ole"], **_FAST}
    )
    bounded = arith.SelectOp.create(operands=(fits.result, count, too_many.result), result_types=(i64,))
    ops += [most, too_many, fits, bounded]
    return bounded.result


def _real_product(a: SSAValue, b: SSAValue, ops: list[Operation]) -> SSAValue:
    product = arith.MulfOp.create(operands=(a, b), result_types=(f64,), properties=_FAST)
    ops.append(product)
    return product.result


def _product(a: SSAValue, b: SSAValue, ops: list[Operation]) -> SSAValue:
    product = arith.MuliOp.create(operands=(a, b), result_types=(i64,), properties=WRAPS)
    ops.append(product)
    return product.result
