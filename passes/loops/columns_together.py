"""Products of a matrix and a vector add several columns at a time to each row.

    for k in 0 to K: (b = b[k])       →    for g in 0 to G = K / 4: (b0, b1, .. = b[g], b[G + g], ..)
      for n: y[n] += X[n, k] * b             for n: y[n] += X[n, g] * b0 + X[n, G + g] * b1 + ..

Those of a block of rows, that is, as densities take them; what is done with whole vectors stays as it is. Each row
is then read and written once for four columns, also in the reverse of it, where the derivative of a row serves
four of them. Columns of successive groups lie one behind the other in memory: four streams, which processors fetch
ahead however few the rows are. Where there are fewer left, the last column is there several times, each time with its
share of the factor: one loop does it all, and what is infinite or NaN is so as before. Shares are powers of 2, so that
nothing is rounded: 1/2 twice, 1/2 and 1/4 twice, 1/4 four times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i64
from xdsl.ir import SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import PURE, UNKNOWN, root, written_roots_within
from ulam.passes.loops.linear_rows import Copier, Environment, is_of_column, new_loop
from ulam.passes.loops.op_writer import OpWriter, integer
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

TOGETHER = 4
"""Columns that are added at a time."""


class ColumnsTogether(TellingPass):
    """Adds several columns at a time to the rows of products of matrices and vectors."""

    name = "columns-together"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        top = evaluate_of(module, self.name).body.block
        changed = False
        for columns in [op for op in ops_within(top) if type(op) is scf.ForOp]:
            nests = _nests(columns)
            for nest in nests:
                _write(nest)
            if nests:
                discard(columns)
                changed = True
        return changed


@record
class _Nest:
    """A loop over columns, the one over rows inside, the entry of the matrix and its factor."""

    columns: scf.ForOp
    rows: scf.ForOp
    target: ad.AccumulateOp
    entry: rt.LoadOp
    factor: SSAValue


def summed_rows(columns: scf.ForOp) -> list[tuple[scf.ForOp, list[ad.AccumulateOp]]]:
    """The loops over rows inside of one over columns, each with what adds to sums of rows; none if they do more."""
    inside = [op for op in columns.body.block.ops if type(op) not in PURE and not isinstance(op, rt.LoadOp)]
    if len(inside) < 2 or columns.results:
        return []
    found: list[tuple[scf.ForOp, list[ad.AccumulateOp]]] = []
    for rows in inside[:-1]:
        if not isinstance(rows, scf.ForOp) or rows.results or constant_integer(rows.step) != 1:
            return []
        ops = [op for op in rows.body.block.ops if type(op) not in PURE and not isinstance(op, rt.LoadOp)]
        targets = [op for op in ops if isinstance(op, ad.AccumulateOp)]
        if (
            not targets
            or len(targets) != len(ops) - 1
            or any(is_inside(bound, columns) for bound in (rows.lb, rows.ub))
        ):
            return []
        found.append((rows, targets))
    return found


def _nests(columns: scf.ForOp) -> list[_Nest]:
    """The products that a loop over columns makes; none if it makes something else."""
    if constant_integer(columns.step) != 1 or constant_integer(columns.lb) != 0:
        return []
    nests = [_nest(columns, rows, targets) for rows, targets in summed_rows(columns)]
    return [] if None in nests else [nest for nest in nests if nest is not None]


def _nest(columns: scf.ForOp, rows: scf.ForOp, targets: Sequence[ad.AccumulateOp]) -> _Nest | None:
    """The product that a loop over rows makes; None if it makes none."""
    target, product = targets[0], targets[0].value.owner
    if len(targets) != 1 or is_inside(target.buffer, columns) or not isinstance(product, arith.MulfOp):
        return None
    if constant_integer(rows.lb) == 0 or not _is_of_row(target, columns, rows):
        return None
    for entry, factor in (product.operands, tuple(reversed(product.operands))):
        load = entry.owner
        if isinstance(load, rt.LoadOp) and is_inside(entry, rows) and _is_read_alone(load, columns):
            if is_of_column(factor, columns, columns.body.block.args[0]):
                return _Nest(columns, rows, target, load, factor)
    return None


def _is_of_row(target: ad.AccumulateOp, columns: scf.ForOp, rows: scf.ForOp) -> bool:
    """Whether the place of a sum is the same for all columns."""
    return all(is_inside(value, rows) or not is_inside(value, columns) for value in _needed(target.index, rows))


def _needed(value: SSAValue, loop: scf.ForOp) -> Iterator[SSAValue]:
    """A value, and all that it is computed of in a loop."""
    work, seen = [value], set[SSAValue]()
    while work:
        value = work.pop()
        if value in seen:
            continue
        seen.add(value)
        yield value
        if is_inside(value, loop) and value is not loop.body.block.args[0]:
            work += getattr(value.owner, "operands", ())


def _is_read_alone(load: rt.LoadOp, columns: scf.ForOp) -> bool:
    """Whether what is read is not written in the nest."""
    written = set(written_roots_within(columns))
    return UNKNOWN not in written and root(load.buffer) is not UNKNOWN and root(load.buffer) not in written


def _write(nest: _Nest) -> None:
    """Puts a loop over groups of columns in front."""
    columns, count = nest.columns, nest.columns.ub
    write = OpWriter(columns)
    last = write.put(integer(arith.SubiOp, count, write.whole(1)))
    rounded = write.put(integer(arith.AddiOp, count, write.whole(TOGETHER - 1)))
    shift = write.whole(TOGETHER.bit_length() - 1)
    groups = write.put(arith.ShRSIOp.create(operands=(rounded, shift), result_types=(i64,)))
    known = constant_integer(count)
    shares = None if known is not None and known % TOGETHER == 0 else _Shares(write, groups, last)
    group, inside = new_loop(write, write.whole(0), groups)
    copier = Copier(lambda value: not is_inside(value, columns))
    environments: list[tuple[Environment, SSAValue]] = []
    for n in range(TOGETHER):
        place = (
            group
            if n == 0
            else inside.put(integer(arith.AddiOp, group, inside.put(integer(arith.MuliOp, groups, inside.whole(n)))))
        )
        share = None
        if shares is not None:
            share, place = shares.of(place, inside), inside.put(integer(arith.MinSIOp, place, last))
        env: Environment = {columns.body.block.args[0]: place}
        for op in columns.body.block.ops:
            if op is not terminator(columns.body.block) and not isinstance(op, scf.ForOp):
                copier.value(op.results[0], env, inside)
        factor = copier.value(nest.factor, env, inside)
        environments.append((env, factor if share is None else inside.real(arith.MulfOp, factor, share)))
    row, innermost = new_loop(inside, nest.rows.lb, nest.rows.ub)
    total: SSAValue | None = None
    for env, factor in environments:
        env = {**env, nest.rows.body.block.args[0]: row}
        term = innermost.real(arith.MulfOp, copier.value(nest.entry.res, env, innermost), factor)
        total = term if total is None else innermost.real(arith.AddfOp, total, term, reassociate=True)
    place = copier.value(nest.target.index, {nest.rows.body.block.args[0]: row}, innermost)
    assert total is not None
    innermost.before(ad.AccumulateOp(nest.target.buffer, place, total))


class _Shares:
    """What each of the columns of the last group gets of its factor."""

    def __init__(self, write: OpWriter, groups: SSAValue, last: SSAValue) -> None:
        self._last = last
        end = write.put(integer(arith.MuliOp, groups, write.whole(TOGETHER)))
        times = write.put(integer(arith.SubiOp, end, last))  # that the last one is there
        many = write.compare_integers("sgt", times, write.whole(2))
        self._share = _choice(write, many, write.number(0.25), write.number(0.5))
        others = write.put(integer(arith.SubiOp, times, write.whole(1)))
        others = write.put(arith.SIToFPOp.create(operands=(others,), result_types=(f64,)))
        self._one = write.number(1.0)
        self._rest = write.real(arith.SubfOp, self._one, write.real(arith.MulfOp, others, self._share))

    def of(self, place: SSAValue, write: OpWriter) -> SSAValue:
        """The share of the column at a place."""
        part = _choice(write, write.compare_integers("eq", place, self._last), self._rest, self._share)
        return _choice(write, write.compare_integers("sge", place, self._last), part, self._one)


def _choice(write: OpWriter, condition: SSAValue, value: SSAValue, otherwise: SSAValue) -> SSAValue:
    return write.put(arith.SelectOp.create(operands=(condition, value, otherwise), result_types=(value.type,)))
