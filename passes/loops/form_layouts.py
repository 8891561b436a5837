"""Sums of quadratic forms of rows of data become sums over a few rows.

    for n: b[k] = y[n, k] - mu[k] for all k;  z = L^-1 b;  target += -0.5 * (sum over k of z[k]^2)
→   bind:      m, R = the means of y, a triangle for which R' R = [1, y - m]' [1, y - m]
    evaluate:  for r: b[k] = R[r, 0] * (m[k] - mu[k]) + R[r, k] for all k;  z = L^-1 b;  target += ...

So for observations of several variables with one covariance, given by whatever factor, and with means that are linear
in data: as many rows as there are columns of data. `row_forms` says what such sums are; the triangle is made by
orthogonal transformations when data are bound (runtime/c/row_forms.c). Where there are not more rows than columns,
where data are not finite, and for coefficients that are not, or so large that sums could overflow, the loop runs as it
was.

Idea: sufficient statistics of a normal sample, its means and scatter, by QR and not by cross products, so that nothing
cancels (Golub, 1965).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_inside, terminator
from ulam.passes.loops.absorbed_rows import take_rows_of
from ulam.passes.loops.affine_rows import LinearTerm, Nest
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.form_binding import FormBinding, ReducedForms, inner_loops
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_binding import row_coefficient
from ulam.passes.loops.linear_evaluation import LARGEST_SQUARES, ops_between
from ulam.passes.loops.linear_rows import Copier, Environment, Leaf, Loops, carry, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.row_elements import compute_elements, compute_first_row, writer_of
from ulam.passes.loops.row_forms import RowForms, Unfit, are_all_alike, row_forms
from ulam.passes.loops.sink_fills import sink_into
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_Matrices = dict[rt.AllocOp, SSAValue]
"""Matrices, and how far their columns are apart."""


@record(frozen=True)
class FormLayouts(TellingPass):
    """Reduces rows of which quadratic forms are added up when data are bound; `early`: of loops that call kernels, and
    tells what was done alone.
    """

    name = "form-layouts"
    changes_only = ENTRIES

    early: bool = False

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        top = function.body.block
        slices = DataSlices()
        written: list[Operation] = []
        changed = False
        for loop in outermost_loops(top, slices):
            if not _may_gain(loop, self.early) or not (slices.is_data(loop.lb) and slices.is_data(loop.ub)):
                continue
            found, moved, matrices = _forms(loop, slices, module)
            changed = changed or moved
            bound = None if isinstance(found, str) else _binding(found, top, slices)
            if isinstance(found, str) or isinstance(bound, str):
                if not isinstance(found, str) and found.loop is not loop:
                    found.loop.detach()
                    found.loop.erase()
                if not self.early:
                    remark_on(self.name, loop, found if isinstance(found, str) else str(bound), done=False)
                continue
            assert bound is not None
            remark_on(self.name, loop, f"its rows are reduced when data are bound: {bound.summary()}", done=True)
            before = ancestor_in(loop, top)
            assert before is not None
            ahead = before.prev_op
            reduced = bound.write(OpWriter(before))
            written += ops_between(ahead, before)
            _Evaluation(found, bound, reduced, loop, matrices).write()
        if written:
            set_slots(module, hoist_data(function, slots_of(module), written))
        return changed or bool(written)


def _forms(loop: scf.ForOp, slices: DataSlices, module: ModuleOp) -> tuple[RowForms | str, bool, _Matrices]:
    """What a loop adds up, or why that is no sum of quadratic forms; whether loops that fill its rows went into it.

    A loop may stand for it, in front of it, that computes elements of matrices where it reads them: of these.
    """
    moved, rows = False, loop
    matrices: _Matrices = {}
    while True:
        try:
            return row_forms(rows, Nest(rows, (rows.body.block.args[0],), slices)), moved, matrices
        except Unfit as reason:
            memory = reason.memory
            if memory is not None and rows is loop and take_rows_of(memory, loop, bound_ints(module)):
                moved = True
                continue
            if memory is not None and writer_of(memory) is not None:
                if rows is loop:
                    rows = cloned(loop)
                    OpWriter(loop).before(rows)
                if (stride := compute_elements(memory, rows)) is not None:
                    matrices[memory] = stride
                    continue
            if rows is not loop:
                rows.detach()
                rows.erase()
            return str(reason), moved, matrices


def _binding(found: RowForms, top: Block, slices: DataSlices) -> FormBinding | str:
    try:
        return FormBinding(found, top, slices)
    except Unfit as reason:
        return str(reason)


def _may_gain(loop: scf.ForOp, early: bool) -> bool:
    """Whether rows of a loop may have vectors, of which something is added up."""
    classes = [type(op) for op in ops_within(loop)]
    kernels, products = (classes.count(cls) for cls in (rt.KernelOp, arith.MulfOp))
    return ad.TargetAddOp in classes and (kernels > 0 or (products > 1 and not early))


@record
class _Evaluation:
    """Writes a branch in the place of a loop: over the reduced rows if they may be used, else as it was."""

    found: RowForms
    bound: FormBinding
    reduced: ReducedForms
    loop: scf.ForOp
    """The loop as it was, for which the one that was found may stand."""
    matrices: _Matrices
    _copied: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def write(self) -> None:
        """Puts the branch there."""
        loop = self.loop
        write = OpWriter(loop)
        ok = self._may_be_used(write)
        end, otherwise = scf.YieldOp.create(), Block()
        arms = [Region(Block([end])), Region(otherwise)]
        types = [result.type for result in loop.results]
        branch = scf.IfOp.create(operands=[ok], result_types=types, regions=arms, location=loop.location)
        rt.ReducedAttr().put(branch)
        write.before(branch)
        end.operands = self._write_rows(OpWriter(end)).results
        for result, given in zip(loop.results, branch.results, strict=True):
            replace_uses(result, given)
        loop.detach()
        otherwise.add_ops([loop, scf.YieldOp.create(operands=list(loop.results))])
        if self.found.loop is not loop:
            self.found.loop.detach()
            self.found.loop.erase()
            for memory, stride in self.matrices.items():
                compute_first_row(memory, stride, branch)
            sink_into(branch)

    # ------------------------------------------------------------ whether reduced rows may be used

    def _may_be_used(self, write: OpWriter) -> SSAValue:
        """Whether there are reduced rows, all coefficients are finite and moderate, and no divisor is 0."""
        is_there = write.compare_integers("ne", self.reduced.rows, write.whole(0))
        end, other = scf.YieldOp.create(), Block()
        arms = [Region(Block([end])), Region(other)]
        branch = scf.IfOp.create(operands=[is_there], result_types=[i1], regions=arms)
        write.before(branch)
        inside = OpWriter(end)  # where there are no rows their coefficients may be none that are there
        end.operands = [inside.both(self._conditions(inside))]
        none = constant(0, i1)
        other.add_ops([none, scf.YieldOp.create(operands=[none.result])])
        return branch.results[0]

    def _conditions(self, write: OpWriter) -> list[SSAValue]:
        copier = self._copier()
        total = write.number(0.0)
        for leaf, loops, is_of_group in self._leaves():
            env: Environment = {}
            start, inside = total, write
            if is_of_group:
                variable, inside = new_loop(write, write.whole(0), self.reduced.span, [total])
                key = inside.put(integer(arith.AddiOp, self.reduced.low, variable))
                env, start = dict.fromkeys(self.bound.keys, key), inside.anchor.operands[0]
            total = _over(loops, copier, env, inside, start, _Squares(leaf, copier).add)
            total = carry(inside, total) if is_of_group else total
        found = [write.compare("olt", total, LARGEST_SQUARES)]
        for divisor in dict.fromkeys(self.found.divisors):
            facts = self.found.nest.facts(divisor)
            if facts is not None and not facts.variables:
                found.append(write.compare("one", copier.value(divisor, {}, write), 0.0))
        for matrix, size in self.found.matrices.items():
            if not is_inside(matrix, self.found.loop) and not is_inside(size, self.found.loop):
                found.append(_has_diagonal(matrix, size, write))
        return found

    def _leaves(self) -> list[tuple[Leaf, Loops, bool]]:
        """All coefficients, with the loops that they are other ones in each iteration of, and whether groups have
        them.
        """
        found: dict[Leaf, tuple[Loops, bool]] = {}
        for value, terms in [*self.found.linear.items(), *self.found.checked.items()]:
            for term in terms:
                if term.leaf and not any(are_all_alike(term.leaf, known, self.found.loop) for known in found):
                    found[term.leaf] = self.bound.loops_of(term.leaf, value, term), term.key is not None
        for value in self.found.moderate:
            found[value,] = self.bound.loops_of((value,), value, LinearTerm()), False
        return [(leaf, loops, is_of_group) for leaf, (loops, is_of_group) in found.items()]

    def _copier(self) -> Copier:
        return Copier(lambda value: not is_inside(value, self.found.loop))

    # ------------------------------------------------------------ the rows

    def _write_rows(self, write: OpWriter) -> scf.ForOp:
        loop = self.found.loop
        new = cloned(loop, self._copied)
        new.operands = [write.whole(0), self.reduced.rows, write.whole(1), *new.iter_args]
        write.before(new)
        same_ops = dict(zip(ops_within(loop), ops_within(new), strict=True))
        begin = new.body.block.first_op
        assert begin is not None
        ahead = OpWriter(begin)
        row = new.body.block.args[0]
        self._row_start = ahead.put(integer(arith.MuliOp, row, self.reduced.columns))
        if self.bound.keys:
            self._set_group(row, ahead)
        else:
            self._is_first = ahead.compare_integers("eq", row, ahead.whole(0))
            self._first = write.put(rt.LoadOp(self.reduced.table, write.whole(0)))
            self._count = write.put(arith.SIToFPOp.create(operands=[self.reduced.count], result_types=[f64]))
        for op in self.found.fixed:
            same_ops[op].detach()
            write.before(same_ops[op])
        for check in self.found.holding:
            discard(same_ops[check])
        terminator(new.body.block).operands = new.body.block.args[1:]  # flags, which stay 0
        new.detach()
        write.before(new)
        for op, position, lack in self.found.missing:
            self._complete(same_ops[op], position, lack)
        for value in self._needed():
            copied = self._copied[value]
            replace_uses(copied, self._linear(value, OpWriter.behind(copied)))
        return new

    def _set_group(self, row: SSAValue, write: OpWriter) -> None:
        """Finds the group of a row, of those that are not of all: each has the number 1 in its first one."""
        reduced = self.reduced
        self._first = write.put(rt.LoadOp(reduced.table, self._row_start))
        self._count = write.real(arith.MulfOp, self._first, self._first)
        self._is_first = write.compare("une", self._first, 0.0)
        of_groups = write.put(integer(arith.MuliOp, reduced.own, reduced.span))
        is_of_group = write.compare_integers("slt", row, of_groups)
        group = write.put(arith.DivSIOp.create(operands=[row, reduced.own], result_types=[i64]))
        group = write.put(
            arith.SelectOp.create(operands=[is_of_group, group, write.whole(0)], result_types=[i64])
        )
        key = write.put(integer(arith.AddiOp, reduced.low, group))
        self._copied.update(dict.fromkeys(self.bound.keys, key))

    def _needed(self) -> list[SSAValue]:
        """The values of first degree that something else is computed of than such values."""
        linear = self.found.linear
        return [value for value in linear if any(use.operation not in {v.owner for v in linear} for use in value.uses)]

    def _complete(self, op: Operation, position: int, lack: int) -> None:
        """Multiplies an operand by the number 1 of the row, or its square."""
        write, value = OpWriter(op), op.operands[position]
        factor = self._first if lack == 1 else self._count
        found = self._of_first_row(write.real(arith.MulfOp, value, factor), write)
        op.operands = [found if n == position else operand for n, operand in enumerate(op.operands)]

    def _of_first_row(self, value: SSAValue, write: OpWriter) -> SSAValue:
        operands = [self._is_first, value, write.number(0.0)]
        return write.put(arith.SelectOp.create(operands=operands, result_types=[f64]))

    def _linear(self, value: SSAValue, write: OpWriter) -> SSAValue:
        """A value of first degree of a reduced row."""
        env = {known: self._copied[known] for known in (*self._variables(value), *self.bound.keys)}
        centre, rest = None, None
        for term in self.found.linear[value]:
            centre = self._add(centre, value, term, env, write, is_centre=True)
            if self.bound.is_of_rows(term):
                rest = self._add(rest, value, term, env, write, is_centre=False)
        assert centre is not None
        found = self._of_first_row(write.real(arith.MulfOp, centre, self._first), write)
        return found if rest is None else write.real(arith.AddfOp, found, rest)

    def _variables(self, value: SSAValue) -> list[SSAValue]:
        return [inner.body.block.args[0] for inner in inner_loops(value, self.found.loop)]

    def _add(
        self, total: SSAValue | None, value: SSAValue, term: LinearTerm, env: Environment, write: OpWriter,
        *, is_centre: bool,
    ) -> SSAValue:  # fmt: skip
        """Adds a term: with what rows have in the mean, or what a row has besides."""
        copier = self._copier()

        def step(known: Environment, inside: OpWriter, sum_: SSAValue | None) -> SSAValue:
            found = copier.product(term.leaf, known, inside)
            if not self.bound.is_of_rows(term):
                data = row_coefficient(term, copier, known, inside) if term.data or term.divisors else None
                found = _times(found, data, inside)
            else:
                at = self.bound.place((term.data, term.divisors), copier, known, inside)
                first = self.reduced.means if is_centre else self._row_start
                at = inside.put(integer(arith.AddiOp, first, at))
                found = _times(found, inside.put(rt.LoadOp(self.reduced.table, at)), inside)
            assert found is not None
            return _plus(sum_, found, inside, negative=term.negative, reassociate=bool(term.loops))

        if not term.loops:
            return step(dict(env), write, total)
        start = write.number(0.0) if total is None else total
        only_if = self._is_first if is_centre else None
        return _over(term.loops, copier, env, write, start, step, only_if)


def _over(
    loops: Sequence[scf.ForOp],
    copier: Copier,
    env: Environment,
    write: OpWriter,
    start: SSAValue,
    step: Callable[[Environment, OpWriter, SSAValue], SSAValue],
    only_if: SSAValue | None = None,
) -> SSAValue:
    """A sum over the iterations of loops: `step` gives it of the one so far."""
    known, inside, sums = dict(env), write, [start]
    writers: list[OpWriter] = []
    for loop in loops:
        lower, upper = copier.value(loop.lb, known, inside), copier.value(loop.ub, known, inside)
        if only_if is not None and loop is loops[0]:
            upper = inside.put(arith.SelectOp.create(operands=[only_if, upper, lower], result_types=[i64]))
        variable, inside = new_loop(inside, lower, upper, [sums[-1]])
        known[loop.body.block.args[0]] = variable
        sums.append(inside.anchor.operands[0])
        writers.append(inside)
    found = step(known, inside, sums[-1])
    for inner in reversed(writers):
        found = carry(inner, found)
    return found


@record
class _Squares:
    """The sum of the squares of a coefficient."""

    leaf: Leaf
    copier: Copier

    def add(self, env: Environment, write: OpWriter, total: SSAValue) -> SSAValue:
        """Adds that of an iteration."""
        value = self.copier.product(self.leaf, env, write)
        assert value is not None
        return write.real(arith.AddfOp, total, write.real(arith.MulfOp, value, value), reassociate=True)


def _times(value: SSAValue | None, other: SSAValue | None, write: OpWriter) -> SSAValue | None:
    if value is None or other is None:
        return other if value is None else value
    return write.real(arith.MulfOp, value, other)


def _plus(total: SSAValue | None, value: SSAValue, write: OpWriter, *, negative: bool, reassociate: bool) -> SSAValue:
    if total is None:
        return write.put(arith.NegfOp.create(operands=[value], result_types=[f64])) if negative else value
    return write.real(arith.SubfOp if negative else arith.AddfOp, total, value, reassociate=reassociate)


def _has_diagonal(matrix: SSAValue, size: SSAValue, write: OpWriter) -> SSAValue:
    """Whether no number on the diagonal of a matrix is 0."""
    k, inside = new_loop(write, write.whole(0), size, [write.whole(1)])
    index = inside.put(integer(arith.AddiOp, inside.put(integer(arith.MuliOp, k, size)), k))
    differs = inside.compare("one", inside.put(rt.LoadOp(matrix, index)), 0.0)
    before = inside.anchor.operands[0]
    zero = inside.whole(0)
    kept = inside.put(arith.SelectOp.create(operands=[differs, before, zero], result_types=[i64]))
    return write.compare_integers("ne", carry(inside, kept), write.whole(0))
