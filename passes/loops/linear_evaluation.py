"""Writes what evaluations do with the reduced rows of a normal linear model, in the place of its loop."""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside
from ulam.passes.loops.linear_binding import Binding
from ulam.passes.loops.linear_rows import (
    Copier,
    Environment,
    Leaf,
    LinearColumns,
    Loops,
    Reduced,
    Square,
    SquareSums,
    carry,
    new_loop,
)
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.rewriting import applied_to, replace_uses

MOST_STRAIGHT = 6
"""So many shared coefficients are combined without loops."""
_LARGEST_SQUARES = 1e140
"""The sum of the squares of all coefficients is less, or rows go as they are; linear_design.c has its root."""
_REALS = rt.BufferType(f64)


def write_layout(statement: SquareSums, top: Block) -> None:
    """Puts a branch in the place of a nest: reduced rows if they may be used, else the nest."""
    loop = statement.loop
    ancestor: Operation = loop
    while ancestor.parent is not top:
        parent = ancestor.parent_op()
        assert parent is not None
        ancestor = parent
    reduced = [Binding(statement, square, top, OpWriter(ancestor)).write() for square in statement.squares]
    write = OpWriter(loop)
    nests = (loop, *statement.fills)
    copier = Copier(lambda value: not any(is_inside(value, nest) for nest in nests))
    pairs = list(zip(statement.squares, reduced, strict=True))
    ok = write.both([_guard(square, found, copier, write) for square, found in pairs])
    then, otherwise = Block(), Block()
    branch = scf.IfOp.create(
        operands=[ok],
        result_types=[result.type for result in loop.results],
        regions=[Region(then), Region(otherwise)],
        location=loop.location,
    )
    write.before(branch)
    for result, new in zip(loop.results, branch.results, strict=True):
        replace_uses(result, new)
    loop.detach()
    otherwise.add_ops([loop, scf.YieldOp.create(operands=list(loop.results))])
    for fill in statement.fills:
        buffers = {op.buffer: None for op in ops_within(fill) if isinstance(op, rt.StoreOp)}
        starts = [use.operation for buffer in buffers for use in buffer.uses if isinstance(use.operation, rt.FillOp)]
        for op in (*(buffer.owner for buffer in buffers), *starts, fill):
            assert isinstance(op, Operation)
            op.detach()
            otherwise.insert_op_before(op, loop)
    end = scf.YieldOp.create(operands=list(loop.iter_args))
    then.add_op(end)
    inside = OpWriter(end)
    for value in statement.constants:
        rows = inside.put(arith.SIToFPOp.create(operands=[reduced[0].rows], result_types=[f64]))
        term = inside.real(arith.MulfOp, rows, copier.value(value, {}, inside))
        inside.before(ad.TargetAddOp(term))
    for square, found in pairs:
        _Evaluation(square, found, copier, inside).write()


def _leaf(leaf: Leaf, copier: Copier, env: Environment, write: OpWriter) -> SSAValue:
    found = copier.product(leaf, env, write)
    assert found is not None
    return found


def _guard(square: Square, reduced: Reduced, copier: Copier, write: OpWriter) -> SSAValue:
    """Whether all coefficients are finite, and none is so large that rows could not be."""
    columns = square.columns
    total = write.number(0.0)
    env: Environment = {}
    for leaf in columns.shared:
        total = _plus_square(total, _leaf(leaf, copier, env, write), write)
    for loops, leaves in columns.looped.items():
        total = _squares_of_loops(total, loops, leaves, copier, write)
    keys = {key: (*reduced.places.ranges[key], leaves) for key, leaves in columns.chosen.items()}
    if columns.key is not None:
        keys[columns.key] = reduced.low, reduced.groups, columns.own
    for key, (low, span, leaves) in keys.items():
        j, inside = new_loop(write, write.whole(0), span, [total])
        env = {key: inside.put(integer(arith.AddiOp, j, low))}
        sum_ = inside.anchor.operands[0]
        for leaf in leaves:
            sum_ = _plus_square(sum_, _leaf(leaf, copier, env, inside), inside)
        total = carry(inside, sum_)
    return write.both([reduced.used, write.compare("olt", total, _LARGEST_SQUARES)])


def _plus_square(total: SSAValue, value: SSAValue, write: OpWriter) -> SSAValue:
    return write.real(arith.AddfOp, total, write.real(arith.MulfOp, value, value), reassociate=True)


def _squares_of_loops(
    total: SSAValue, loops: Loops, leaves: dict[Leaf, int], copier: Copier, write: OpWriter
) -> SSAValue:
    inner: Environment = {}
    inside, writers, sum_ = write, [], total
    for loop in loops:
        lower, upper = copier.value(loop.lb, inner, inside), copier.value(loop.ub, inner, inside)
        variable, inside = new_loop(inside, lower, upper, [sum_])
        inner = {**inner, loop.body.block.args[0]: variable}
        sum_ = inside.anchor.operands[0]
        writers.append(inside)
    for leaf in leaves:
        sum_ = _plus_square(sum_, _leaf(leaf, copier, inner, inside), inside)
    for writer in reversed(writers):
        sum_ = carry(writer, sum_)
    return sum_


def _of_group(columns: LinearColumns, reduced: Reduced, j: SSAValue, write: OpWriter) -> Environment:
    """The key of the j-th group."""
    assert columns.key is not None
    return {columns.key: write.put(integer(arith.AddiOp, j, reduced.low))}


@record
class _Evaluation:
    """Writes the reduced rows of a square: what they add to the target."""

    square: Square
    reduced: Reduced
    copier: Copier
    write_to: OpWriter

    def write(self) -> None:
        columns = self.square.columns
        many = columns.looped or columns.chosen or len(columns.shared) > MOST_STRAIGHT
        values = None if many else self._values()
        coefficients = self._buffer() if values is None else None
        if columns.own:
            self._write_groups(values, coefficients)
        if values is not None:
            self._write_straight(values)
        else:
            assert coefficients is not None
            self._write_triangle(coefficients)

    # ------------------------------------------------------------ coefficients, less those that fit best

    def _values(self) -> list[SSAValue]:
        write, columns = self.write_to, self.square.columns
        size = len(columns.shared)
        values: list[SSAValue] = []
        for n, leaf in enumerate(columns.shared):
            best = self._shared((size + 1) ** 2 + n, write)
            values.append(write.real(arith.SubfOp, _leaf(leaf, self.copier, {}, write), best))
        return values

    def _shared(self, index: int, write: OpWriter) -> SSAValue:
        return write.put(rt.LoadOp(self.reduced.shared, write.whole(index)))

    def _buffer(self) -> SSAValue:
        write, columns, reduced = self.write_to, self.square.columns, self.reduced
        found = write.put(rt.AllocOp(reduced.places.count, _REALS))
        rows = write.put(integer(arith.AddiOp, reduced.places.count, write.whole(1)))
        best = write.put(integer(arith.MuliOp, rows, rows))
        for n, leaf in enumerate(columns.shared):
            value = _leaf(leaf, self.copier, {}, write)
            self._put_less_best(found, write.whole(n), best, value, write)
        for loops, leaves in columns.looped.items():
            env: Environment = {}
            inside = write
            for loop in loops:
                env, inside = self.copier.loop(loop, env, inside)
            first = reduced.places.of_loops(loops, len(leaves), self.copier, env, inside)
            for n, leaf in enumerate(leaves):
                index = inside.put(integer(arith.AddiOp, first, inside.whole(n)))
                self._put_less_best(found, index, best, _leaf(leaf, self.copier, env, inside), inside)
        for key, leaves in columns.chosen.items():
            low, span = reduced.places.ranges[key]
            j, inside = new_loop(write, write.whole(0), span)
            env = {key: inside.put(integer(arith.AddiOp, j, low))}
            first = reduced.places.of_key(key, j, len(leaves), inside)
            for n, leaf in enumerate(leaves):
                index = inside.put(integer(arith.AddiOp, first, inside.whole(n)))
                self._put_less_best(found, index, best, _leaf(leaf, self.copier, env, inside), inside)
        return found

    def _put_less_best(
        self, buffer: SSAValue, index: SSAValue, best: SSAValue, value: SSAValue, write: OpWriter
    ) -> None:
        other = write.put(rt.LoadOp(self.reduced.shared, write.put(integer(arith.AddiOp, best, index))))
        write.before(rt.StoreOp(write.real(arith.SubfOp, value, other), buffer, index, initial=True))

    # ------------------------------------------------------------ rows

    def _add(self, row: SSAValue, write: OpWriter) -> None:
        """Adds to the target what a row with this residual does."""
        for op, at in reversed(self.square.steps):
            operands = [
                row if at in (-1, n) else self.copier.value(operand, {}, write) for n, operand in enumerate(op.operands)
            ]
            row = write.put(applied_to(op, operands))
        write.before(ad.TargetAddOp(row))

    def _write_straight(self, values: list[SSAValue]) -> None:
        write, n = self.write_to, len(values) + 1
        for i in range(n):
            row = self._shared(i * n + n - 1, write)
            for k in range(i, n - 1):
                row = _minus(row, self._shared(i * n + k, write), values[k], write)
            self._add(row, write)

    def _write_triangle(self, coefficients: SSAValue) -> None:
        write, count = self.write_to, self.reduced.places.count
        n = write.put(integer(arith.AddiOp, count, write.whole(1)))
        i, inside = new_loop(write, write.whole(0), n)
        first = inside.put(integer(arith.MuliOp, i, n))
        last = inside.put(rt.LoadOp(self.reduced.shared, inside.put(integer(arith.AddiOp, first, count))))
        k, innermost = new_loop(inside, i, count, [last])
        entry = innermost.put(rt.LoadOp(self.reduced.shared, innermost.put(integer(arith.AddiOp, first, k))))
        value = innermost.put(rt.LoadOp(coefficients, k))
        row = carry(innermost, _minus(innermost.anchor.operands[0], entry, value, innermost))
        self._add(row, inside)

    def _write_groups(self, values: list[SSAValue] | None, coefficients: SSAValue | None) -> None:
        write, columns, reduced = self.write_to, self.square.columns, self.reduced
        own = len(columns.own)
        width = write.put(integer(arith.AddiOp, reduced.places.count, write.whole(own + 1)))
        best = write.put(integer(arith.MuliOp, width, write.whole(own)))
        rests = None if coefficients is None else self._rests(coefficients, width)
        j, inside = new_loop(write, write.whole(0), reduced.groups)
        env = _of_group(columns, reduced, j, inside)
        mine: list[SSAValue] = []
        for p, leaf in enumerate(columns.own):
            at = inside.put(integer(arith.AddiOp, best, inside.whole(p)))
            mine.append(
                inside.real(arith.SubfOp, _leaf(leaf, self.copier, env, inside), self._of_group(at, j, inside))
            )
        for p in range(own):
            first = inside.put(integer(arith.MuliOp, width, inside.whole(p)))
            end = inside.put(integer(arith.AddiOp, width, inside.whole(-1)))
            row = self._of_group(inside.put(integer(arith.AddiOp, first, end)), j, inside)
            for q in range(p, own):
                row = _minus(row, self._of_group(_plus(first, q, inside), j, inside), mine[q], inside)
            first = _plus(first, own, inside)
            if values is not None:
                for k, value in enumerate(values):
                    row = _minus(row, self._of_group(_plus(first, k, inside), j, inside), value, inside)
            else:
                assert rests is not None
                at = inside.put(integer(arith.MuliOp, inside.whole(p), reduced.groups))
                at = inside.put(integer(arith.AddiOp, at, j))
                row = inside.real(arith.SubfOp, row, inside.put(rt.LoadOp(rests, at)), reassociate=True)
            self._add(row, inside)

    def _rests(self, coefficients: SSAValue, width: SSAValue) -> SSAValue:
        """What shared coefficients make of the rows of groups: those of a number in all groups side by side."""
        write, reduced, own = self.write_to, self.reduced, len(self.square.columns.own)
        size = write.put(integer(arith.MuliOp, reduced.groups, write.whole(own)))
        rests = write.put(rt.AllocOp(size, _REALS, zero=True))
        k, outer = new_loop(write, write.whole(0), reduced.places.count)
        value = outer.put(rt.LoadOp(coefficients, k))
        for p in range(own):
            first = outer.put(integer(arith.MuliOp, width, outer.whole(p)))
            first = outer.put(integer(arith.AddiOp, _plus(first, own, outer), k))
            j, inside = new_loop(outer, outer.whole(0), reduced.groups)
            to = inside.put(integer(arith.MuliOp, inside.whole(p), reduced.groups))
            to = inside.put(integer(arith.AddiOp, to, j))
            product = inside.real(arith.MulfOp, self._of_group(first, j, inside), value)
            inside.before(ad.AccumulateOp(rests, to, product))
        return rests

    def _of_group(self, index: SSAValue, j: SSAValue, write: OpWriter) -> SSAValue:
        """A number of the j-th group."""
        first = write.put(integer(arith.MuliOp, index, self.reduced.groups))
        return write.put(rt.LoadOp(self.reduced.own, write.put(integer(arith.AddiOp, first, j))))


def _plus(index: SSAValue, by: int, write: OpWriter) -> SSAValue:
    return write.put(integer(arith.AddiOp, index, write.whole(by)))


def _minus(row: SSAValue, a: SSAValue, b: SSAValue, write: OpWriter) -> SSAValue:
    return write.real(arith.SubfOp, row, write.real(arith.MulfOp, a, b), reassociate=True)
