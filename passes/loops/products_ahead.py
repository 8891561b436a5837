"""Products of a matrix of data and coefficients that rows sum up one by one have a nest of their own.

    for n: s = sum over k of X[n + N * k] * b[k]          mu = alloc N
           target += f(s, y[n])                    →      for k: for n: mu[n] += X[n + N * k] * b[k]
                                                          for n: target += f(mu[n], y[n])

So `dot_product(row(X, n), beta)`, `sum(X[n] .* b')`, `b' * X'` and loops over columns inside of one over rows are what
`X * beta` is: the matrix is read as it is stored, the rows run side by side, and layouts of the data (`unique-designs`,
`sparse-designs`) see the product. Only where neighbouring rows are side by side in memory; rows that are stored one
behind the other (`array[N] vector[K]`) stay as they are.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, known_constant, may_reassociate
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE
from ulam.passes.loops.index_forms import IndexForms, plus
from ulam.passes.loops.linear_rows import Copier, Environment, is_of_column, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_REALS = rt.BufferType(f64)


class ProductsAhead(TellingPass):
    """Computes products of data and coefficients that rows sum up in a nest ahead of them."""

    name = "products-ahead"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        slices = DataSlices()
        changed = False
        for rows in outermost_loops(evaluate_of(module, self.name).body.block, slices):
            for inner in [op for op in rows.body.block.ops if isinstance(op, scf.ForOp)]:
                found = _product(rows, inner, slices)
                if found is not None:
                    remark_on(self.name, inner, "its sums are computed ahead, column by column", done=True)
                    found.write()
                    changed = True
        return changed


@record(frozen=True)
class _Product:
    """A loop inside of one over rows that sums up products: of data of an iteration and a coefficient, for each result.
    """

    rows: scf.ForOp
    inner: scf.ForOp
    factors: list[tuple[SSAValue, SSAValue]]

    def write(self) -> None:
        """Writes nests ahead of the rows, one for each matrix; the rows then read their sums."""
        rows, inner = self.rows, self.inner
        write = OpWriter(rows)
        count = write.put(integer(arith.MaxSIOp, rows.ub, write.whole(0)))
        sums = [write.put(rt.AllocOp(count, _REALS, zero=True)) for _ in self.factors]
        for data in dict.fromkeys(data for data, _ in self.factors):
            self._nest(data, sums, write)
        read = OpWriter(inner)
        for result, start, memory in zip(inner.results, inner.iter_args, sums, strict=True):
            total = read.put(rt.LoadOp(memory, rows.body.block.args[0]))
            if known_constant(start) != 0:
                total = read.real(arith.AddfOp, start, total, reassociate=True)
            replace_uses(result, total)
        discard(inner)

    def _nest(self, data: SSAValue, sums: list[SSAValue], write: OpWriter) -> None:
        """Adds the products of a matrix to the sums that they are for."""
        rows, inner = self.rows, self.inner
        copier = Copier(lambda value: not is_inside(value, rows))
        column, inside = self._loop(write, inner.lb, inner.ub)
        env: Environment = {inner.body.block.args[0]: column}
        own = [(factor, memory) for (each, factor), memory in zip(self.factors, sums, strict=True) if each is data]
        coefficients = [copier.value(factor, env, inside) for factor, _ in own]
        row, innermost = self._loop(inside, rows.lb, rows.ub)
        env[rows.body.block.args[0]] = row
        entry = copier.value(data, env, innermost)
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
    found: list[tuple[SSAValue, SSAValue]] = []
    for end, carried in zip(terminator(body).operands, body.args[1:], strict=True):
        factors = _added(end, carried)
        if factors is None or (pair := _as_column(factors, rows, inner, slices)) is None:
            return None
        found.append(pair)
    return _Product(rows, inner, found)


def _as_column(
    factors: tuple[SSAValue, SSAValue], rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices
) -> tuple[SSAValue, SSAValue] | None:
    """The factor that is an element of a column of data, and the other one, its coefficient."""
    for data, coefficient in (factors, factors[::-1]):
        if _is_column(data, rows, inner, slices) and _is_coefficient(coefficient, rows, inner, slices):
            return data, coefficient
    return None


def _added(value: SSAValue, carried: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    """The factors of the product that is added to a carried value."""
    op = value.owner
    if isinstance(op, rt.MathOp) and op.function.data == "fma" and op.arguments[2] is carried:
        return op.arguments[0], op.arguments[1]
    if not isinstance(op, arith.AddfOp) or carried not in op.operands or not may_reassociate(op):
        return None
    product = op.operands[1 if op.operands[0] is carried else 0].owner
    return (product.lhs, product.rhs) if isinstance(product, arith.MulfOp) else None


def _is_column(value: SSAValue, rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a value is an element of data, beside which stands that of the next row, and others for other columns."""
    load = value.owner
    if not isinstance(load, rt.LoadOp) or load.parent is not inner.body.block or not slices.is_data(value):
        return False
    forms = IndexForms(rows)
    place, buffer = forms.of(load.index), load.buffer
    while place is not None and isinstance(view := buffer.owner, rt.ViewOp):
        offset, buffer = forms.of(view.offset), view.buffer
        place = None if offset is None else plus(place, offset)
    if place is None or not isinstance(buffer.owner, rt.BoundOp):
        return False
    column = forms.number(inner.body.block.args[0])
    of_row = {monomial: count for monomial, count in place.items() if forms.variable in monomial}
    return of_row == {(forms.variable,): 1} and any(column in monomial for monomial in place)


def _is_coefficient(value: SSAValue, rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> bool:
    """Whether a value depends on parameters, and on the column alone."""
    return not slices.is_data(value) and is_of_column(value, rows, inner.body.block.args[0], PURE | {rt.ViewOp})
