"""Costly expressions that an outer loop repeats for every iteration of an inner one become tables.

    for n: for k: ... log(theta[k]) ...    →    for k: table[k] = log(theta[k])      for n: for k: ... table[k] ...

What depends on inner loop variables, but not on that of an outer loop, nor on anything that loop changes, is computed
before the outer loop, once for each combination of the inner variables it depends on. The reverse sweep profits, too:
the derivative of `log` is taken once per entry. Mixtures, hidden Markov models and models of many groups live on this.

Runs on hot units when their loops are free of checks: it reads memory ahead of the loop that the program reads it in.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IntegerAttr, UnitAttr, f64, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.passes.analysis.effects_low import Root, is_speculatable, may_overlap, root, written_roots_within
from ulam.passes.lower.tabulate_data import CHEAP_MATH, OVERFLOW

Loops = tuple[scf.ForOp, ...]
_MIN = IntegerAttr(0, i64)


@dataclass
class _Group:
    """Expressions computed by one new nest of loops, `inner`, in front of `outer`."""

    outer: scf.ForOp
    inner: Loops
    ops: list[Operation] = field(default_factory=list)


def tabulate_invariants(function: func.FuncOp) -> bool:
    """Makes tables in all loop nests of a function; whether there were any."""
    found = False
    for op in list(function.body.block.ops):
        if isinstance(op, scf.ForOp) and _Nest(op).tabulate():
            found = True
    return found


class _Nest:
    """One top-level loop."""

    def __init__(self, top: scf.ForOp) -> None:
        self.top = top
        self.written: set[Root] = written_roots_within(top)
        self._needs: dict[SSAValue, frozenset[scf.ForOp] | None] = {}
        self._costly: dict[SSAValue, bool] = {}
        self.groups: dict[tuple[scf.ForOp, Loops], _Group] = {}

    def tabulate(self) -> bool:
        if not any(isinstance(op, scf.ForOp) for op in self.top.body.block.walk()):
            return False
        if any(
            isinstance(op, rt.CheckOp | rt.KernelOp | func.CallOp | scf.WhileOp) for op in self.top.body.block.walk()
        ):
            return False
        self._collect(self.top, ())
        for group in self.groups.values():
            _write(group)
        return bool(self.groups)

    def _collect(self, op: Operation, loops: Loops) -> None:
        if isinstance(op, scf.ForOp):
            loops = (*loops, op)
            for inner in op.body.block.ops:
                self._collect(inner, loops)
        elif op.regions:
            return  # what runs under a condition stays there
        elif len(loops) > 1 and len(op.results) == 1 and op.results[0].type == f64:
            self._consider(op, loops)

    def _consider(self, op: Operation, loops: Loops) -> None:
        needs = self.needs(op.results[0])
        if not needs or not self._is_costly(op.results[0]):
            return
        outer = next((loop for loop in loops if loop not in needs), None)
        if outer is None:
            return
        inner = tuple(loop for loop in loops[loops.index(outer) + 1 :] if loop in needs)
        if not inner or any(_is_inside(bound, outer) for loop in inner for bound in (loop.lb, loop.ub)):
            return
        if all(self._is_part(use.operation, needs, loops) for use in op.results[0].uses):
            return  # part of a larger expression that gets a table
        self.groups.setdefault((outer, inner), _Group(outer, inner)).ops.append(op)

    def _is_part(self, user: Operation, needs: frozenset[scf.ForOp], loops: Loops) -> bool:
        if (
            user.regions
            or len(user.results) != 1
            or user.results[0].type != f64
            or user.parent is not loops[-1].body.block
        ):
            return False
        return self.needs(user.results[0]) == needs

    # ------------------------------------------------------------ what a value depends on

    def needs(self, value: SSAValue) -> frozenset[scf.ForOp] | None:
        """The loops on whose variables a value depends; None if it depends on what the nest changes."""
        if value not in self._needs:
            self._needs[value] = None  # while it is being found out
            self._needs[value] = self._find_out(value)
        return self._needs[value]

    def _find_out(self, value: SSAValue) -> frozenset[scf.ForOp] | None:
        if not _is_inside(value, self.top):
            return frozenset()
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            return frozenset((loop,)) if isinstance(loop, scf.ForOp) and value.index == 0 else None
        op = value.owner
        assert isinstance(op, Operation)
        if isinstance(op, rt.LoadOp):
            source = root(op.buffer)
            if any(may_overlap(source, w) for w in self.written):
                return None
        elif not is_speculatable(op):
            return None
        found: frozenset[scf.ForOp] = frozenset()
        for operand in op.operands:
            part = self.needs(operand)
            if part is None:
                return None
            found |= part
        return found

    def _is_costly(self, value: SSAValue) -> bool:
        if not _is_inside(value, self.top) or not isinstance(op := value.owner, Operation):
            return False
        if (known := self._costly.get(value)) is None:
            self._costly[value] = False
            costly = isinstance(op, arith.DivfOp) or (isinstance(op, rt.MathOp) and op.function.data not in CHEAP_MATH)
            known = self._costly[value] = costly or any(self._is_costly(o) for o in op.operands)
        return known


def _is_inside(value: SSAValue, nest: Operation) -> bool:
    owner = value.owner
    if isinstance(owner, Block):
        parent = owner.parent_op()
        return parent is not None and nest.is_ancestor(parent)
    return owner is not nest and nest.is_ancestor(owner)


# ---------------------------------------------------------------- writing


def _write(group: _Group) -> None:
    outer = group.outer
    assert outer.parent is not None
    before: list[Operation] = []
    count, trips = _count(group.inner, before)
    tables = [
        rt.AllocOp.create(operands=(count,), result_types=(rt.BufferType(f64),), location=op.location)
        for op in group.ops
    ]
    outer.parent.insert_ops_before([*before, *tables, _fill(group, tables, trips)], outer)
    for op, table in zip(group.ops, tables, strict=True):
        block = op.parent
        assert block is not None
        ops, index = _index(group.inner, [loop.body.block.args[0] for loop in group.inner], trips)
        load = rt.LoadOp.create(operands=(table.res, index), result_types=(f64,), location=op.location)
        block.insert_ops_before([*ops, load], op)
        op.results[0].replace_all_uses_with(load.res)
        op.detach()
        op.erase()


def _count(loops: Loops, ops: list[Operation]) -> tuple[SSAValue, list[SSAValue]]:
    """The number of entries, and the trip count of each loop."""
    zero = arith.ConstantOp.create(result_types=(i64,), properties={"value": _MIN})
    ops.append(zero)
    trips: list[SSAValue] = []
    total: SSAValue | None = None
    for loop in loops:
        span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=OVERFLOW)
        trip = arith.MaxSIOp.create(operands=(span.result, zero.result), result_types=(i64,))
        ops += [span, trip]
        trips.append(trip.result)
        if total is None:
            total = trip.result
        else:
            product = arith.MuliOp.create(operands=(total, trip.result), result_types=(i64,), properties=OVERFLOW)
            ops.append(product)
            total = product.result
    assert total is not None
    return total, trips


def _index(loops: Loops, variables: list[SSAValue], trips: list[SSAValue]) -> tuple[list[Operation], SSAValue]:
    """The position of the entry for the loops' `variables`."""
    ops: list[Operation] = []
    index: SSAValue | None = None
    for loop, variable, trip in zip(loops, variables, trips, strict=True):
        position = arith.SubiOp.create(operands=(variable, loop.lb), result_types=(i64,), properties=OVERFLOW)
        ops.append(position)
        if index is None:
            index = position.result
            continue
        scaled = arith.MuliOp.create(operands=(index, trip), result_types=(i64,), properties=OVERFLOW)
        total = arith.AddiOp.create(operands=(scaled.result, position.result), result_types=(i64,), properties=OVERFLOW)
        ops += [scaled, total]
        index = total.result
    assert index is not None
    return ops, index


def _fill(group: _Group, tables: list[rt.AllocOp], trips: list[SSAValue]) -> Operation:
    """The nest that computes the tables."""
    blocks = [Block(arg_types=[i64]) for _ in group.inner]
    variables: list[SSAValue] = [block.args[0] for block in blocks]
    values: dict[SSAValue, SSAValue] = {
        loop.body.block.args[0]: variable for loop, variable in zip(group.inner, variables, strict=True)}  # fmt: skip
    body = blocks[-1]
    for op in _slice(group):
        body.add_op(op.clone(value_mapper=values))
    ops, index = _index(group.inner, variables, trips)
    body.add_ops(ops)
    for op, table in zip(group.ops, tables, strict=True):
        value = values[op.results[0]]
        body.add_op(rt.StoreOp.create(operands=(value, table.res, index), properties={"initial": UnitAttr()}))
    nest: Operation | None = None
    for loop, block in zip(reversed(group.inner), reversed(blocks), strict=True):
        if nest is not None:
            block.add_op(nest)
        block.add_op(scf.YieldOp.create())
        nest = scf.ForOp.create(operands=(loop.lb, loop.ub, loop.step), regions=[Region(block)], location=loop.location)
    assert nest is not None
    return nest


def _slice(group: _Group) -> list[Operation]:
    """What the group's expressions are computed from inside of `outer`, and they themselves, in an order that works."""
    done: dict[Operation, None] = {}

    def visit(op: Operation) -> None:
        if op in done:
            return
        for operand in op.operands:
            if isinstance(operand.owner, Operation) and _is_inside(operand, group.outer):
                visit(operand.owner)
        done[op] = None

    for op in group.ops:
        visit(op)
    return list(done)
