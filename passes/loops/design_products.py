"""Products of a matrix of data and coefficients are calls, which read what is not 0 alone if most of the data is 0.

    for k: for n: y[n] += X[n, k] * b[k]      →     bind:      design, index, values = sparse_rows(X)
                                                    evaluate:  y = design_product(design, index, values, b)

What is recognised are nests of a loop over columns and one over rows, whose rows sum up products of data and of what
does not change from row to row, as products of matrices and vectors are. A kernel that is there already, for each kind
of processor, takes no time to compile, where the nest and the one of its derivative would be a third of a regression.
Coefficients are gathered in front, once for all rows if they are the same for all. A 0 of the data times what is not
finite is NaN, so such products read everything (runtime/c/design_products.c).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64, i32, i64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.kernels import SPARSE_FIGURES
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, block_of, is_inside, terminator
from ulam.passes.loops.columns_together import summed_rows
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import UNKNOWN, Root, root, viewed, written_roots_within
from ulam.passes.loops.index_forms import Form, IndexForms
from ulam.passes.loops.linear_binding import write_arm
from ulam.passes.loops.linear_rows import Copier, Environment, is_of_column, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import bind_of, evaluate_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass

REASONS = ("its columns have too few zeros", "it has too many rows or entries")  # in the order of design_products.c
AT_ONCE = 2
"""Products of one matrix that a call makes."""
FIGURES = ("rows", "columns", "entries", "full columns", "bytes")
_INTEGERS = rt.BufferType(i64)
_REALS = rt.BufferType(f64)
_KEPT = (_INTEGERS, rt.BufferType(i32), _REALS)
"""The design, the index and the values of design_products.c."""


class DesignProducts(TellingPass):
    """Makes products of data and coefficients calls, which leave out what is 0 where data are sparse."""

    name = "design-products"

    def changes(self, module: ModuleOp) -> bool:
        top, bind = evaluate_of(module, self.name).body.block, bind_of(module)
        if bind is None:
            return False
        slices = DataSlices()
        products: list[Product] = []
        for columns in [op for op in ops_within(top) if type(op) is scf.ForOp]:
            try:
                product = Product.of(columns, top, slices)
            except NoProduct as why:
                if str(why):
                    remark_on(self.name, columns, f"zeros of its data are not looked for: {why}", done=False)
                continue
            if product is not None:
                products.append(product)
        for product in products:
            _Writer(product, module, bind, top).write()
            remark_on(
                self.name,
                product.rows,
                "its sums are a call, which leaves out zeros of its data where there are many",
                done=True,
            )
        return bool(products)


class NoProduct(Exception):
    """Why a product of data and coefficients stays as it is."""


@record
class _Sum:
    """What adds to a sum of the rows: in which loop, the data of a column, and their coefficients."""

    target: ad.AccumulateOp
    data: list[rt.LoadOp]
    factors: list[SSAValue]
    loop: scf.ForOp
    forms: IndexForms
    """Of the first loop over rows, and of this one as if it were that."""

    def reads_like(self, other: _Sum) -> bool:
        """Whether another one has the same data."""
        pairs = list(zip(self.data, other.data, strict=False))
        return len(self.data) == len(other.data) and all(
            one is two
            or (
                one.buffer is two.buffer
                and (form := other.forms.of(one.index)) is not None
                and form == other.forms.of(two.index)
            )
            for one, two in pairs
        )

    def is_of_row(self, columns: scf.ForOp) -> bool:
        """Whether neighbouring rows have neighbouring sums, the same for all columns."""
        return not is_inside(self.target.buffer, columns) and _is_side_by_side(self.target.index, self.forms, columns)


@record
class Product:
    """A nest that multiplies data and coefficients."""

    columns: scf.ForOp
    rows: scf.ForOp
    """The loop inside."""
    data: list[rt.LoadOp]
    """What one pair of iterations reads of the matrix."""
    sums: list[_Sum]
    stride: Form
    forms: IndexForms

    @staticmethod
    def of(columns: scf.ForOp, top: Block, slices: DataSlices) -> Product | None:
        """The product that a loop over columns makes; None if it makes none. Raises NoProduct."""
        if constant_integer(columns.step) != 1:
            return None
        found = summed_rows(columns)
        if not found:
            return None
        rows = found[0][0]
        sums: list[_Sum] = []
        for loop, targets in found:
            if (loop.lb, loop.ub) != (rows.lb, rows.ub):
                return None
            for target in targets:
                terms = _terms(target.value, columns, slices)
                if terms is None:
                    return None
                forms = IndexForms(rows, partner=None if loop is rows else loop)
                sums.append(_Sum(target, [load for load, _ in terms], [factor for _, factor in terms], loop, forms))
        if not all(sums[0].reads_like(other) for other in sums[1:]):
            raise NoProduct("it multiplies several matrices")
        return _product(columns, rows, sums, top, slices)


def _product(columns: scf.ForOp, rows: scf.ForOp, sums: list[_Sum], top: Block, slices: DataSlices) -> Product:
    """The product that two loops make, if what is asked of their surroundings holds. Raises NoProduct."""
    bounds = (columns.lb, columns.ub, rows.lb, rows.ub)
    around = list(_around(columns, top))
    if not all(map(slices.is_data, bounds)) or not all(map(slices.has_data_control, around)):
        raise NoProduct("whether it runs depends on parameters")
    surroundings = _Surroundings(columns, around)
    if surroundings.reach(bounds[:2]):
        raise NoProduct("its columns are others in each iteration of a loop around")
    if not all(_is_alone(each.target, columns) for each in sums):
        raise NoProduct("its sums begin with something else")
    data, forms = sums[0].data, sums[0].forms
    stride = _stride(data, forms, surroundings, slices)
    if not all(each.is_of_row(columns) for each in sums):
        raise NoProduct("its sums are not side by side")
    return Product(columns, rows, data, sums, stride, forms)


def _terms(value: SSAValue, columns: scf.ForOp, slices: DataSlices) -> list[tuple[rt.LoadOp, SSAValue]] | None:
    """A sum of products of data of rows and of what does not change from row to row; None if it is none."""
    if isinstance(op := value.owner, arith.AddfOp) and is_inside(value, columns):
        parts = [_terms(operand, columns, slices) for operand in (op.lhs, op.rhs)]
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    if not isinstance(op, arith.MulfOp):
        return None
    for data, factor in (op.operands, tuple(reversed(op.operands))):
        load = data.owner
        if not isinstance(load, rt.LoadOp) or not slices.is_data_buffer(load.buffer) or not slices.is_data(load.index):
            continue
        if slices.is_data(factor) or not is_of_column(factor, columns, columns.body.block.args[0]):
            continue
        return [(load, factor)]
    return None


def _around(op: Operation, top: Block) -> Iterator[Operation]:
    """What is around an op in a function, from inside out."""
    while op.parent is not top:
        parent = op.parent_op()
        assert parent is not None
        op = parent
        yield op


def _is_alone(target: ad.AccumulateOp, nest: scf.ForOp) -> bool:
    """Whether a nest adds to new memory, to which nothing else writes."""
    made = viewed(target.buffer).owner
    if not isinstance(made, rt.AllocOp) or made.zero is None or made.parent is not nest.parent:
        return False
    work: list[SSAValue] = [made.res]
    while work:
        for use in work.pop().uses:
            if isinstance(use.operation, rt.ViewOp):
                work.append(use.operation.res)
            elif use.operation is not target and not isinstance(use.operation, rt.LoadOp):
                return False
    return True


def _is_side_by_side(index: SSAValue, forms: IndexForms, nest: scf.ForOp) -> bool:
    """Whether iterations have successive places, from one that is known in front of a nest."""
    form = forms.of(index)
    if form is None:
        return False
    own = {monomial: count for monomial, count in form.items() if forms.variable in monomial}
    others = [value for value in forms.values_of(form) if value is not forms.loop.body.block.args[0]]
    return own == {(forms.variable,): 1} and not any(is_inside(value, nest) for value in others)


class _Surroundings:
    """What is around a nest, from inside out, and what may be computed in front of it all."""

    def __init__(self, nest: scf.ForOp, around: Sequence[Operation]) -> None:
        self.outermost = around[-1] if around else nest
        self._may_load = not any(isinstance(op, scf.IfOp) for op in around)
        self._variables = {op.body.block.args[0] for op in (nest, *ops_within(nest)) if isinstance(op, scf.ForOp)}

    def reach(self, values: Sequence[SSAValue]) -> bool:
        """Whether values depend on loops around the nest, or on memory that is read in a branch."""
        work, seen = list(values), set[SSAValue](self._variables)
        while work:
            value = work.pop()
            if value in seen or not is_inside(value, self.outermost):
                continue
            seen.add(value)
            op = value.owner
            if isinstance(op, Block) or (isinstance(op, rt.LoadOp) and not self._may_load):
                return True
            work += op.operands
        return False


def _stride(data: Sequence[rt.LoadOp], forms: IndexForms, surroundings: _Surroundings, slices: DataSlices) -> Form:
    """How far the data of neighbouring rows are apart, all of one matrix. Raises NoProduct."""
    strides: list[Form] = []
    variable = forms.variable
    for load in data:
        form = forms.of(load.index)
        own = {} if form is None else {monomial: count for monomial, count in form.items() if variable in monomial}
        if any(monomial.count(variable) > 1 for monomial in own) or not own:
            raise NoProduct("the data of its rows are not at equal distances")
        strides.append({tuple(k for k in monomial if k != variable): count for monomial, count in own.items()})
        places, matrix = [load.index], load.buffer
        while isinstance(view := matrix.owner, rt.ViewOp):
            places.append(view.offset)
            matrix = view.buffer
        if matrix is not viewed(data[0].buffer) or not isinstance(matrix.owner, rt.BoundOp):
            raise NoProduct("its data are in several places, or written in the program")
        if any(is_inside(offset, forms.loop) for offset in places[1:]) or surroundings.reach(places):
            raise NoProduct("its data are others in each iteration of a loop around")
    values = forms.values_of(strides[0])
    if any(stride != strides[0] for stride in strides) or surroundings.reach(values):
        raise NoProduct("the data of its rows are not at equal distances")
    return strides[0]


class _Writer:
    """Writes what `bind` finds out of a product's data, and what evaluations do with it."""

    def __init__(self, product: Product, module: ModuleOp, bind: func.FuncOp, top: Block) -> None:
        self.product, self.module, self.top = product, module, top
        self.bind = OpWriter(terminator(bind.body.block))
        self.copier = Copier(lambda value: block_of(value) is bind.body.block)
        self.known: Environment = {}
        outermost = ancestor_in(product.columns, top)
        assert outermost is not None
        self.outermost = outermost

    def write(self) -> None:
        """Puts both in place."""
        product, columns = self.product, self.product.columns
        self._bind()
        inside = OpWriter(product.columns)
        rows = inside.put(integer(arith.SubiOp, product.rows.ub, product.rows.lb))
        rows = inside.put(integer(arith.MaxSIOp, rows, inside.whole(0)))
        x = viewed(product.data[0].buffer)
        for start in range(0, len(product.sums), AT_ONCE):
            sides = product.sums[start : start + AT_ONCE]
            coefficients = [self._coefficients(each.factors) for each in sides]
            sums = [self._sums(each, inside) for each in sides]
            arguments = (*coefficients, self.count, x, *self.made, product.rows.lb, rows, *sums)
            name = "design_product" if len(sides) == 1 else "design_products"
            inside.before(rt.KernelOp(name, arguments, location=columns.location))
        for each in product.sums:
            self._leave_undefined(each)
        discard(columns)

    # ------------------------------------------------------------ what bind does

    def _bound(self, value: SSAValue) -> SSAValue:
        """A value of data from outside of all loops, where data are bound."""
        return self.copier.value(value, self.known, self.bind)

    def _bind(self) -> None:
        product, columns, write = self.product, self.product.columns, self.bind
        first_column, last = self._bound(columns.lb), self._bound(columns.ub)
        trips = write.put(integer(arith.SubiOp, last, first_column))
        trips = write.put(integer(arith.MaxSIOp, trips, write.whole(0)))
        count = write.put(integer(arith.MuliOp, trips, write.whole(len(product.data))))
        offsets = self._offsets(first_column, last, count)
        extent = self._extent()
        stride_ops, stride = product.forms.write(
            product.stride, {value: self._bound(value) for value in product.forms.values_of(product.stride)}
        )
        for op in stride_ops:
            write.before(op)
        x = self._bound(viewed(product.data[0].buffer))
        entries = write.put(rt.AllocOp(count, _INTEGERS))
        figures = write.put(rt.AllocOp(write.whole(SPARSE_FIGURES), _INTEGERS))
        given = (x, offsets, count, stride, extent, entries, figures)
        write.before(rt.KernelOp("sparse_columns", given))
        values = [write.put(rt.LoadOp(figures, write.whole(n))) for n in range(SPARSE_FIGURES)]
        outcome, told, sizes = values[0], values[1 : 1 + len(FIGURES)], values[1 + len(FIGURES) :]
        made = [write.put(rt.AllocBoundOp(size, kind)) for size, kind in zip(sizes, _KEPT, strict=True)]
        pairs = [value for pair in zip(made, sizes, strict=True) for value in pair]
        write.before(rt.KernelOp("sparse_rows", (*given, *pairs)))
        slot = take_slots(self.module, 1 + len(FIGURES))
        write.before(
            rt.LayoutOp("sparse columns", slot, REASONS, FIGURES, outcome, told, location=product.rows.location)
        )
        self.count, *self.made = (self._evaluated(value) for value in (count, *made))

    def _evaluated(self, value: SSAValue) -> SSAValue:
        """A value that `bind` computes, in evaluations."""
        slot = take_slots(self.module, 1)
        self.bind.before(rt.SetBoundOp(slot, value))
        read = rt.BoundOp(slot, value.type)
        assert self.top.first_op is not None
        self.top.insert_op_before(read, self.top.first_op)
        return read.res

    def _extent(self) -> SSAValue:
        """The first of all rows, and the end."""
        product = self.product
        extent = self.bind.put(rt.AllocOp(self.bind.whole(2), _INTEGERS, zero=True))
        inside, env = self.bind, dict(self.known)
        before: Operation = product.columns
        path: list[tuple[Operation, Operation]] = []
        for around in _around(product.columns, self.top):
            path.append((around, before))
            before = around
        for around, child in reversed(path):
            if isinstance(around, scf.ForOp):
                env, inside = self.copier.loop(around, env, inside)
            else:
                assert isinstance(around, scf.IfOp) and child.parent is not None
                which = [region.block for region in around.regions].index(child.parent)
                inside, env = write_arm(inside, self.copier.value(around.cond, env, inside), which), dict(env)
        first, end = (self.copier.value(bound, env, inside) for bound in (product.rows.lb, product.rows.ub))
        inside.before(rt.KernelOp("sparse_range", (extent, extent, first, end)))
        return extent

    def _offsets(self, first: SSAValue, end: SSAValue, count: SSAValue) -> SSAValue:
        """Where the columns begin: entries of a row 0."""
        columns, rows = self.product.columns, self.product.rows
        offsets = self.bind.put(rt.AllocOp(count, _INTEGERS))
        column, inside = new_loop(self.bind, first, end)
        env = dict(self.known)
        env |= {columns.body.block.args[0]: column, rows.body.block.args[0]: inside.whole(0)}
        for n, load in enumerate(self.product.data):
            place = self.copier.value(load.index, env, inside)
            buffer = load.buffer
            while isinstance(view := buffer.owner, rt.ViewOp):
                place = inside.put(integer(arith.AddiOp, place, self.copier.value(view.offset, env, inside)))
                buffer = view.buffer
            inside.before(rt.StoreOp(place, offsets, self._number(inside, column, first, n)))
        return offsets

    def _number(self, write: OpWriter, column: SSAValue, first: SSAValue, term: int) -> SSAValue:
        """The place of a term of an iteration over columns."""
        number = column if constant_integer(first) == 0 else write.put(integer(arith.SubiOp, column, first))
        if len(self.product.data) == 1:
            return number
        number = write.put(integer(arith.MuliOp, number, write.whole(len(self.product.data))))
        return write.put(integer(arith.AddiOp, number, write.whole(term)))

    # ------------------------------------------------------------ what evaluations do

    def _coefficients(self, factors: Sequence[SSAValue]) -> SSAValue:
        """The coefficients: where they are, if they stand one behind the other, or a copy, as far out as possible."""
        columns = self.product.columns
        copier = Copier(lambda value: not is_inside(value, columns))
        column: SSAValue = columns.body.block.args[0]
        load = factors[0].owner
        if len(factors) == 1 and isinstance(load, rt.LoadOp) and self._is_next_to_next(load):
            write = OpWriter(columns)
            return write.put(rt.ViewOp(load.buffer, copier.value(load.index, {column: columns.lb}, write)))
        write = OpWriter(self._place(factors))
        coefficients, end = write.put(rt.AllocOp(self.count, _REALS)), self.count
        if len(factors) > 1:
            end = write.put(arith.DivSIOp.create(operands=(end, write.whole(len(factors))), result_types=(i64,)))
        if constant_integer(columns.lb) != 0:
            end = write.put(integer(arith.AddiOp, columns.lb, end))
        number, inside = new_loop(write, columns.lb, end)
        env: Environment = {column: number}
        for n, factor in enumerate(factors):
            value = copier.value(factor, env, inside)
            place = self._number(inside, number, columns.lb, n)
            inside.before(rt.StoreOp(value, coefficients, place, initial=True))
        return coefficients

    def _is_next_to_next(self, load: rt.LoadOp) -> bool:
        """Whether successive columns read successive elements of a buffer, from a place that is known ahead."""
        columns = self.product.columns
        return not is_inside(load.buffer, columns) and _is_side_by_side(load.index, IndexForms(columns), columns)

    def _place(self, factors: Sequence[SSAValue]) -> Operation:
        """In front of which op, as far out as possible, the coefficients can be computed."""
        product = self.product
        needed: list[SSAValue] = []
        read: set[Root] = set()
        work, seen = list(factors), set[SSAValue]()
        while work:
            value = work.pop()
            if value in seen:
                continue
            seen.add(value)
            if not is_inside(value, product.columns):
                needed.append(value)
            elif isinstance(op := value.owner, Operation):
                work += op.operands
                if isinstance(op, rt.LoadOp):
                    read.add(root(op.buffer))
        place: Operation = product.columns
        for around in _around(product.columns, self.top):
            written = set(written_roots_within(around))
            if any(is_inside(value, around) for value in needed) or UNKNOWN in written or not read.isdisjoint(written):
                break
            place = around
        return place

    def _leave_undefined(self, each: _Sum) -> None:
        """Sums need no zeros to begin with where loops over the same rows are all that reads them."""
        target, rows = each.target, each.loop
        made = viewed(target.buffer).owner
        assert isinstance(made, rt.AllocOp)
        if target.buffer is not made.res:
            return
        for op in [use.operation for use in made.res.uses if use.operation is not target]:
            if isinstance(op, rt.LoadOp):
                loop = op.parent_op()
                if not isinstance(loop, scf.ForOp) or (loop.lb, loop.ub, loop.step) != (rows.lb, rows.ub, rows.step):
                    return
                forms = IndexForms(rows, partner=loop)
                if forms.of(op.index) is None or forms.of(op.index) != forms.of(target.index):
                    return
        del made.properties["zero"]

    def _sums(self, each: _Sum, write: OpWriter) -> SSAValue:
        """Where sums of the rows are, from the first row on."""
        rows, target = each.loop, each.target
        copier = Copier(lambda value: not is_inside(value, self.product.columns))
        first: Environment = {rows.body.block.args[0]: rows.lb}
        place = copier.value(target.index, first, write)
        return write.put(rt.ViewOp(target.buffer, place))
