"""Products of a matrix of data and coefficients that rows sum up one by one have a nest of their own.

    for n: s = sum over k of X[n + N * k] * b[k]          mu = alloc N
           target += f(s, y[n])                    →      for k: for n: mu[n] += X[n + N * k] * b[k]
                                                          for n: target += f(mu[n], y[n])

So `dot_product(row(X, n), beta)`, `sum(X[n] .* b')`, `b' * X'` and loops over columns inside of one over rows are what
`X * beta` is: the matrix is read as it is stored, the rows run side by side, and layouts of the data (`unique-designs`,
`design-products`) see the product. Rows that are stored one behind the other (`array[N] vector[K]`) are transposed when
data are bound; of few rows or columns the loop stays as it was, beside that one.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, known_constant, may_reassociate
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.linear_binding import write_arm
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import Copier, Environment, is_of_column, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.tables import IterationTable, table_ahead
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_REALS = rt.BufferType(f64)
_FEWEST_ROWS, _FEWEST_COLUMNS = 64, 4
"""That are transposed. Of fewer rows columns are shorter than what they cost each; of two or three columns rows are
straight code (`small-sizes`).
"""


class ProductsAhead(TellingPass):
    """Computes products of data and coefficients that rows sum up in a nest ahead of them."""

    name = "products-ahead"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate, slices = evaluate_of(module, self.name), DataSlices()
        changed = False
        written: list[Operation] = []
        for rows in outermost_loops(evaluate.body.block, slices):
            for inner in [op for op in rows.body.block.ops if isinstance(op, scf.ForOp)]:
                found = _product(rows, inner, slices)
                if found is not None and (found.are_side_by_side or rows.parent is evaluate.body.block):
                    remark_on(self.name, inner, "its sums are computed ahead, column by column", done=True)
                    written += found.write(slices)
                    changed = True
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return changed


@record(frozen=True)
class _Product:
    """A loop inside of one over rows that sums up products: of data of an iteration and a coefficient, for each result.
    """

    rows: scf.ForOp
    inner: scf.ForOp
    factors: list[tuple[SSAValue, SSAValue]]
    forms: IndexForms
    behind: dict[SSAValue, Form]
    """Data whose rows stand one behind the other, and how far they are apart."""

    @property
    def are_side_by_side(self) -> bool:
        """Whether neighbouring rows of all data are."""
        return not self.behind

    def write(self, slices: DataSlices) -> list[Operation]:
        """Writes nests ahead of the rows, one for each matrix; the rows then read their sums. Returned is what is to be
        done when data are bound, which stands ahead, too.
        """
        if self.are_side_by_side:
            self._write({})
            return []
        rows = self.rows
        ahead, write = rows.prev_op, OpWriter(rows)
        table = table_ahead(rows, (self.inner, rows), {})
        columns, count = table.trips
        strides = [self._written(form, write) for form in self.behind.values()]
        enough = write.both(
            [
                write.compare_integers("sge", columns, write.whole(_FEWEST_COLUMNS)),
                write.compare_integers("sge", count, write.whole(_FEWEST_ROWS)),
                *(write.compare_integers("sge", stride, columns) for stride in strides),  # rows do not overlap
            ]
        )
        tables = {data: (table, self._transposed(data, table, enough, slices)) for data in self.behind}
        written = list(ops_between(ahead, rows))
        self._keep_beside(enough)
        self._write(tables)
        return written

    def _written(self, form: Form, write: OpWriter) -> SSAValue:
        ops, value = self.forms.write(form)
        for op in ops:
            write.before(op)
        return value

    def _transposed(self, data: SSAValue, table: IterationTable, enough: SSAValue, slices: DataSlices) -> SSAValue:
        """Writes what puts rows side by side; their memory."""
        rows, load = self.rows, data.owner
        assert isinstance(load, rt.LoadOp) and rows.parent is not None and table.count is not None
        write = OpWriter(rows)
        size = arith.SelectOp.create(operands=(enough, table.count, write.whole(0)), result_types=(i64,))
        memory = write.put(rt.AllocOp(write.put(size), _REALS, location=load.location))

        def store(_: Operation, copy: Operation, values: dict[SSAValue, SSAValue]) -> None:
            assert copy.parent is not None
            ops, index = table.entry_here(values)
            copy.parent.add_ops([*ops, rt.StoreOp(copy.results[0], memory, index, initial=True)])

        write_arm(write, enough).before(slices.copy(rows, [load], store))
        return memory

    def _keep_beside(self, condition: SSAValue) -> None:
        """Puts the rows into a branch, in whose other arm they stay as they are."""
        rows = self.rows
        arms = [Block(), Block([other := cloned(rows)])]
        branch = scf.IfOp.create(
            operands=[condition],
            result_types=[result.type for result in rows.results],
            regions=[Region(block) for block in arms],
            location=rows.location,
        )
        OpWriter(rows).before(branch)
        for result, new in zip(rows.results, branch.results, strict=True):
            replace_uses(result, new)
        rows.detach()
        arms[0].add_op(rows)
        for block, loop in zip(arms, (rows, other), strict=True):
            block.add_op(scf.YieldOp.create(operands=list(loop.results)))

    def _write(self, tables: dict[SSAValue, _Transposed]) -> None:
        rows, inner = self.rows, self.inner
        write = OpWriter(rows)
        count = write.put(integer(arith.MaxSIOp, rows.ub, write.whole(0)))
        sums = [write.put(rt.AllocOp(count, _REALS, zero=True)) for _ in self.factors]
        for data in dict.fromkeys(data for data, _ in self.factors):
            self._nest(data, tables.get(data), sums, write)
        read = OpWriter(inner)
        for result, start, memory in zip(inner.results, inner.iter_args, sums, strict=True):
            total = read.put(rt.LoadOp(memory, rows.body.block.args[0]))
            if known_constant(start) != 0:
                total = read.real(arith.AddfOp, start, total, reassociate=True)
            replace_uses(result, total)
        discard(inner)

    def _nest(self, data: SSAValue, table: _Transposed | None, sums: list[SSAValue], write: OpWriter) -> None:
        """Adds the products of a matrix to the sums that they are for."""
        rows, inner = self.rows, self.inner
        copier = Copier(lambda value: not is_inside(value, rows))
        column, inside = self._loop(write, inner.lb, inner.ub)
        env: Environment = {inner.body.block.args[0]: column}
        own = [(factor, memory) for (each, factor), memory in zip(self.factors, sums, strict=True) if each is data]
        coefficients = [copier.value(factor, env, inside) for factor, _ in own]
        row, innermost = self._loop(inside, rows.lb, rows.ub)
        env[rows.body.block.args[0]] = row
        entry = copier.value(data, env, innermost) if table is None else _entry(table, column, row, innermost)
        for coefficient, (_, memory) in zip(coefficients, own, strict=True):
            product = innermost.real(arith.MulfOp, entry, coefficient)
            innermost.before(ad.AccumulateOp(memory, row, product))

    def _loop(self, write: OpWriter, lower: SSAValue, upper: SSAValue) -> tuple[SSAValue, OpWriter]:
        """A loop that counts as a part of the one that it stands for."""
        variable, inside = new_loop(write, lower, upper)
        loop = inside.anchor.parent_op()
        assert loop is not None
        loop.location = self.inner.location
        return variable, inside


_Transposed = tuple[IterationTable, SSAValue]
"""Data of which neighbouring rows stand side by side, with an entry for each column and row."""


def _entry(transposed: _Transposed, column: SSAValue, row: SSAValue, write: OpWriter) -> SSAValue:
    table, memory = transposed
    ops, index = table.entry([column, row])
    for op in ops:
        write.before(op)
    return write.put(rt.LoadOp(memory, index))


def _product(rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> _Product | None:
    """The products that a loop inside of one over rows sums up; None if it does something else."""
    bounds = (inner.lb, inner.ub, rows.ub)
    are_rows = constant_integer(rows.lb) == 0 and constant_integer(rows.step) == 1 == constant_integer(inner.step)
    if not are_rows or not inner.results or any(result.type != f64 for result in inner.results):
        return None
    if any(is_inside(bound, rows) or not slices.is_data(bound) for bound in bounds):
        return None
    if not all(type(op) in PURE or isinstance(op, (rt.LoadOp, rt.ViewOp, scf.YieldOp)) for op in inner.body.block.ops):
        return None
    body = inner.body.block
    found = _Product(rows, inner, [], IndexForms(rows), {})
    for end, carried in zip(terminator(body).operands, body.args[1:], strict=True):
        factors = _added(end, carried)
        if factors is None or not _add_column(factors, found, slices):
            return None
    return found


def _add_column(factors: tuple[SSAValue, SSAValue], product: _Product, slices: DataSlices) -> bool:
    """Whether one factor is an element of a column of data, and the other one its coefficient; adds them."""
    rows, inner = product.rows, product.inner
    for data, coefficient in (factors, factors[::-1]):
        if not _is_coefficient(coefficient, rows, inner, slices) or data.type != f64:
            continue
        if (stride := _stride(data, product, slices)) is not None:
            product.factors.append((data, coefficient))
            if stride != {(): 1}:
                product.behind[data] = stride
            return True
    return False


def _added(value: SSAValue, carried: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The factors of the product that is added to a carried value."""
    op = value.owner
    if isinstance(op, rt.MathOp) and op.function.data == "fma" and op.arguments[2] is carried:
        return op.arguments[0], op.arguments[1]
    if not isinstance(op, arith.AddfOp) or carried not in op.operands or not may_reassociate(op):
        return None
    product = op.operands[1 if op.operands[0] is carried else 0].owner
    return (product.lhs, product.rhs) if isinstance(product, arith.MulfOp) else None


def _stride(value: SSAValue, product: _Product, slices: DataSlices) -> Form | None:
    """How far neighbouring rows of data are apart, of which a value is an element of a column; None if it is none."""
    load, inner, forms = value.owner, product.inner, product.forms
    if not isinstance(load, rt.LoadOp) or load.parent is not inner.body.block or not slices.is_data(value):
        return None
    place, buffer = forms.of(load.index), load.buffer
    while place is not None and isinstance(view := buffer.owner, rt.ViewOp):
        offset, buffer = forms.of(view.offset), view.buffer
        place = None if offset is None else plus(place, offset)
    if place is None or not isinstance(buffer.owner, rt.BoundOp):
        return None
    row, column = forms.variable, forms.number(inner.body.block.args[0])
    if not any(column in monomial for monomial in place):
        return None
    of_row = {tuple(n for n in monomial if n != row): count for monomial, count in place.items() if row in monomial}
    is_linear = all(monomial.count(row) < 2 for monomial in place) and not any(column in factor for factor in of_row)
    return of_row if of_row and is_linear else None


def _is_coefficient(value: SSAValue, rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a value depends on parameters, and on the column alone."""
    return not slices.is_data(value) and is_of_column(value, rows, inner.body.block.args[0], PURE | {rt.ViewOp})
