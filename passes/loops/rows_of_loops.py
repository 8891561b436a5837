"""Loops over the same rows of data that hand on what they compute of each: what they read, and that only sums come out.

    for k: for n in 0:N: eta[n] += X[n + N * k] * b[k]
    for n in 0:N: target += f(eta[n], y[n])

Their rows may be taken in any order, in groups, or once for all that are equal, as those of single loops (`row_loops`).
Such loops stand behind each other, or in one over strips of rows; a kernel may have multiplied the data (`multiply`).
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import f64, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, in_order, is_inside, terminator
from ulam.passes.loops.bound_forms import BoundForms
from ulam.passes.loops.carried_sums import lone_sum
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import DIVISIONS, PURE, UNKNOWN, Root, changed_roots_within, may_overlap, root, viewed
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.row_loops import NoRows
from ulam.passes.loops.tables import is_costly_function

_MOST_LOOPS = 8
ELEMENTS: dict[type[Operation], tuple[int, int]] = {rt.LoadOp: (0, 1), rt.StoreOp: (1, 2), ad.AccumulateOp: (0, 1)}
"""Memory op → which operands are the buffer and the index."""
_AROUND = (scf.ForOp, scf.YieldOp, rt.LoadOp, rt.AllocOp)
"""What may stand around loops over rows, besides what is pure."""


@record(frozen=True)
class StripsOfRows:
    """A loop that takes so many rows at a time: `begin = size * strip`, `end = min(begin + size, N)`."""

    loop: scf.ForOp
    size: int
    begin: SSAValue
    end: arith.MinSIOp


@record(frozen=True)
class RowElement:
    """What a row reads of a matrix of data, or has of a product: `buffer[n + column * N]`."""

    op: Operation
    rows: scf.ForOp
    """The loop over rows that it stands in."""
    form: Form
    column: Form
    forms: IndexForms


@record
class RowsOfLoops:
    """Loops over the same rows. Raises NoRows if they are not such; without a text where there are none."""

    ops: list[Operation]
    """The outermost loops, in order, of one block."""
    count: SSAValue
    """The number of rows."""
    strips: StripsOfRows | None
    inside: list[rt.AllocOp]
    """Memory of a strip."""
    bound: dict[int, SSAValue]
    """What `bind` puts into slots."""
    made_by_products: set[SSAValue]
    """Memory that kernels write which multiply."""
    memory: list[rt.AllocOp] = field(default_factory=list[rt.AllocOp])
    """What hands on one element of each row."""
    products: list[rt.KernelOp] = field(default_factory=list[rt.KernelOp])
    behind: list[Operation] = field(default_factory=list[Operation])
    """Checks between them of what they find."""
    loops: list[scf.ForOp] = field(default_factory=list[scf.ForOp])
    """The loops over rows themselves."""
    columns: dict[SSAValue, list[RowElement]] = field(default_factory=dict[SSAValue, list[RowElement]])
    """Buffer of data → what rows read of it."""
    missing: list[SSAValue] = field(default_factory=list[SSAValue])
    """Those that some rows do not read: they may then not be there."""
    handed: list[Operation] = field(default_factory=list[Operation])
    """Accesses of `memory`."""
    results: list[RowElement] = field(default_factory=list[RowElement])
    """What rows read of products."""
    chosen: list[tuple[rt.LoadOp, scf.ForOp, SSAValue]] = field(
        default_factory=list[tuple[rt.LoadOp, scf.ForOp, SSAValue]]
    )
    """The same where data of the row choose the column, which is the last."""

    @staticmethod
    def of(loop: scf.ForOp, bound: dict[int, SSAValue], made_by_products: set[SSAValue]) -> RowsOfLoops:
        """The loops that a loop which adds to the target belongs to. Raises NoRows."""
        strips, block = strips_of(loop, bound), loop.parent
        assert block is not None
        if strips is not None:
            inside = [op for op in loop.body.block.ops if isinstance(op, rt.AllocOp)]
            rows = RowsOfLoops([loop], strips.end.rhs, strips, inside, bound, made_by_products)
        else:
            if constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1:
                raise NoRows
            rows = RowsOfLoops([loop], not_clamped(loop.ub), None, [], bound, made_by_products)
        rows._find_makers(block)
        if not rows.memory and not rows.products and not rows.inside:
            raise NoRows
        slices = DataSlices()
        if constant_integer(rows.count) is not None or not slices.is_data(rows.count):
            raise NoRows("the number of rows is not told by the data")
        for op in rows.ops:
            if isinstance(op, scf.ForOp):
                _Reader(rows, op, slices).read()
        rows._check(slices)
        return rows

    def _find_makers(self, block: Block) -> None:
        """What writes, and what else reads, the memory that rows hand on."""
        found: dict[Operation, None] = dict.fromkeys(self.ops)
        work, seen = list(self.ops), set[SSAValue]()
        while work:
            op = work.pop()
            for inner in ops_within(op):
                buffer = inner.operands[ELEMENTS[type(inner)][0]] if type(inner) in ELEMENTS else None
                if buffer is None or buffer in seen or not isinstance(made := buffer.owner, rt.AllocOp):
                    continue
                if made.parent is not block or not_clamped(made.count) is not self.count and not self.is_product(made):
                    continue
                seen.add(buffer)
                if not any(use.operation.parent is not block for use in buffer.uses):
                    continue
                for use in buffer.uses:
                    user = ancestor_in(use.operation, block)
                    if isinstance(user, rt.KernelOp) and user.function.data == "multiply":
                        if user not in self.products:
                            self.products.append(user)
                    elif not isinstance(user, scf.ForOp):
                        raise NoRows("something else reads what is computed of its rows")
                    elif user not in found:
                        found[user] = None
                        work.append(user)
                        if len(found) > _MOST_LOOPS:
                            raise NoRows("it belongs to many loops")
                if not self.is_product(made):
                    self.memory.append(made)
        self.ops = in_order(found)

    def is_product(self, made: rt.AllocOp) -> bool:
        """Whether a kernel that multiplies writes memory."""
        return made.res in self.made_by_products

    def is_row_loop(self, op: Operation) -> bool:
        """Whether an op is a loop over all the rows, or those of a strip."""
        if not isinstance(op, scf.ForOp) or constant_integer(op.step) != 1:
            return False
        if self.strips is not None and op.lb is self.strips.begin:
            return op.ub is self.strips.end.result
        return constant_integer(op.lb) == 0 and not_clamped(op.ub) is self.count

    def _check(self, slices: DataSlices) -> None:
        """That something is gained, and that all can be moved to the last of the loops."""
        if not self.columns:
            raise NoRows("its rows read no data of their own")
        for buffer, elements in self.columns.items():
            if not any(map(_is_surely_read, elements)):
                if any(element.column or not _has_data_control(element, slices) for element in elements):
                    raise NoRows("whether a row has some data depends on parameters")
                self.missing.append(buffer)
        if not any(is_costly_function(op) for loop in self.loops for op in ops_within(loop)):
            raise NoRows("they cost little")
        for product in self.products:
            x, _, rows, _, _, _ = product.arguments
            if rows is not self.count or not isinstance(x.owner, rt.BoundOp):
                raise NoRows("a row reads a product of parameters")
        self._check_between()

    def needs_data_itself(self) -> bool:
        """Whether data say which data rows read."""
        work = [v for found in self.columns.values() for each in found for v in each.forms.values_of(each.column)]
        seen = set[SSAValue]()
        while work:
            value = work.pop()
            if value in seen or not isinstance(op := value.owner, Operation):
                continue
            seen.add(value)
            if isinstance(op, rt.LoadOp):
                return True
            work += op.operands
        return bool(self.missing)

    def _check_between(self) -> None:
        own, last = set(self.ops), self.ops[-1]
        read: set[Root] = set()
        for op in self.ops:
            for inner in ops_within(op):
                if isinstance(inner, rt.LoadOp):
                    read.add(root(inner.buffer))
        results = {result for op in self.ops for result in op.results}
        op: Operation | None = self.ops[0]
        while op is not None and op is not last:
            if any(operand in results for inner in ops_within(op) for operand in inner.operands):
                if op in own or (type(op) not in PURE and not rt.HarmlessAttr.marks(op)):
                    raise NoRows("what is between its loops needs what they find")
                self.behind.append(op)
                results.update(op.results)
            elif op not in own:
                written = changed_roots_within(op)
                if op not in self.products and any(may_overlap(a, b) for a in written for b in read):
                    raise NoRows("what its rows read is written between its loops")
                if UNKNOWN in written or isinstance(op, rt.MarkOp):
                    raise NoRows(f"between its loops stands {op.name}")
            op = op.next_op


def _is_surely_read(element: RowElement) -> bool:
    """Whether a matrix of data is there: all rows read it, or what is in loops over its columns does."""
    around = element.op.parent_op()
    while around is not element.rows:
        if isinstance(around, scf.IfOp) or not element.column:
            return False
        assert around is not None
        around = around.parent_op()
    return True


def _has_data_control(element: RowElement, slices: DataSlices) -> bool:
    """Whether data decide which rows read an element."""
    around = element.op.parent_op()
    while around is not element.rows:
        assert around is not None
        if not slices.has_data_control(around):
            return False
        around = around.parent_op()
    return slices.is_data(element.op.results[0])


def made_by_products(function: Operation) -> set[SSAValue]:
    """Memory that kernels write which multiply."""
    kernels = (op for op in ops_within(function) if isinstance(op, rt.KernelOp))
    return {op.arguments[-1] for op in kernels if op.function.data == "multiply"}


def strips_of(loop: scf.ForOp, bound: dict[int, SSAValue]) -> StripsOfRows | None:
    """The loop as one over strips of rows; None if it is none."""
    if constant_integer(loop.lb) != 0 or constant_integer(loop.step) != 1:
        return None
    for use in loop.body.block.args[0].uses:
        scaled = use.operation
        size = constant_integer(scaled.operands[1 - use.index]) if isinstance(scaled, arith.MuliOp) else None
        if size is None or size & (size - 1) or scaled.parent is not loop.body.block:
            continue
        for ahead in [each.operation for each in scaled.results[0].uses]:
            if (
                not isinstance(ahead, arith.AddiOp)
                or constant_integer(ahead.rhs) != size
                or not ahead.result.has_one_use()
            ):
                continue
            end = next(iter(ahead.result.uses)).operation
            if isinstance(end, arith.MinSIOp) and end.lhs is ahead.result:
                if loop.body.block.args[0].has_one_use() and _are_all(loop.ub, size, end.rhs, loop, bound):
                    return StripsOfRows(loop, size, scaled.results[0], end)
    return None


def _are_all(strips: SSAValue, size: int, count: SSAValue, loop: scf.ForOp, bound: dict[int, SSAValue]) -> bool:
    """Whether so many strips have all rows: `(N + size - 1) >> log2(size)`."""
    forms = BoundForms(loop, bound=bound)
    shifted = forms.made(not_clamped(strips)).owner
    if not isinstance(shifted, arith.ShRSIOp) or constant_integer(shifted.rhs) != size.bit_length() - 1:
        return False
    form, rows = forms.of(shifted.lhs), forms.of(count)
    return form is not None and rows is not None and plus(form, rows, -1) == {(): size - 1}


@record
class _Reader:
    """Finds what an outermost loop does with rows."""

    rows: RowsOfLoops
    outer: scf.ForOp
    slices: DataSlices
    numbers: set[SSAValue] = field(default_factory=set[SSAValue])
    """What is computed from the numbers of rows."""

    def read(self) -> None:
        """Raises NoRows if it does anything but to compute rows."""
        body = self.outer.body.block
        for k, (argument, end) in enumerate(zip(body.args[1:], terminator(body).operands, strict=True)):
            if end is argument:
                continue
            if argument.type != i64 or lone_sum(self.outer, k) is None:
                raise NoRows("an iteration needs what an earlier one computed")
        if self.rows.is_row_loop(self.outer):
            self._read_rows(self.outer)
            return
        strips = self.rows.strips
        if (strips is None or self.outer is not strips.loop) and self.outer.results:
            raise NoRows("the loops around its rows carry something")
        self._read_around(self.outer.body.block)

    def _read_around(self, block: Block) -> None:
        """What stands around loops over rows is the same for all rows."""
        for op in block.ops:
            if self.rows.is_row_loop(op):
                assert isinstance(op, scf.ForOp)
                self._read_rows(op)
                continue
            if type(op) not in PURE and type(op) not in DIVISIONS and not isinstance(op, _AROUND):
                raise NoRows(f"around its rows stands {op.name}")
            if isinstance(op, rt.LoadOp) and self._is_handed(op.buffer):
                raise NoRows("what is computed of a row is read by others")
            strips = self.rows.strips
            if strips is not None and any(operand is strips.begin for operand in op.operands):
                if not isinstance(op, arith.AddiOp):
                    raise NoRows("it uses the number of a row")
            if isinstance(op, scf.ForOp):
                if not self.slices.has_data_control(op):
                    raise NoRows("how often it runs depends on parameters")
                self._read_around(op.body.block)

    def _is_handed(self, buffer: SSAValue) -> bool:
        made = viewed(buffer).owner
        return isinstance(made, rt.AllocOp) and (
            made in self.rows.memory or made in self.rows.inside or self.rows.is_product(made)
        )

    def _read_rows(self, loop: scf.ForOp) -> None:
        for k, (argument, end) in enumerate(
            zip(loop.body.block.args[1:], terminator(loop.body.block).operands, strict=True)
        ):
            if end is argument:
                continue
            if argument.type != i64 or lone_sum(loop, k) is None:
                raise NoRows("an iteration needs what an earlier one computed")
        self.rows.loops.append(loop)
        self.numbers.add(loop.body.block.args[0])
        self._visit(loop.body.block, loop, IndexForms(loop))

    def _visit(self, block: Block, loop: scf.ForOp, forms: IndexForms) -> None:
        for op in block.ops:
            numbered = [k for k, operand in enumerate(op.operands) if operand in self.numbers]
            if type(op) in ELEMENTS:
                self._element(op, numbered, loop, forms)
            elif isinstance(op, rt.CheckOp):
                if not rt.HarmlessAttr.marks(op) or 0 in numbered:
                    raise NoRows("it has a check on which it depends what may be read")
            elif op.regions or isinstance(op, scf.YieldOp | ad.TargetAddOp | rt.AllocOp):
                if numbered or not isinstance(op, scf.ForOp | scf.IfOp | scf.YieldOp | ad.TargetAddOp | rt.AllocOp):
                    raise NoRows("it uses the number of a row")
                for region in op.regions:
                    for inside in region.blocks:
                        self._visit(inside, loop, forms)
            elif type(op) in PURE or type(op) in DIVISIONS:
                if numbered:
                    self.numbers.update(op.results)
            else:
                raise NoRows(f"it has {op.name}")

    def _element(self, op: Operation, numbered: list[int], loop: scf.ForOp, forms: IndexForms) -> None:
        at, place = ELEMENTS[type(op)]
        buffer, index = op.operands[at], op.operands[place]
        if any(k != place for k in numbered):
            raise NoRows("it uses the number of a row")
        made = viewed(buffer).owner
        if self._is_handed(buffer):
            assert isinstance(made, rt.AllocOp)
            self._handed(op, made, index, loop, forms)
        elif not isinstance(op, rt.LoadOp):
            if numbered or not is_inside(viewed(buffer), loop):
                raise NoRows("it writes to memory that others read")
        elif numbered:
            if not isinstance(made, rt.BoundOp) or op.res.type not in (f64, i32):
                raise NoRows("a row reads a parameter of its own")
            self._column(op, loop, forms)

    def _handed(self, op: Operation, made: rt.AllocOp, index: SSAValue, loop: scf.ForOp, forms: IndexForms) -> None:
        form = forms.of(index)
        if op.operands[ELEMENTS[type(op)][0]] is not made.res:
            raise NoRows("a row needs what is computed of another one")
        if self.rows.is_product(made):
            if not isinstance(op, rt.LoadOp):
                raise NoRows("a row changes a product")
            if form is None:
                self.rows.chosen.append((op, loop, self._chosen_column(index, loop)))
                return
            self.rows.results.append(RowElement(op, loop, form, self._column_of(form, forms), forms))
            return
        strips = self.rows.strips
        first = forms.of(strips.begin) if strips is not None and made in self.rows.inside else {}
        assert first is not None
        if form is None or plus(form, first) != {(forms.variable,): 1}:
            raise NoRows("a row needs what is computed of another one")
        if made in self.rows.memory:
            self.rows.handed.append(op)

    def _chosen_column(self, index: SSAValue, loop: scf.ForOp) -> SSAValue:
        """`column`, of `column * N + n`."""
        total, row = index.owner, loop.body.block.args[0]
        if isinstance(total, arith.AddiOp) and row in total.operands:
            product = total.operands[0 if total.operands[1] is row else 1].owner
            if isinstance(product, arith.MuliOp) and self.rows.count in product.operands:
                column = product.operands[0 if product.operands[1] is self.rows.count else 1]
                if column not in self.numbers:
                    return column
        raise NoRows("a row needs what is computed of another one")

    def _column(self, op: rt.LoadOp, loop: scf.ForOp, forms: IndexForms) -> None:
        form, view = forms.of(op.index), op.buffer
        while form is not None and isinstance(owner := view.owner, rt.ViewOp):
            offset = forms.of(owner.offset)
            form = None if offset is None else plus(form, offset)
            view = owner.buffer
        if form is None:
            raise NoRows("where the data of a row are is itself data")
        column = self._column_of(form, forms)
        if not all(self.slices.is_data(value) for value in forms.values_of(column)):
            raise NoRows("what data its rows read depends on parameters")
        self.rows.columns.setdefault(view, []).append(RowElement(op, loop, form, column, forms))

    def _column_of(self, form: Form, forms: IndexForms) -> Form:
        """The column of an element: what the number of rows is multiplied by."""
        count = forms.of(self.rows.count)
        if count is None or len(count) != 1 or list(count.values()) != [1] or len(next(iter(count))) != 1:
            raise NoRows("the number of its rows is a sum")
        (number,) = next(iter(count))
        column: Form = {}
        for monomial, by in form.items():
            if monomial == (forms.variable,) and by == 1:
                continue
            if forms.variable in monomial or monomial.count(number) != 1:
                raise NoRows("the columns of its data are not behind each other")
            column[tuple(k for k in monomial if k != number)] = by
        if (forms.variable,) not in form:
            raise NoRows("the data of a row are not at equal distances")
        strips = self.rows.strips
        if strips is not None and any(
            is_inside(value, strips.loop) and self._is_of_strip(value) for value in forms.values_of(column)
        ):
            raise NoRows("strips of rows read different columns")
        return column

    def _is_of_strip(self, value: SSAValue) -> bool:
        """Whether a value is computed from the number of a strip, or from memory."""
        assert self.rows.strips is not None
        work, seen = [value], set[SSAValue]()
        while work:
            value = work.pop()
            if value in seen or not is_inside(value, self.rows.strips.loop):
                continue
            seen.add(value)
            op = value.owner
            if isinstance(op, Block):
                loop = op.parent_op()
                if not isinstance(loop, scf.ForOp) or loop is self.rows.strips.loop or value is not op.args[0]:
                    return True
                work += [loop.lb, loop.ub]
            elif type(op) not in PURE:
                return True
            else:
                work += op.operands
        return False
