"""Sums of coefficients that data of each entry choose, as rows of a sparse matrix have them, are calls of the runtime.

    for n: s = sum over k from first[n] to last[n]       bind:      index, values = entries of all rows, listed
               of w[k] * b[v[k]]                    →    evaluate:  sums = design_product(b, index, values)
           target += f(s, y[n])                                     for n: target += f(sums[n], y[n])

Such are `csr_matrix_times_vector` and members of several groups. The loop that is left has no loop inside and may be
widened; coefficients get their adjoints entry by entry in one pass, for which nothing has to be compiled. Entries of
rows, with their weights, stand one behind the other in memory that `bind` fills (runtime/c/design_products.c has the
form). Unlike those of a design (`design-products`) they are all that there is, whatever coefficients are.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i32, i64
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, known_constant
from ulam.library.kernels import LISTED_FIGURES, LISTED_HEAD
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.effects import PURE, UNKNOWN, root, written_roots_within
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_binding import trips
from ulam.passes.loops.linear_evaluation import ops_between
from ulam.passes.loops.linear_rows import Copier, Environment, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of, take_slots
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

FIGURES = ("rows", "columns", "entries", "bytes")


class ListedProducts(TellingPass):
    """Sums up coefficients of rows of `evaluate` that data of their entries choose by calls of the runtime."""

    name = "listed-products"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        evaluate, slices = evaluate_of(module, self.name), DataSlices()
        written: list[Operation] = []
        for rows in [op for op in evaluate.body.block.ops if type(op) is scf.ForOp]:
            for inner in [op for op in rows.body.block.ops if type(op) is scf.ForOp]:
                if (found := _sum_of(rows, inner, slices)) is not None:
                    written += found.write(module)
                    remark_on(self.name, rows, "what it sums up of entries of its rows is a call", done=True)
        if written:
            set_slots(module, hoist_data(evaluate, slots_of(module), written))
        return bool(written)


@record(frozen=True)
class _Sum:
    """What a loop inside of one over rows adds up: coefficients, times data if there are some."""

    rows: scf.ForOp
    inner: scf.ForOp
    coefficient: rt.LoadOp
    weight: SSAValue | None

    def write(self, module: ModuleOp) -> list[Operation]:
        """Puts a call in the place of the loop; what is to be done when data are bound, which stands ahead."""
        rows, inner = self.rows, self.inner
        before, write = rows.prev_op, OpWriter(rows)
        count = write.trip_count(rows.lb, rows.ub)
        index, values, design = self._list_entries(count, write)
        columns, entries, bytes_ = (write.put(rt.LoadOp(design, write.whole(n))) for n in LISTED_FIGURES)
        slot = take_slots(module, 1 + len(FIGURES))
        figures = (count, columns, entries, bytes_)
        write.before(rt.LayoutOp("listed entries", slot, (), FIGURES, write.whole(0), figures, location=inner.location))
        written = list(ops_between(before, rows))
        sums = write.put(rt.AllocOp(count, _REALS))
        b = self.coefficient.buffer
        arguments = (b, columns, values, design, index, values, write.whole(0), count, sums)
        write.before(rt.KernelOp("design_product", arguments, location=inner.location))
        read = OpWriter(inner)
        place = read.put(integer(arith.SubiOp, rows.body.block.args[0], rows.lb))
        total = read.put(rt.LoadOp(sums, place))
        if known_constant(inner.iter_args[0]) != 0:
            total = read.real(arith.AddfOp, inner.iter_args[0], total, reassociate=True)
        replace_uses(inner.results[0], total)
        discard(inner)
        return written

    def _list_entries(self, count: SSAValue, write: OpWriter) -> tuple[SSAValue, SSAValue, SSAValue]:
        """Memory of where entries of rows begin, with the columns of all behind; of their values; of the head."""
        zero, one = write.whole(0), write.whole(1)
        ends = write.put(integer(arith.AddiOp, count, one))
        total = write.put(rt.AllocOp(one, _INTEGERS, zero=True))
        inside, env = self._of_rows(write)
        self._advance(total, inside, env)
        entries = write.put(rt.LoadOp(total, zero))
        index = write.put(rt.AllocOp(write.put(integer(arith.AddiOp, ends, entries)), rt.BufferType(i32), zero=True))
        values = write.put(rt.AllocOp(entries, _REALS))
        at = write.put(rt.AllocOp(one, _INTEGERS, zero=True))
        inside, env = self._of_rows(write)
        first = inside.put(rt.LoadOp(at, inside.whole(0)))
        self._list_row(first, ends, index, values, inside, env)
        end = self._advance(at, inside, env)
        row = inside.put(integer(arith.SubiOp, env[self.rows.body.block.args[0]], self.rows.lb))
        following = inside.put(integer(arith.AddiOp, row, inside.whole(1)))
        inside.before(rt.StoreOp(_narrow(end, inside), index, following))
        design = write.put(rt.AllocOp(write.whole(LISTED_HEAD), _INTEGERS))
        size = write.put(integer(arith.AddiOp, ends, entries))
        write.before(rt.KernelOp("listed_rows", (index, size, values, entries, count, design)))
        return index, values, design

    def _of_rows(self, write: OpWriter) -> tuple[OpWriter, Environment]:
        """A loop over the rows; a writer inside, and what is known there."""
        row, inside = new_loop(write, self.rows.lb, self.rows.ub)
        return inside, {self.rows.body.block.args[0]: row}

    @property
    def _copier(self) -> Copier:
        return Copier(lambda value: not is_inside(value, self.rows))

    def _advance(self, counter: SSAValue, write: OpWriter, env: Environment) -> SSAValue:
        """Adds the number of entries of a row to a counter."""
        place = write.whole(0)
        more = trips(self.inner, self._copier, write, env)
        total = write.put(integer(arith.AddiOp, write.put(rt.LoadOp(counter, place)), more))
        write.before(rt.StoreOp(total, counter, place))
        return total

    def _list_row(
        self, first: SSAValue, ends: SSAValue, index: SSAValue, values: SSAValue, write: OpWriter, env: Environment
    ) -> None:
        """Writes the entries of a row, from the first one on."""
        copier = self._copier
        inner, inside = copier.loop(self.inner, env, write)
        number = inner[self.inner.body.block.args[0]]
        lower = copier.value(self.inner.lb, dict(env), inside)
        at = inside.put(integer(arith.AddiOp, first, inside.put(integer(arith.SubiOp, number, lower))))
        column = copier.value(self.coefficient.index, inner, inside)
        place = inside.put(integer(arith.AddiOp, ends, at))
        inside.before(rt.StoreOp(_narrow(column, inside), index, place))
        value = inside.number(1.0) if self.weight is None else copier.value(self.weight, inner, inside)
        inside.before(rt.StoreOp(value, values, at, initial=True))


_REALS, _INTEGERS = rt.BufferType(f64), rt.BufferType(i64)


def _narrow(value: SSAValue, write: OpWriter) -> SSAValue:
    return write.put(arith.TruncIOp.create(operands=(value,), result_types=(i32,)))


def _sum_of(rows: scf.ForOp, inner: scf.ForOp, slices: DataSlices) -> _Sum | None:
    """What a loop inside of one over rows of data sums up; None if it does something else, or all rows do the same."""
    if constant_integer(rows.step) != 1 or constant_integer(inner.step) != 1 or len(inner.results) != 1:
        return None
    if not slices.has_data_control(rows) or not slices.has_data_control(inner) or inner.results[0].type != f64:
        return None
    body = inner.body.block
    if constant_integer(inner.lb) is not None and constant_integer(inner.ub) is not None:
        return None  # straight code, perhaps
    if not all(type(op) in PURE or isinstance(op, (rt.LoadOp, scf.YieldOp)) for op in body.ops):
        return None
    factors = _added(terminator(body).operands[0], body.args[1])
    written = written_roots_within(rows)
    pairs = [(factor, None if len(factors) == 1 else factors[1 - n]) for n, factor in enumerate(factors)]
    for coefficient, weight in pairs:
        load = coefficient.owner
        if not isinstance(load, rt.LoadOp) or load.parent is not body or is_inside(load.buffer, rows):
            continue
        if slices.is_data_buffer(load.buffer) or not slices.is_data(load.index) or not is_inside(load.index, inner):
            continue
        if (weight is None or slices.is_data(weight)) and root(load.buffer) is not UNKNOWN:
            is_kept = root(load.buffer) not in written and UNKNOWN not in written
            return _Sum(rows, inner, load, weight) if is_kept and _is_loaded(load.index, inner) else None
    return None


def _is_loaded(index: SSAValue, inner: scf.ForOp) -> bool:
    """Whether data of the entry say which coefficient it is: not its number alone."""
    work = [index]
    while work:
        value = work.pop()
        if not is_inside(value, inner) or not isinstance(op := value.owner, Operation):
            continue
        if isinstance(op, rt.LoadOp):
            return True
        work += op.operands
    return False


def _added(value: SSAValue, carried: SSAValue) -> tuple[SSAValue, ...]:
    """The factors of what is added to a carried value, two of a product; none if something else is done to it."""
    op = value.owner
    if isinstance(op, rt.MathOp) and op.function.data == "fma" and op.arguments[2] is carried:
        return op.arguments[0], op.arguments[1]
    if not isinstance(op, arith.AddfOp) or carried not in op.operands or op.lhs is op.rhs:
        return ()
    added = op.operands[1 if op.operands[0] is carried else 0]
    product = added.owner
    return (product.lhs, product.rhs) if isinstance(product, arith.MulfOp) else (added,)
