"""What a nest of loops needs for iterations of its outer loop to run side by side, and what of it goes where.

    for i: { s = 0; for j: { s += f(x[i, j]) }; y[i] = g(s) }

Every value in the nest is one of these: *uniform*, the same in all iterations of the outer loop, as `j`; *summed*, on
the way of a sum that the outer loop carries; or *of a row*, as `i`, `s` and `y[i]`. What is of a row and costs next to
nothing (indices, loads of what nothing here writes) is computed again wherever it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import f64, i1, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, may_reassociate, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values_of_op
from ulam.passes.analysis.nesting import enclosing, is_inside, terminator
from ulam.passes.loops.carried_sums import lone_sum, sum_chain
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import DIVISIONS, PURE, UNKNOWN, Root, offsets, root, viewed
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.tables import is_costly_function

WHERE: dict[type[Operation], tuple[int, int]] = {
    rt.LoadOp: (0, 1),
    ad.KeptOp: (0, 1),
    rt.StoreOp: (1, 2),
    ad.AccumulateOp: (0, 1),
    ad.TakeOp: (0, 1),
    ad.KeepOp: (0, 1),
}
"""Op → which operands are the buffer and the index."""

SCALAR = (scf.ForOp, rt.AllocOp)
"""What keeps LLVM from widening the loop around: a loop inside, memory that each iteration takes for itself."""

CALLS = (rt.KernelOp, func.CallOp)
"""What rows that are side by side cannot do."""

_READS = (rt.LoadOp, ad.KeptOp)
SIZE = 400
"""Ops of a nest: what it becomes is a second version of it."""

_MOST_PRIVATE = 128
"""Elements of memory that a row takes for itself: a strip takes so many for each row."""

SHORT_COLUMNS = 16
"""Columns up to which rows are better widened than columns, where neighbouring columns are neighbours in memory."""


KEPT_TYPES = (f64, i64, i32, i1)
"""Of values that rows may carry from one loop to the next."""


class NotApplicable(Exception):
    """Why a nest stays as it is, for those who read remarks."""


@record
class RowAccess:
    """One op that touches memory. `form`: the element of the root; None if it depends on data."""

    op: Operation
    root: Root
    form: Form | None


@record(frozen=True)
class DataColumn:
    """Where a load finds data that have a row for each iteration: `stride * (i + row) + column`."""

    buffer: SSAValue
    stride: Form
    row: int
    column: Form
    least: Form
    most: Form

    @property
    def table(self) -> tuple[object, ...]:
        """Equal for loads that one transposed table serves."""
        forms = (self.stride, self.least, self.most)
        return self.buffer, self.row, *(tuple(form.items()) for form in forms)


@record
class RowNest:
    """A loop over rows and what is known of its body. Raises NotApplicable where its rows cannot run side by side."""

    loop: scf.ForOp
    may_transpose: bool = False
    """Whether data may get tables: the loop stands where what is data alone is computed once."""
    of_row: set[SSAValue] = field(default_factory=set[SSAValue])
    summed: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """Value → number of the outer loop's sum that it is a part of."""
    same: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What loops pass on unchanged → what it is."""
    accesses: dict[Operation, RowAccess] = field(default_factory=dict[Operation, RowAccess])
    written: set[Root] = field(default_factory=set[Root])
    conditions: list[Form] = field(default_factory=list[Form])
    """Must not be negative for the rows to be independent of each other."""

    private: set[Root] = field(default_factory=set[Root])
    """Memory that each iteration takes for itself."""
    columns: dict[Operation, DataColumn] = field(default_factory=dict[Operation, DataColumn])
    """Loads of data whose rows are apart in memory."""

    def __post_init__(self) -> None:
        self._find_worth()
        self.forms = IndexForms(self.loop)
        self._find_sums()
        self._find_private()
        self._find_accesses()
        self._find_rows()
        self._find_conditions()
        if self.may_transpose:
            self._find_columns()
        self.prefers_columns = self._prefers_columns()

    # ------------------------------------------------------------ whether it is worth while

    def _find_worth(self) -> None:
        size = 0
        is_scalar = costly = False
        for op in ops_within(self.loop.body.block):
            size += 1
            is_scalar = is_scalar or isinstance(op, SCALAR)
            costly = costly or is_costly_function(op)
            if not (type(op) in PURE or type(op) in DIVISIONS or type(op) in WHERE or _is_structure(op)) and not (
                isinstance(op, rt.AllocOp | rt.FillOp)
            ):
                raise NotApplicable(f"its body has {op.name}")
        if not is_scalar or not costly or constant_integer(self.loop.step) != 1:
            raise NotApplicable("")
        if size > SIZE:
            raise NotApplicable("its body is too large")

    def _prefers_columns(self) -> bool:
        """Whether columns are better widened than rows, unless there are few of them.

        So it is where none waits for the last one, and their parts are neighbours in memory, or those of rows are not.
        """
        widened = any(self.inner_loops())
        for loop in self.inner_loops():
            ends = terminator(loop.body.block).operands
            for argument, end in zip(loop.body.block.args[1:], ends, strict=True):
                is_sum = _is_product(end) or sum_chain(argument, end) is not None
                if argument in self.of_row and argument.type == f64 and not is_sum:
                    return False
            inside = [self.accesses[op] for op in loop.body.block.ops if op in self.accesses]
            widened = widened and all(self._is_beside_next(access, loop) for access in inside)
        return widened or any(
            self.is_strided(op) and op.operands[WHERE[type(op)][0]].type == rt.BufferType(f64)
            for op in self.accesses
            if enclosing(op, scf.ForOp) is not self.loop
        )

    def _is_beside_next(self, access: RowAccess, loop: scf.ForOp) -> bool:
        """Whether an access of an inner loop's next iteration is to the same element, or to one beside it."""
        if access.root in self.private:
            return True
        return access.form is not None and self.forms.stride(access.form, loop.body.block.args[0]) in (0, 1, -1)

    def is_strided(self, op: Operation) -> bool:
        """Whether an access is to memory of which neighbouring rows have parts that are apart."""
        form = self.accesses[op].form
        return (
            form is not None
            and op not in self.columns
            and not self.is_private(op)
            and self.forms.stride(form) not in (0, 1, -1)
        )

    def inner_loops(self) -> Iterator[scf.ForOp]:
        """The loops inside."""
        return (op for op in ops_within(self.loop.body.block) if isinstance(op, scf.ForOp))

    def limits(self) -> list[Form]:
        """Further forms that must not be negative for it to be worth while."""
        if not self.prefers_columns:
            return []
        found: list[Form] = []
        for loop in self.inner_loops():
            lower, upper = self.forms.of(loop.lb), self.forms.of(not_clamped(loop.ub))
            most = None if lower is None or upper is None else self.forms.bounds(plus(upper, lower, -1))[1]
            if most is None or any(is_inside(value, self.loop) for value in self.forms.values_of(most)):
                raise NotApplicable("an inner loop's size depends on the row")
            found.append(plus({(): SHORT_COLUMNS}, most, -1))
        return [form for k, form in enumerate(found) if form not in found[:k]]

    # ------------------------------------------------------------ sums

    def _find_sums(self) -> None:
        body = self.loop.body.block
        for k, (argument, yielded) in enumerate(zip(body.args[1:], terminator(body).operands, strict=True)):
            if yielded is argument:
                self.same[argument] = self.loop.iter_args[k]
                continue
            if (chain := lone_sum(self.loop, k)) is None:
                raise NotApplicable("an iteration needs what an earlier one computed")
            self.summed.update(dict.fromkeys(chain, k))

    # ------------------------------------------------------------ uniform, or of a row

    def _find_rows(self) -> None:
        body = self.loop.body.block
        self.of_row.add(body.args[0])
        for loop in self.inner_loops():
            for k, (argument, yielded) in enumerate(
                zip(loop.body.block.args[1:], terminator(loop.body.block).operands, strict=True)
            ):
                if yielded is argument:
                    self.same[argument] = self.same[loop.results[k]] = loop.iter_args[k]
        before = 0
        while before != len(self.of_row):
            before = len(self.of_row)
            self._spread(body)
        for op in ops_within(body):
            if isinstance(op, rt.FillOp) and self._depends((op.value, op.count, *offsets(op.destination))):
                raise NotApplicable("its body fills memory with what depends on the row")
        for loop in self.inner_loops():
            if any(self.resolved(v) in self.of_row for v in (loop.lb, loop.ub, loop.step)):
                raise NotApplicable("an inner loop's size depends on the row")
            if any(a in self.of_row and a.type not in KEPT_TYPES for a in loop.body.block.args[1:]):
                raise NotApplicable("an inner loop carries more than numbers")

    def _spread(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, scf.ForOp):
                self._spread(op.body.block)
                ends = terminator(op.body.block).operands
                for argument, start, end, result in zip(
                    op.body.block.args[1:], op.iter_args, ends, op.results, strict=True
                ):
                    if argument not in self.summed and argument not in self.same and self._depends((start, end)):
                        self.of_row.update((argument, result))
            elif isinstance(op, scf.IfOp):
                for region in op.regions:
                    for inner in region.blocks:
                        self._spread(inner)
                if self.is_of_row(op):
                    self.of_row.update(result for result in op.results if result not in self.summed)
            elif self.is_of_row(op):
                self.of_row.update(result for result in op.results if result not in self.summed)

    def resolved(self, value: SSAValue) -> SSAValue:
        """What a value is that loops pass on."""
        while (origin := self.same.get(value)) is not None:
            value = origin
        return value

    def _depends(self, values: Iterable[SSAValue]) -> bool:
        return any(v in self.of_row or v in self.summed for v in map(self.resolved, values))

    def is_of_row(self, op: Operation) -> bool:
        """Whether it has to run for each row: it writes, adds to a sum, or needs what is of a row."""
        if isinstance(op, ad.TargetAddOp):
            return True
        if isinstance(op, rt.AllocOp | rt.FillOp):
            return False
        if (access := self.accesses.get(op)) is not None and (
            not isinstance(op, _READS) or access.root in self.written
        ):
            return True
        if op.regions:
            return self._depends(free_values_of_op(op)) or any(
                self.is_of_row(inner) for region in op.regions for block in region.blocks for inner in block.ops
            )
        return self._depends(op.operands)

    def is_divided(self, op: Operation) -> bool:
        """Whether it is a branch with loops or memory of the row inside: its arms are run part by part."""
        return isinstance(op, scf.IfOp) and any(
            isinstance(inner, scf.ForOp | rt.AllocOp) or self.is_private(inner) for inner in ops_within(op)
        )

    def is_private(self, op: Operation) -> bool:
        """Whether it accesses memory that each iteration takes for itself."""
        return (access := self.accesses.get(op)) is not None and access.root in self.private

    def is_recomputed(self, op: Operation) -> bool:
        """Whether it is computed again for each use: ints, truth values, views, and loads of what is not written.

        Not loads of elements that data decide about, which are taken one by one.
        """
        if op.regions or not op.results or any(result in self.summed for result in op.results):
            return False
        if isinstance(op, _READS):
            access = self.accesses[op]
            return access.root not in self.written | self.private and access.form is not None
        if type(op) not in PURE and type(op) not in DIVISIONS:
            return False
        return isinstance(op, arith.SIToFPOp) or all(result.type != f64 for result in op.results)

    def is_total(self, op: Operation) -> bool:
        """Whether all rows add to the same element."""
        return isinstance(op, ad.AccumulateOp) and not self.is_private(op) and not self._depends((op.buffer, op.index))

    def is_scattered(self, op: Operation) -> bool:
        """Whether rows add to elements that are not known to differ."""
        if not isinstance(op, ad.AccumulateOp) or self.is_total(op):
            return False
        if self.is_private(op):
            return self._depends((op.index,))
        form = self.accesses[op].form
        return form is None or not self.forms.stride(form)

    def is_gathered(self, op: Operation) -> bool:
        """Whether rows read elements of their memory that data decide about."""
        return isinstance(op, rt.LoadOp) and self.is_private(op) and self._depends((op.index,))

    # ------------------------------------------------------------ memory

    def _find_accesses(self) -> None:
        for op in ops_within(self.loop.body.block):
            if (where := WHERE.get(type(op))) is None:
                continue
            buffer, index = (op.operands[k] for k in where)
            found = RowAccess(op, _root(buffer), self._element(buffer, index))
            self.accesses[op] = found
            if not isinstance(op, _READS):
                self.written.add(found.root)

    def _find_private(self) -> None:
        for op in ops_within(self.loop.body.block):
            if isinstance(op, rt.AllocOp):
                size = self.forms.of(op.count)
                if op.res.type not in (rt.BufferType(f64), rt.BufferType(i64)) or not _is_only_accessed(op.res):
                    raise NotApplicable("a row's memory goes elsewhere")
                if size is None or any(is_inside(value, self.loop) for value in self.forms.values_of(size)):
                    raise NotApplicable("the size of a row's memory is not known before")
                self.private.add(op.res)
                self.conditions.append(plus({(): _MOST_PRIVATE}, size, -1))
            elif isinstance(op, rt.FillOp):
                base = viewed(op.destination).owner
                if not isinstance(base, rt.AllocOp) or not is_inside(base.res, self.loop):
                    raise NotApplicable("its body fills memory")
                if enclosing(op, (scf.IfOp, scf.ForOp)) is not enclosing(base, (scf.IfOp, scf.ForOp)):
                    raise NotApplicable("its body fills memory under a condition")

    def _element(self, buffer: SSAValue, index: SSAValue) -> Form | None:
        form = self.forms.of(index)
        while form is not None and is_inside(buffer, self.loop) and isinstance(view := buffer.owner, rt.ViewOp):
            offset = self.forms.of(view.offset)
            form = plus(form, offset) if offset is not None else None
            buffer = view.buffer
        base = _base(buffer)
        while form is not None and buffer is not base:
            view = buffer.owner
            assert isinstance(view, rt.ViewOp)
            offset = self.forms.of(view.offset)
            form = plus(form, offset) if offset is not None else None
            buffer = view.buffer
        return form

    def _find_columns(self) -> None:
        slices = DataSlices()
        conditions = [*self.conditions, self.forms.span]
        if not all(slices.is_data(v) for form in conditions for v in self.forms.values_of(form)):
            return
        for op, access in self.accesses.items():
            if not isinstance(op, rt.LoadOp) or access.form is None or not slices.is_data(op.res):
                continue
            if not self._has_data_control(op, slices):
                continue
            buffer = viewed(op.buffer)
            found = self.forms.rows_in(access.form)
            if found is None or not isinstance(buffer.owner, rt.BoundOp):
                continue
            stride, row, column = found
            least, most = self.forms.bounds(column)
            if least is not None and most is not None:
                self.columns[op] = DataColumn(buffer, stride, row, column, least, most)

    def _has_data_control(self, op: Operation, slices: DataSlices) -> bool:
        parent = op.parent_op()
        while parent is not None and parent is not self.loop:
            if not slices.has_data_control(parent):
                return False
            parent = parent.parent_op()
        return True

    def _find_conditions(self) -> None:
        found = list(self.accesses.values())
        if UNKNOWN in self.written or (self.written and any(access.root is UNKNOWN for access in found)):
            raise NotApplicable("it is not known which memory it uses")
        for written in self.written - self.private:
            touching = [access for access in found if access.root is written]
            if all(isinstance(access.op, ad.AccumulateOp) for access in touching):
                continue  # additions may be exchanged
            forms = [access.form for access in touching if access.form is not None]
            apart = self.forms.apart(forms) if len(forms) == len(touching) else None
            if apart is None:
                raise NotApplicable("an iteration may read or write what another one writes")
            self.conditions += [form for form in apart if form not in self.conditions]


def _is_structure(op: Operation) -> bool:
    if isinstance(op, scf.IfOp):
        return all(result.type in KEPT_TYPES for result in op.results)
    return isinstance(op, scf.ForOp | scf.YieldOp | ad.TargetAddOp)


def _is_only_accessed(buffer: SSAValue) -> bool:
    """Whether nothing but accesses, fills and views of such use a buffer."""
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, rt.ViewOp):
            if not _is_only_accessed(op.results[0]):
                return False
        elif isinstance(op, rt.FillOp):
            if use.index != 0:
                return False
        elif type(op) not in WHERE or WHERE[type(op)][0] != use.index:
            return False
    return True


def _base(buffer: SSAValue) -> SSAValue:
    return viewed(buffer)


def _root(buffer: SSAValue) -> Root:
    """Its root as seen from a loop: memory that a branch has taken is the branch's result behind it."""
    found = root(buffer)
    if found is not UNKNOWN:
        return found
    base = viewed(buffer)
    return base if isinstance(base.owner, scf.IfOp) and _is_taken_there(base.owner, base) else UNKNOWN


def _is_taken_there(branch: scf.IfOp, result: SSAValue) -> bool:
    """Whether both arms yield memory that they have taken themselves, and yield it once."""
    position = branch.results.index(result)
    for region in branch.regions:
        if not region.blocks:
            return False
        yielded = terminator(region.block).operands
        taken = yielded[position]
        if not isinstance(taken.owner, rt.AllocOp) or taken.owner.parent is not region.block:
            return False
        if sum(value is taken for value in yielded) > 1:
            return False
    return True


# ---------------------------------------------------------------- sums


def _is_product(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.MulfOp) and may_reassociate(op)
