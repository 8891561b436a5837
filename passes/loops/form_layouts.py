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

from itertools import islice

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, is_inside
from ulam.passes.loops.absorbed_rows import take_rows_of
from ulam.passes.loops.affine_rows import Nest
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.component_rows import ComponentRows, component_rows
from ulam.passes.loops.data_branches import outermost_loops
from ulam.passes.loops.data_slices import DataSlices
from ulam.passes.loops.form_binding import FormBinding
from ulam.passes.loops.form_columns import FormColumns
from ulam.passes.loops.form_rows import FormRows
from ulam.passes.loops.form_values import FormValues, ReducedForms, sum_over
from ulam.passes.loops.hoist_data import hoist_data
from ulam.passes.loops.linear_evaluation import LARGEST_SQUARES, ops_between
from ulam.passes.loops.linear_rows import Copier, Environment, Leaf, carry, new_loop
from ulam.passes.loops.linear_terms import LinearTerm
from ulam.passes.loops.local_elements import with_local_elements
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.ragged_rows import MOST_OPS
from ulam.passes.loops.row_elements import compute_elements, compute_first_row, writer_of
from ulam.passes.loops.row_forms import RowForms, Unfit, are_all_alike, row_forms
from ulam.passes.loops.rows_alone import with_rows_alone
from ulam.passes.loops.sink_fills import sink_into
from ulam.passes.loops.tables import Loops
from ulam.passes.loops.unit_modules import evaluate_of, set_slots, slots_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import cloned, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_MOST_MEMORY = 4
"""Pieces of memory whose elements the rows of one loop compute for themselves: for each it is looked at anew."""

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
        slices, ints = DataSlices(), bound_ints(module)
        written: list[Operation] = []
        branches: list[scf.IfOp] = []
        changed = False
        for loop in outermost_loops(top, slices):
            if not _may_gain(loop, self.early) or not (slices.is_data(loop.lb) and slices.is_data(loop.ub)):
                continue
            found = self._best(loop, top, slices, ints)
            changed = changed or found.moved
            if isinstance(found, _Stays):
                if not self.early:
                    remark_on(self.name, loop, found.reason, done=False)
                continue
            summary = found.bound.columns.summary()
            remark_on(self.name, loop, f"its rows are reduced when data are bound: {summary}", done=True)
            before = ancestor_in(loop, top)
            assert before is not None
            ahead = before.prev_op
            reduced = found.bound.write(OpWriter(before))
            written += ops_between(ahead, before)
            branch = _Evaluation(found, reduced, ints).write()
            if found.forms.loop is not loop:
                branches.append(branch)
        if written:
            set_slots(module, hoist_data(function, slots_of(module), written))
        for branch in branches:  # behind what fills the table, which would go with it
            sink_into(branch)
        return changed or bool(written)

    def _best(self, loop: scf.ForOp, top: Block, slices: DataSlices, ints: dict[int, SSAValue]) -> _Candidate | _Stays:
        """The rows of a loop that may be reduced: as they are, or as other loops have them that stand for it."""
        found = _candidate(loop, loop, None, top, slices, ints)
        if isinstance(found, _Candidate) or self.early or not _squares(loop):
            return found
        if (rows := with_rows_alone(loop, ints)) is not None:
            if isinstance(other := _candidate(rows, loop, None, top, slices, ints), _Candidate):
                return other
        if (nested := component_rows(loop, slices, ints)) is not None:
            if isinstance(other := _candidate(nested.rows, loop, nested, top, slices, ints), _Candidate):
                return other
            nested.erase()
        return found


@record
class _Candidate:
    """Rows that may be reduced: of a loop, or of a nest over components of rows."""

    loop: scf.ForOp
    """As it was: the loop of the forms may be another one, in front of it, that stands for it."""
    nested: ComponentRows | None
    forms: RowForms
    bound: FormBinding
    moved: bool
    """Whether loops that fill its rows went into it."""
    matrices: _Matrices
    """Of which it computes elements where it reads them."""


@record
class _Stays:
    """Why rows of a loop stay as they are; whether others went into it nevertheless."""

    reason: str
    moved: bool


def _candidate(
    rows: scf.ForOp,
    loop: scf.ForOp,
    nested: ComponentRows | None,
    top: Block,
    slices: DataSlices,
    ints: dict[int, SSAValue],
) -> _Candidate | _Stays:
    """A loop over rows, which may stand for another one, or for a nest: then it is erased if its rows stay."""
    found, moved, matrices = _forms(rows, loop, slices, ints)
    bound = found if isinstance(found, str) else _binding(found, top, slices, has_components=nested is not None)
    if isinstance(found, RowForms) and isinstance(bound, FormBinding):
        return _Candidate(loop, nested, found, bound, moved, matrices)
    if isinstance(found, RowForms) and found.loop is not loop:
        _erase(found.loop)
    assert isinstance(bound, str)
    return _Stays(bound, moved)


def _forms(
    rows: scf.ForOp, loop: scf.ForOp, slices: DataSlices, ints: dict[int, SSAValue]
) -> tuple[RowForms | str, bool, _Matrices]:
    """What a loop over rows adds up, or why that is no sum of quadratic forms; whether loops that fill its rows went
    into it. `loop`: as it was, for which another one may stand.

    A loop may stand for it, in front of it, that computes elements of matrices where it reads them: of these.
    """
    moved = False
    matrices: _Matrices = {}
    tries = 0
    while True:
        tries += 1
        try:
            return _with_whole_sums(_forms_of(rows, slices), loop, slices), moved, matrices
        except Unfit as reason:
            memory = reason.memory if tries <= _MOST_MEMORY else None
            if memory is not None and rows is loop and take_rows_of(memory, loop, ints):
                moved = True
                continue
            if memory is not None and writer_of(memory) is not None:
                if rows is loop:
                    rows = cloned(loop)
                    OpWriter(loop).before(rows)
                if (stride := compute_elements(memory, rows, ints)) is not None:
                    matrices[memory] = stride
                    continue
            if matrices and (alone := with_local_elements(rows, slices)) is not None:
                _erase(rows)  # rows of matrices, which it computes by itself, are what it reads of them
                rows = alone
                continue
            if rows is not loop:
                _erase(rows)
            return str(reason), moved, matrices


def _forms_of(rows: scf.ForOp, slices: DataSlices) -> RowForms:
    return row_forms(rows, Nest(rows, (rows.body.block.args[0],), slices))


def _with_whole_sums(found: RowForms, loop: scf.ForOp, slices: DataSlices) -> RowForms:
    """The same, of a loop that stands for it, where rows do not add up what is linear in memory of theirs: numbers may
    cancel there.
    """
    rows = with_local_elements(found.loop, slices)
    if rows is None:
        return found
    try:
        better = _forms_of(rows, slices)
    except Unfit:
        _erase(rows)
        return found
    if found.loop is not loop:
        _erase(found.loop)
    return better


def _erase(loop: scf.ForOp) -> None:
    loop.detach()
    loop.erase()


def _binding(found: RowForms, top: Block, slices: DataSlices, *, has_components: bool) -> FormBinding | str:
    try:
        columns = FormColumns(found, slices)
        return FormBinding(columns, FormValues(columns), top, has_components)
    except Unfit as reason:
        return str(reason)


def _may_gain(loop: scf.ForOp, early: bool) -> bool:
    """Whether rows of a loop may have vectors, of which something is added up."""
    classes = [type(op) for op in ops_within(loop)]
    kernels, products = (classes.count(cls) for cls in (rt.KernelOp, arith.MulfOp))
    return ad.TargetAddOp in classes and (kernels > 0 or (products > 1 and not early))


def _squares(loop: scf.ForOp) -> bool:
    """Whether rows of a loop have a square, and are not long: what stands for loops is not looked at for others."""
    ops = list(islice(ops_within(loop), MOST_OPS + 1))
    return len(ops) <= MOST_OPS and any(
        (isinstance(op, rt.MathOp) and op.function.data == "square")
        or (isinstance(op, arith.MulfOp) and op.lhs is op.rhs)
        for op in ops
    )


@record
class _Evaluation:
    """Writes a branch in the place of a loop: over the reduced rows if they may be used, else as it was."""

    candidate: _Candidate
    reduced: ReducedForms
    ints: dict[int, SSAValue]

    def __post_init__(self) -> None:
        self.found, self.bound = self.candidate.forms, self.candidate.bound

    def write(self) -> scf.IfOp:
        """Puts the branch there."""
        loop, nested = self.candidate.loop, self.candidate.nested
        write = OpWriter(loop)
        ok = self._may_be_used(write)
        end, otherwise = scf.YieldOp.create(), Block()
        arms = [Region(Block([end])), Region(otherwise)]
        types = [result.type for result in loop.results]
        branch = scf.IfOp.create(operands=[ok], result_types=types, regions=arms, location=loop.location)
        rt.ReducedAttr().put(branch)
        write.before(branch)
        results = FormRows(self.found, self.bound.values, self.reduced).write(OpWriter(end))
        end.operands = results if nested is None else nested.write_rest(OpWriter(end))
        for result, given in zip(loop.results, branch.results, strict=True):
            replace_uses(result, given)
        loop.detach()
        otherwise.add_ops([loop, scf.YieldOp.create(operands=list(loop.results))])
        if self.found.loop is not loop:
            _erase(self.found.loop)
            for memory, stride in self.candidate.matrices.items():
                compute_first_row(memory, stride, branch, self.ints)
        if nested is not None:
            nested.erase_copy()
        return branch

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
                env, start = dict.fromkeys(self.bound.columns.keys, key), inside.anchor.operands[0]
            total = sum_over(loops, copier, env, inside, start, _Squares(leaf, copier).add)
            total = carry(inside, total) if is_of_group else total
        found = [write.compare("olt", total, LARGEST_SQUARES)]
        for divisor in dict.fromkeys(self.found.divisors):
            facts = self.found.nest.facts(divisor)
            if facts is not None and not facts.variables:
                found.append(write.compare("one", copier.value(divisor, {}, write), 0.0))
        for matrix, size in self.found.matrices.items():
            if not is_inside(matrix, self.found.loop) and not is_inside(size, self.found.loop):
                found.append(_has_diagonal(matrix, size, write))
        return [*found, *(self._is_so(condition, write) for condition in dict.fromkeys(self.found.asked))]

    def _is_so(self, condition: SSAValue, write: OpWriter) -> SSAValue:
        """Whether a condition that all rows share holds, in all iterations of loops inside of a row."""
        copier = self._copier()
        loops = self.bound.columns.loops_of((condition,), condition, LinearTerm())
        if not loops:
            return copier.value(condition, {}, write)

        def count(env: Environment, inside: OpWriter, total: SSAValue) -> SSAValue:
            failed = inside.where([copier.value(condition, env, inside)], inside.number(0.0), 1.0)
            return inside.real(arith.AddfOp, total, failed)

        return write.compare("oeq", sum_over(loops, copier, {}, write, write.number(0.0), count), 0.0)

    def _leaves(self) -> list[tuple[Leaf, Loops, bool]]:
        """All coefficients, with the loops that they are other ones in each iteration of, and whether groups have
        them.
        """
        found: dict[Leaf, tuple[Loops, bool]] = {}
        for value, terms in [*self.found.linear.items(), *self.found.checked.items()]:
            for term in terms:
                if term.leaf and not any(are_all_alike(term.leaf, known, self.found.loop) for known in found):
                    found[term.leaf] = self.bound.columns.loops_of(term.leaf, value, term), term.key is not None
        for value in self.found.moderate:
            found[value,] = self.bound.columns.loops_of((value,), value, LinearTerm()), False
        return [(leaf, loops, is_of_group) for leaf, (loops, is_of_group) in found.items()]

    def _copier(self) -> Copier:
        return Copier(lambda value: not is_inside(value, self.found.loop))


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


def _has_diagonal(matrix: SSAValue, size: SSAValue, write: OpWriter) -> SSAValue:
    """Whether no number on the diagonal of a matrix is 0."""
    k, inside = new_loop(write, write.whole(0), size, [write.whole(1)])
    index = inside.put(integer(arith.AddiOp, inside.put(integer(arith.MuliOp, k, size)), k))
    differs = inside.compare("one", inside.put(rt.LoadOp(matrix, index)), 0.0)
    before = inside.anchor.operands[0]
    zero = inside.whole(0)
    kept = inside.put(arith.SelectOp.create(operands=[differs, before, zero], result_types=[i64]))
    return write.compare_integers("ne", carry(inside, kept), write.whole(0))
