"""Writes what evaluations do with rows of normal linear models that are reduced by kinds, in the place of their loop.

    for j in kinds: target += -0.5 * q[j] / square(s[key[j]]) - count[j] * log(s[key[j]])

`q` are the sums of the squares of the reduced rows of each kind, by a kernel (runtime/c/kind_squares.c).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import f64, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.library.records import record
from ulam.passes.loops.kind_binding import KindBinding, KindTables
from ulam.passes.loops.linear_evaluation import (
    LARGEST_SQUARES,
    Sums,
    add_scaled,
    add_to_sum,
    ancestor_of,
    conditions_of,
    copier_outside,
    leaf_value,
    ops_between,
    write_sums,
)
from ulam.passes.loops.linear_rows import Copier, Environment, KindLeaf, Square, SquareSums, carry, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer

_REALS = rt.BufferType(f64)


def write_kinds(statement: SquareSums, top: Block) -> list[Operation]:
    """Puts a branch in the place of a nest, as `write_layout` does; what is to be done when data are bound."""
    ancestor = ancestor_of(statement.loop, top)
    before = ancestor.prev_op
    bindings = [KindBinding(statement, square, top, OpWriter(ancestor)) for square in statement.squares]
    tables = [binding.write_kinds() for binding in bindings]
    data = bindings[0].sums()
    written = list(ops_between(before, ancestor))
    write = OpWriter(statement.loop)
    used = write.both([each.used for each in tables])
    kinds = write.put(arith.SelectOp.create(operands=[used, tables[0].kinds, write.whole(0)], result_types=[i64]))
    evaluation = _Evaluation(statement, tables, kinds, copier_outside(statement))
    conditions = [used, *evaluation.begin(write)]
    conditions += conditions_of(statement, evaluation.copier, {}, write, of_keys=False)
    conditions += evaluation.conditions_of_kinds(write)
    write_sums(statement, write.both(conditions), tables[0].rows, data, evaluation.write)
    return written


@record
class _Evaluation:
    """Writes the coefficients of all kinds, their squares, and what these add up to."""

    statement: SquareSums
    tables: list[KindTables]
    kinds: SSAValue
    copier: Copier

    def begin(self, write: OpWriter) -> list[SSAValue]:
        """Computes the squares of reduced rows; whether coefficients are small enough for these."""
        self._squares: list[SSAValue] = []
        conditions: list[SSAValue] = []
        for square, tables in zip(self.statement.squares, self.tables, strict=True):
            columns, room = tables.places.count, tables.room
            size = write.put(integer(arith.MuliOp, columns, room))
            coefficients = write.put(rt.AllocOp(size, _REALS, zero=True))
            self._put_coefficients(square, tables, coefficients, write)
            squares, total = (write.put(rt.AllocOp(count, _REALS)) for count in (room, write.whole(1)))
            half = write.put(rt.AllocOp(size, _REALS))
            arguments = (tables.table, coefficients, tables.size, columns, room, squares, total, half)
            write.before(rt.KernelOp("kind_squares", arguments, location=square.steps[0][0].location))
            found = write.put(rt.LoadOp(total, write.whole(0)))
            conditions.append(write.compare("olt", found, LARGEST_SQUARES))
            self._squares.append(squares)
        return conditions

    def _put_coefficients(self, square: Square, tables: KindTables, into: SSAValue, write: OpWriter) -> None:
        """Each coefficient for all kinds side by side."""
        self._put_some(list(square.kinds.alone), {}, into, write.whole(0), tables, write)
        for loops, leaves in square.kinds.looped.items():
            env: Environment = {}
            within = write
            for loop in loops:
                env, within = self.copier.loop(loop, env, within, tables.used if loop is loops[0] else None)
            first = tables.places.of_loops(loops, len(leaves), self.copier, env, within)
            self._put_some(list(leaves), env, into, first, tables, within)

    def _put_some(
        self,
        leaves: Sequence[KindLeaf],
        env: Environment,
        into: SSAValue,
        first: SSAValue,
        tables: KindTables,
        write: OpWriter,
    ) -> None:
        """Some of them, from a column on."""
        keys = self.statement.keys
        shared = {leaf: leaf_value(leaf[0], self.copier, dict(env), write) for leaf in leaves if leaf[1] is None}
        j, inside, numbers = self._kind(write, with_keys=len(shared) < len(leaves))
        for n, (leaf, own) in enumerate(leaves):
            value = shared.get((leaf, own))
            if own is not None:
                value = leaf_value(leaf, self.copier, {**env, **keys.of_leaf(own, numbers)}, inside)
            assert value is not None
            column = inside.put(integer(arith.AddiOp, first, inside.whole(n)))
            self._put(value, into, column, j, tables, inside)

    @staticmethod
    def _put(
        value: SSAValue, into: SSAValue, column: SSAValue, j: SSAValue, tables: KindTables, write: OpWriter
    ) -> None:
        first = write.put(integer(arith.MuliOp, column, tables.room))
        write.before(rt.StoreOp(value, into, write.put(integer(arith.AddiOp, first, j))))

    def _kind(
        self, write: OpWriter, start: Sequence[SSAValue] = (), *, with_keys: bool = True
    ) -> tuple[SSAValue, OpWriter, list[SSAValue]]:
        """A loop over kinds: which one it is, a writer inside, its keys."""
        j, inside = new_loop(write, write.whole(0), self.kinds, start)
        tables, count = self.tables[0], len(self.statement.keys.values) if with_keys else 0
        numbers: list[SSAValue] = []
        for n in range(count):
            first = inside.put(integer(arith.MuliOp, inside.whole(n), tables.room))
            numbers.append(inside.put(rt.LoadOp(tables.keys, inside.put(integer(arith.AddiOp, first, j)))))
        return j, inside, numbers

    def conditions_of_kinds(self, write: OpWriter) -> list[SSAValue]:
        """Whether the scales of all kinds are as those of all rows have to be."""
        _, inside, numbers = self._kind(write, [write.whole(0)])
        env = self.statement.keys.factors(numbers, inside)
        conditions = conditions_of(self.statement, self.copier, env, inside, of_keys=True)
        if not conditions:
            return []
        holds, none = inside.put(arith.ExtUIOp(inside.both(conditions), i64)), inside.whole(1)
        flag = inside.put(arith.XOrIOp.create(operands=[holds, none], result_types=[i64]))
        (before,) = inside.anchor.operands
        found = carry(inside, inside.put(arith.OrIOp.create(operands=[before, flag], result_types=[i64])))
        return [write.compare_integers("eq", found, write.whole(0))]

    def write(self, write: OpWriter, sums: Sums) -> None:
        """Adds up what the rows of all kinds do."""
        j, inside, numbers = self._kind(write)
        env = self.statement.keys.factors(numbers, inside)
        for square, squares in zip(self.statement.squares, self._squares, strict=True):
            total = inside.put(rt.LoadOp(squares, j))
            add_scaled(square, total, self.copier, inside, sums, env=env)
        tables = self.tables[0]
        for n, each in enumerate(self.statement.keyed):
            first = inside.put(integer(arith.MuliOp, inside.whole(n), tables.room))
            place = inside.put(integer(arith.AddiOp, inside.put(integer(arith.AddiOp, first, tables.sums_from)), j))
            count = inside.put(rt.LoadOp(tables.table, place))
            value = self.copier.value(each.value, dict(env), inside)
            add_to_sum(sums, each.into, inside.real(arith.MulfOp, count, value), inside)
