"""Loops that hand memory on, an element for each row, as one loop over rows.

    for strip: m = alloc zero 256;                           for n in 0:N:
      for k: for n in strip: m[n - first] += x[n, k] * b[k]  →     s = sum over k of x[n, k] * b[k]
      for n in strip: target += f(m[n - first])                    target += f(s)

Products of a matrix and a vector are computed strip by strip, so that columns are read as they lie in memory. Where
nests have such strips inside, as for `y[first : last] ~ normal(X[first : last] * b, s)`, or fill memory for each group
(`vector[n] mu = X[first : last] * b`), what looks for rows sees them in a copy of the nest like this
(`coalesce-loops`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.ir import Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer, not_clamped
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import ancestor_in, terminator
from ulam.passes.loops.effects import DIVISIONS, PURE
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.merged_flags import merge_flags
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.rows_of_loops import ELEMENTS, StripsOfRows, strips_of
from ulam.passes.rewriting import copies, discard, replace_uses


class _Unfit(Exception):
    """Strips do something else than to compute rows."""


def with_rows_alone(nest: scf.ForOp, bound: dict[int, SSAValue] | None = None) -> scf.ForOp | None:
    """A copy of a nest, in front of it, whose loops over rows hand nothing on; None if none does, or by other ways.
    `bound`: what `bind` puts into slots, as numbers of strips; with it a nest may be a loop over strips itself.
    """
    is_strips = bound is not None and strips_of(nest, bound) is not None
    bound = {} if bound is None else bound
    if not is_strips and not _strips_inside(nest, bound) and _handed_on(nest) is None:
        return None
    (copy,) = copies([nest], {})
    assert isinstance(copy, scf.ForOp) and nest.parent is not None
    nest.parent.insert_op_before(copy, nest)
    try:
        if is_strips and (strips := strips_of(copy, bound)) is not None:
            copy = _write_strips(strips)
        for strips in _strips_inside(copy, bound):
            _write_strips(strips)
        while (found := _handed_on(copy)) is not None:
            _write_group(*found)
    except _Unfit:
        discard(copy)
        return None
    return copy


def _strips_inside(nest: scf.ForOp, bound: dict[int, SSAValue]) -> list[StripsOfRows]:
    loops = [op for op in ops_within(nest.body.block) if isinstance(op, scf.ForOp)]
    return [strips for loop in loops if (strips := strips_of(loop, bound)) is not None]


def _handed_on(nest: scf.ForOp) -> tuple[rt.AllocOp, list[scf.ForOp]] | None:
    """Memory of a group, and the loops that use it, the last of which is over its elements."""
    for op in ops_within(nest):
        if not isinstance(op, rt.AllocOp) or constant_integer(op.count) is not None or op.parent is None:
            continue
        users = {ancestor_in(use.operation, op.parent) for use in op.res.uses}
        ordered = [user for user in op.parent.ops if user in users]
        loops = [user for user in ordered if isinstance(user, scf.ForOp)]
        if len(loops) > 1 and len(loops) == len(users) and _runs_over(loops[-1], op.count):
            return op, loops
    return None


def _runs_over(loop: scf.ForOp, count: SSAValue) -> bool:
    is_by_one = constant_integer(loop.lb) == 0 and constant_integer(loop.step) == 1
    return is_by_one and not_clamped(loop.ub) is not_clamped(count)


def _write_strips(strips: StripsOfRows) -> scf.ForOp:
    """Puts a loop over rows in the place of one over strips."""
    loop, body = strips.loop, strips.loop.body.block
    merge_flags(loop)
    rows = _Rows(strips.begin, strips.end.result, {body.args[0], strips.begin, strips.end.result})
    carried, inside = rows.begin_loop(loop, strips.end.rhs)
    rows.known.update(zip(body.args[1:], carried, strict=True))
    bounds = (strips.begin.owner, strips.end.lhs.owner, strips.end)
    for op in list(body.ops)[:-1]:
        if isinstance(op, rt.AllocOp) and constant_integer(op.count) == strips.size:
            rows.elements[op.res] = inside.number(0.0)
        elif op not in bounds:
            rows.write(op, inside)
    inside.anchor.operands = rows.known_of(terminator(body).operands)
    discard(loop)
    written = inside.anchor.parent_op()
    assert isinstance(written, scf.ForOp)
    return written


def _write_group(memory: rt.AllocOp, loops: list[scf.ForOp]) -> None:
    """Lets the last of the loops over a group's rows do what others did for it."""
    last = loops[-1]
    if any(loop.results for loop in loops[:-1]):
        raise _Unfit
    rows = _Rows(None, not_clamped(memory.count), set())
    carried, inside = rows.begin_loop(last, last.ub)
    rows.elements[memory.res] = inside.number(0.0)
    for loop in loops[:-1]:
        rows.write(loop, inside)
    rows.write_row(last, carried, inside)
    inside.anchor.operands = rows.known_of(terminator(last.body.block).operands)
    for op in (*reversed(loops), memory):
        discard(op)


@record
class _Rows:
    """Writes what loops do for a row. Raises _Unfit if it needs more than the row."""

    begin: SSAValue | None
    """Where loops over rows begin; None: at 0."""
    end: SSAValue
    foreign: set[SSAValue]
    """What no row alone has."""
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What values of the loops are for the row."""
    elements: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Memory with an element for each row → what the row has of it so far."""

    def begin_loop(self, old: scf.ForOp, count: SSAValue) -> tuple[Sequence[SSAValue], OpWriter]:
        """A loop over all rows in front of one, whose results it takes over; what it carries, and a writer inside."""
        write = OpWriter(old)
        self.row, inside = new_loop(write, write.whole(0), count, old.iter_args)
        new = inside.anchor.parent_op()
        assert isinstance(new, scf.ForOp)
        new.location = old.location
        for result, replacement in zip(old.results, new.results, strict=True):
            replace_uses(result, replacement)
        return new.body.block.args[1:], inside

    def known_of(self, values: Iterable[SSAValue]) -> list[SSAValue]:
        """What values are for the row."""
        return [self.known.get(value, value) for value in values]

    def write(self, op: Operation, inside: OpWriter) -> None:
        """An op around, or ahead of, loops over rows: it is computed for each row."""
        if isinstance(op, scf.ForOp) and self._is_over_rows(op):
            self.write_row(op, self.known_of(op.iter_args), inside)
        elif isinstance(op, scf.ForOp):
            self._write_columns(op, inside)
        elif type(op) in PURE or type(op) in DIVISIONS or isinstance(op, rt.LoadOp):
            self._copy(op, inside)
        else:
            raise _Unfit

    def _is_over_rows(self, loop: scf.ForOp) -> bool:
        if self.begin is not None:
            return loop.lb is self.begin and loop.ub is self.end
        return _runs_over(loop, self.end)

    def _write_columns(self, loop: scf.ForOp, inside: OpWriter) -> None:
        """A loop around loops over rows, which carries what the row has of memory."""
        if constant_integer(loop.step) != 1 or self._is_foreign(loop):
            raise _Unfit
        changed = [buffer for buffer in self.elements if _accesses(loop, buffer)]
        starts = self.known_of(loop.iter_args) + [self.elements[buffer] for buffer in changed]
        lower, upper = self.known_of([loop.lb, loop.ub])
        variable, within = new_loop(inside, lower, upper, starts)
        new = within.anchor.parent_op()
        assert isinstance(new, scf.ForOp)
        new.location = loop.location
        body, carried = loop.body.block, new.body.block.args[1:]
        self.known[body.args[0]] = variable
        self.known.update(zip(body.args[1:], carried, strict=False))
        self.elements.update(zip(changed, carried[len(loop.results) :], strict=True))
        for op in list(body.ops)[:-1]:
            self.write(op, within)
        ends = self.known_of(terminator(body).operands) + [self.elements[buffer] for buffer in changed]
        within.anchor.operands = ends
        self.known.update(zip(loop.results, new.results, strict=False))
        self.elements.update(zip(changed, new.results[len(loop.results) :], strict=True))

    def write_row(self, loop: scf.ForOp, carried: Sequence[SSAValue], inside: OpWriter) -> None:
        """One iteration of a loop over rows."""
        body = loop.body.block
        self.known[body.args[0]] = self.row
        self.known.update(zip(body.args[1:], carried, strict=True))
        places: set[SSAValue] = set()
        if self.begin is None:
            places.add(body.args[0])
        for op in list(body.ops)[:-1]:
            if type(op) in ELEMENTS and op.operands[ELEMENTS[type(op)][0]] in self.elements:
                self._access(op, places, inside)
            elif isinstance(op, arith.SubiOp) and op.lhs is body.args[0] and op.rhs is self.begin:
                places.add(op.result)
                self.foreign.add(op.result)
            else:
                self._copy(op, inside)
        self.known.update(zip(loop.results, self.known_of(terminator(body).operands), strict=True))

    def _access(self, op: Operation, places: set[SSAValue], inside: OpWriter) -> None:
        """What reads, sets or adds to the row's element of memory."""
        at, place = ELEMENTS[type(op)]
        buffer = op.operands[at]
        if op.operands[place] not in places:
            raise _Unfit
        if isinstance(op, rt.LoadOp):
            self.known[op.res] = self.elements[buffer]
        elif isinstance(op, rt.StoreOp):
            (self.elements[buffer],) = self.known_of([op.value])
        else:
            assert isinstance(op, ad.AccumulateOp)
            (value,) = self.known_of([op.value])
            self.elements[buffer] = inside.real(arith.AddfOp, self.elements[buffer], value, reassociate=True)

    def _copy(self, op: Operation, inside: OpWriter) -> None:
        if self._is_foreign(op) or any(map(self._is_foreign, ops_within(op))):
            raise _Unfit
        inside.before(copies([op], self.known)[0])

    def _is_foreign(self, op: Operation) -> bool:
        return any(operand in self.foreign or operand in self.elements for operand in op.operands)


def _accesses(loop: scf.ForOp, buffer: SSAValue) -> bool:
    return any(buffer in op.operands for op in ops_within(loop.body.block))
