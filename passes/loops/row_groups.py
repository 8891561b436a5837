"""Groups of rows of the same weight, found when data are bound: what `bind` does where equal rows are computed once.

Written are ops that compare rows by the columns that they read, and that copy one row for all that are equal, those of
a weight behind each other (runtime/c/row_groups.c). They stand in front of a loop; `hoist_data` moves them to `bind`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI, constant
from ulam.library.records import record
from ulam.passes.loops.coalesced_rows import claim, coalesced
from ulam.passes.loops.op_writer import integer
from ulam.passes.loops.unit_modules import take_slots

TOO_FEW = "too few rows are equal"
_FIGURES = 6
"""That the kernel gives: groups, rows in them, whether equal ones are computed once, whether rows are in another order,
rows that take the last arm, arms that some rows take."""
_MOST_GROUPS = 64
"""Of rows of the same weight; the runtime's kernel makes no more."""


@record(frozen=True)
class Strided:
    """A column in memory: `width` elements of each row. `stays`: it can be read where it is, or where `otherwise` is,
    which has the same rows in another order.
    """

    buffer: SSAValue
    stride: SSAValue
    width: SSAValue
    across: SSAValue
    stays: bool
    otherwise: SSAValue | None = None
    fill: Callable[[], None] | None = None
    """Writes what puts the column into memory that others share: whenever it is needed."""
    is_read: bool = True
    """Whether groups of rows read it; else it tells only which rows are equal."""
    is_compared: bool = True
    """Whether rows have to be equal in it."""
    is_mean: bool = False
    """Whether rows that are put together have the mean of it."""


@record(frozen=True)
class _OfGroups:
    """Numbers of groups of equal rows: first rows, the numbers, how many groups, whether rows are put together."""

    heads: SSAValue
    numbers: SSAValue
    count: SSAValue
    are_taken: SSAValue


class RowGroups:
    """Writes what `bind` does for a loop over rows: `before` is to stand in front of it."""

    def __init__(self, module: ModuleOp, loop: Operation) -> None:
        self.module, self.loop, self.location = module, loop, loop.location
        self.before: list[Operation] = []
        self.numbers: dict[int, SSAValue] = {}
        self.zero, self.one = self.number(0), self.number(1)
        self.bytes = self.zero
        self.count = self.zero
        """The number of rows."""
        self.order: SSAValue | None = None
        """Memory of as many ints, which is read by groups that are taken, and by nothing else."""
        self.leaves_out = False
        """Whether there may be rows with which nothing is done, which are in no group."""
        self.share = (1, 2)
        """A fraction of the rows: so many kinds there may be."""

    def gain_more_than_nest(self) -> None:
        """Asks for fewer kinds of rows with sums of their own, if the loop stands beside a nest: that computes what
        belongs to a group once for it, and runs in half of the time.
        """
        if coalesced(self.loop) is not None:
            self.share = (2, 5)

    def _most_kinds(self) -> SSAValue:
        times, of = map(self.number, self.share)
        several = self.integer(arith.MuliOp, self.count, times)
        return self.put(arith.DivSIOp.create(operands=(several, of), result_types=(i64,)))

    def put(self, op: Operation) -> SSAValue:
        """Writes an op; its result."""
        self.before.append(op)
        return op.results[0]

    def number(self, value: int) -> SSAValue:
        """A constant, written once."""
        if value not in self.numbers:
            self.numbers[value] = self.put(constant(value, i64))
        return self.numbers[value]

    def integer(self, cls: type[Operation], a: SSAValue, b: SSAValue) -> SSAValue:
        """An operation of two integers."""
        return self.put(integer(cls, a, b))

    def kernel(self, name: str, *arguments: SSAValue) -> None:
        """A call of the runtime."""
        self.before.append(rt.KernelOp(name, arguments, location=self.location))

    def alloc(self, count: SSAValue, element: Attribute, *, zero: bool = False) -> SSAValue:
        """Memory for a while."""
        return self.put(rt.AllocOp(count, rt.BufferType(element), zero=zero, location=self.location))

    def lasting(self, count: SSAValue, element: Attribute, *, zero: bool = False) -> SSAValue:
        """Memory that stays as long as the data are bound."""
        size = self.number(8 if element == f64 else 4)
        self.bytes = self.integer(arith.AddiOp, self.bytes, self.integer(arith.MuliOp, count, size))
        return self.alloc(count, element, zero=zero)

    def note(self) -> None:
        """Lets users see what was chosen: equal rows once, or rows without those with which nothing is done."""
        is_taken = self.is_moved if self.leaves_out else self.is_taken
        outcome = self.put(arith.SelectOp.create(operands=(is_taken, self.zero, self.one), result_types=(i64,)))
        figures = {
            "rows": self.count, "different": self.different, "computed": self.left, "groups": self.groups,
            "bytes": self.bytes,
        }  # fmt: skip
        self.note_choice("unique rows", TOO_FEW, figures, outcome)

    def note_choice(self, layout: str, reason: str, figures: dict[str, SSAValue], outcome: SSAValue) -> None:
        """Notes what became of a layout."""
        slot = take_slots(self.module, 1 + len(figures))
        values, place = tuple(figures.values()), self.location
        op = rt.LayoutOp(layout, slot, (reason,), tuple(figures), outcome, values, location=place)
        claim(op, self.loop)
        self.before.append(op)

    def layout(
        self,
        flat: list[Strided],
        is_kept: bool = False,
        arms: Callable[[], SSAValue] | None = None,
        weight: Strided | None = None,
    ) -> list[SSAValue]:
        """The columns that the loop reads; besides, the groups.

        `is_kept`: the loop as it was is there, too; `arms`: writes which of several loops each row takes; `weight`: the
        column in which equal rows may differ, since all that they add is a multiple of it. Those that are means are
        columns of their own.
        """
        count = self.count
        groups, known = self.alloc(count, i32, zero=True), self.one
        most = self._most_kinds()
        compared = [column for column in flat if column is not weight and column.is_compared]
        ordered = sorted(compared, key=lambda column: element_of(column.buffer) == f64)
        # A sample tells of measurements that they are all different. Ints first: few kinds are found in a small table.
        for column in (column for column in ordered if element_of(column.buffer) == f64):
            found = self.alloc(self.one, i64)
            self.kernel("sample_reals", *self._in_memory(column), found)
            known = self.integer(arith.MinSIOp, known, self.put(rt.LoadOp(found, self.zero)))
        signed = [column for column in flat if column is weight or column.is_mean]
        known = self._by_signs(signed, groups, known, most)
        for column in ordered:
            found = self.alloc(self.one, i64)
            name = f"group_{kind_of(element_of(column.buffer))}"
            self.kernel(name, *self._in_memory(column), groups, known, most, groups, found)
            known = self.put(rt.LoadOp(found, self.zero))
        some = self.integer(arith.MaxSIOp, known, self.zero)
        heads, counts = self.alloc(some, i32), self.alloc(some, i32)
        self.kernel("group_heads", groups, count, some, heads, counts)
        of_groups = self._means(flat, weight, groups, some)
        if weight is not None:
            of_groups[flat.index(weight)] = sums = self.alloc(some, f64)
            self.kernel("sum_weights", self._put_in_place(weight), count, weight.stride, groups, some, sums, counts)
        self.order = order = groups  # which are needed no more
        takes, armed = (groups, self.zero) if arms is None else (arms(), count)
        room = self.number(_MOST_GROUPS)
        self.starts = self.alloc(self.number(_MOST_GROUPS + 1), i64)
        self.weights = self.alloc(room, f64)
        self.arms, figures = self.alloc(room, i64), self.alloc(self.number(_FIGURES), i64)
        self.kernel(
            "weigh_rows",
            heads,
            counts,
            takes,
            armed,
            count,
            some,
            room,
            order,
            self.starts,
            self.weights,
            self.arms,
            figures,
        )
        self.groups = self.put(rt.LoadOp(figures, self.zero))
        left = self.put(rt.LoadOp(figures, self.one))
        self.different, self.left = some, left
        self.is_taken, self.is_moved = self._flag(figures, 2), self._flag(figures, 3)
        self.others, self.parts = (self.put(rt.LoadOp(figures, self.number(n))) for n in (4, 5))
        moved = self.is_taken if is_kept else self.is_moved
        copied = self.put(arith.SelectOp.create(operands=(moved, left, self.zero), result_types=(i64,)))
        self.kept = copied if is_kept else left
        taken = self.put(rt.LoadOp(figures, self.number(2))) if of_groups else self.zero
        given = {k: _OfGroups(heads, numbers, some, taken) for k, numbers in of_groups.items()}
        return [
            self._copied(column, order, copied if is_kept or column.stays else left, is_kept, given.get(k))
            if column.is_read
            else column.buffer
            for k, column in enumerate(flat)
        ]

    def _by_signs(self, columns: list[Strided], groups: SSAValue, known: SSAValue, most: SSAValue) -> SSAValue:
        """Splits groups by the signs of weights, and of numbers that rows have the mean of, so that what is infinite
        times these is what it was; how many groups there are.
        """
        if not columns:
            return known
        kinds = self.alloc(self.count, i32)
        for column in columns:
            are_moderate, found = self.alloc(self.one, i64), self.alloc(self.one, i64)
            self.kernel("weight_kinds", self._put_in_place(column), self.count, column.stride, kinds, are_moderate)
            moderate = self.put(rt.LoadOp(are_moderate, self.zero))
            none = self.put(
                arith.CmpiOp.create(
                    operands=(moderate, self.zero), result_types=(i1,), properties={"predicate": CMPI["slt"]}
                )
            )
            known = self.put(arith.SelectOp.create(operands=(none, moderate, known), result_types=(i64,)))
            self.kernel(
                "group_ints", kinds, self.count, self.one, self.one, self.zero, groups, known, most, groups, found
            )
            known = self.put(rt.LoadOp(found, self.zero))
        return known

    def _means(
        self, flat: list[Strided], weight: Strided | None, groups: SSAValue, some: SSAValue
    ) -> dict[int, SSAValue]:
        """Of columns, by their positions, the mean of each group."""
        found: dict[int, SSAValue] = {}
        for k, column in enumerate(flat):
            if not column.is_mean:
                continue
            weights, by = self._weights(weight)
            found[k] = self.alloc(some, f64)
            values = (self._put_in_place(column), self.count, column.stride)
            self.kernel("group_means", *values, weights, by, groups, some, found[k])
        return found

    def _weights(self, weight: Strided | None) -> tuple[SSAValue, SSAValue]:
        """Those of rows, at what distances."""
        if weight is not None:
            return self._put_in_place(weight), weight.stride
        ones = self.alloc(self.one, f64)
        self.before.append(rt.FillOp(ones, self.put(constant(1.0, f64)), self.one))
        return ones, self.zero

    def _in_memory(self, column: Strided) -> tuple[SSAValue, ...]:
        """A column for kernels."""
        return self._put_in_place(column), self.count, column.width, column.stride, column.across

    @staticmethod
    def _put_in_place(column: Strided) -> SSAValue:
        """The memory of a column, which has it from now on."""
        if column.fill is not None:
            column.fill()
        return column.buffer

    def _flag(self, figures: SSAValue, position: int) -> SSAValue:
        figure = self.put(rt.LoadOp(figures, self.number(position)))
        return self.put(
            arith.CmpiOp.create(operands=(figure, self.zero), result_types=(i1,), properties={"predicate": CMPI["ne"]})
        )

    def _copied(
        self, column: Strided, order: SSAValue, number: SSAValue, is_kept: bool, of_groups: _OfGroups | None
    ) -> SSAValue:
        """A column in the order of the groups; where it stays as it is, it is not copied."""
        buffer, element = self._put_in_place(column), element_of(column.buffer)
        size = number if column.width is self.one else self.integer(arith.MuliOp, number, column.width)
        out = self.lasting(size, element)
        length = self.one
        for many, by in ((self.count, column.stride), (column.width, column.across)):
            if many is not self.one:
                last = self.integer(arith.MuliOp, self.integer(arith.SubiOp, many, self.one), by)
                length = self.integer(arith.AddiOp, length, last)
        if of_groups is not None:
            found = (of_groups.heads, of_groups.numbers, of_groups.count, of_groups.are_taken)
            self.kernel("take_of_groups", buffer, order, number, column.stride, length, *found, out)
        else:
            place = (column.width, column.stride, column.across, length)
            self.kernel(f"take_{kind_of(element)}", buffer, order, number, *place, out)
        if not column.stays or is_kept:
            return out
        values = (out, column.otherwise or buffer)
        arms = [Region(Block([scf.YieldOp.create(operands=(value,))])) for value in values]
        return self.put(scf.IfOp.create(operands=(self.is_moved,), result_types=(buffer.type,), regions=arms))


def element_of(buffer: SSAValue) -> Attribute:
    """What a buffer has."""
    assert isinstance(buffer.type, rt.BufferType)
    return buffer.type.element


def kind_of(element: Attribute) -> str:
    """How kernels call it."""
    return "reals" if element == f64 else "ints"
