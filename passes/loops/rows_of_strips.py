"""Loops over strips of rows as loops over rows, in which a row adds up its products alone.

    for strip: m = alloc zero 256;                           for n in 0:N:
      for k: for n in strip: m[n - first] += x[n, k] * b[k]  →     s = sum over k of x[n, k] * b[k]
      for n in strip: target += f(m[n - first])                    target += f(s)

Products of a matrix and a vector are computed strip by strip, so that columns are read as they lie in memory. Where
nests have such strips inside, as for `y[first : last] ~ normal(X[first : last] * b, s)`, what looks for rows sees them
in a copy of the nest like this (`coalesce-loops`).
"""

from __future__ import annotations

from dataclasses import field

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.effects import DIVISIONS, PURE
from ulam.passes.loops.linear_rows import new_loop
from ulam.passes.loops.merged_flags import merge_flags
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.rows_of_loops import ELEMENTS, StripsOfRows, strips_of
from ulam.passes.rewriting import copies, discard, replace_uses


class _Unfit(Exception):
    """Strips do something else than to compute rows."""


def without_strips(nest: scf.ForOp) -> scf.ForOp | None:
    """A copy of a nest, in front of it, without the strips inside; None if it has none, or other ones."""
    if not _strips_inside(nest):
        return None
    (copy,) = copies([nest], {})
    assert isinstance(copy, scf.ForOp) and nest.parent is not None
    nest.parent.insert_op_before(copy, nest)
    try:
        for strips in _strips_inside(copy):
            _Rows(strips).write()
    except _Unfit:
        discard(copy)
        return None
    return copy


def _strips_inside(nest: scf.ForOp) -> list[StripsOfRows]:
    loops = [op for op in ops_within(nest.body.block) if isinstance(op, scf.ForOp)]
    return [strips for loop in loops if (strips := strips_of(loop, {})) is not None]


@record
class _Rows:
    """Writes the rows of strips. Raises _Unfit if they are not the same alone."""

    strips: StripsOfRows
    known: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What values of the strips are in the loop over rows."""
    elements: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Memory of a strip → what the row has of it so far."""
    places: set[SSAValue] = field(default_factory=set[SSAValue])
    """Where in such memory the row is."""

    def write(self) -> None:
        """Puts them in the place of the strips."""
        merge_flags(self.strips.loop)
        loop, body = self.strips.loop, self.strips.loop.body.block
        write = OpWriter(loop)
        self.row, inside = new_loop(write, write.whole(0), self.strips.end.rhs, loop.iter_args)
        new = inside.anchor.parent_op()
        assert isinstance(new, scf.ForOp)
        new.location = loop.location
        self.known.update(zip(body.args[1:], new.body.block.args[1:], strict=True))
        self.own = {self.strips.begin.owner, self.strips.end.lhs.owner, self.strips.end}
        self._write_around(body, inside)
        inside.anchor.operands = self._known_of(terminator(body).operands)
        for old, result in zip(loop.results, new.results, strict=True):
            replace_uses(old, result)
        discard(loop)

    def _known_of(self, values: tuple[SSAValue, ...] | list[SSAValue]) -> list[SSAValue]:
        return [self.known.get(value, value) for value in values]

    def _write_around(self, block: Block, inside: OpWriter) -> None:
        """What stands around loops over the rows of a strip: it is computed for each row."""
        for op in block.ops:
            if op in self.own or op is terminator(block):
                continue
            if isinstance(op, rt.AllocOp) and constant_integer(op.count) == self.strips.size:
                self.elements[op.res] = inside.number(0.0)
            elif isinstance(op, scf.ForOp):
                if op.lb is self.strips.begin and op.ub is self.strips.end.result:
                    self._write_row(op, inside)
                else:
                    self._write_columns(op, inside)
            elif type(op) in PURE or type(op) in DIVISIONS or isinstance(op, rt.LoadOp):
                self._copy(op, inside)
            else:
                raise _Unfit

    def _write_columns(self, loop: scf.ForOp, inside: OpWriter) -> None:
        """A loop around loops over the rows of a strip, which carries what the row has of memory."""
        if constant_integer(loop.step) != 1 or self._is_of_strip(loop):
            raise _Unfit
        changed = [buffer for buffer in self.elements if _accesses(loop, buffer)]
        starts = self._known_of([*loop.iter_args]) + [self.elements[buffer] for buffer in changed]
        lower, upper = self._known_of([loop.lb, loop.ub])
        variable, within = new_loop(inside, lower, upper, starts)
        new = within.anchor.parent_op()
        assert isinstance(new, scf.ForOp)
        new.location = loop.location
        body, carried = loop.body.block, new.body.block.args[1:]
        self.known[body.args[0]] = variable
        self.known.update(zip(body.args[1:], carried, strict=False))
        self.elements.update(zip(changed, carried[len(loop.results) :], strict=True))
        self._write_around(body, within)
        ends = self._known_of([*terminator(body).operands]) + [self.elements[buffer] for buffer in changed]
        within.anchor.operands = ends
        self.known.update(zip(loop.results, new.results, strict=False))
        self.elements.update(zip(changed, new.results[len(loop.results) :], strict=True))

    def _write_row(self, loop: scf.ForOp, inside: OpWriter) -> None:
        """One iteration of a loop over the rows of a strip."""
        body = loop.body.block
        self.known[body.args[0]] = self.row
        self.known.update(zip(body.args[1:], self._known_of([*loop.iter_args]), strict=True))
        for op in list(body.ops)[:-1]:
            if type(op) in ELEMENTS and op.operands[ELEMENTS[type(op)][0]] in self.elements:
                self._access(op, inside)
            elif isinstance(op, arith.SubiOp) and op.lhs is body.args[0] and op.rhs is self.strips.begin:
                self.places.add(op.result)
            else:
                self._copy(op, inside)
        self.known.update(zip(loop.results, self._known_of([*terminator(body).operands]), strict=True))

    def _access(self, op: Operation, inside: OpWriter) -> None:
        """What reads, sets or adds to the row's element of memory."""
        at, place = ELEMENTS[type(op)]
        buffer = op.operands[at]
        if op.operands[place] not in self.places:
            raise _Unfit
        if isinstance(op, rt.LoadOp):
            self.known[op.res] = self.elements[buffer]
        elif isinstance(op, rt.StoreOp):
            (self.elements[buffer],) = self._known_of([op.value])
        else:
            assert isinstance(op, ad.AccumulateOp)
            (value,) = self._known_of([op.value])
            self.elements[buffer] = inside.real(arith.AddfOp, self.elements[buffer], value, reassociate=True)

    def _copy(self, op: Operation, inside: OpWriter) -> None:
        if self._is_of_strip(op) or any(self._is_of_strip(inner) for inner in ops_within(op)):
            raise _Unfit
        inside.before(copies([op], self.known)[0])

    def _is_of_strip(self, op: Operation) -> bool:
        """Whether an op needs what only strips have."""
        own = {self.strips.loop.body.block.args[0], self.strips.begin, self.strips.end.result, *self.places}
        return any(operand in own or operand in self.elements for operand in op.operands)


def _accesses(loop: scf.ForOp, buffer: SSAValue) -> bool:
    return any(buffer in op.operands for op in ops_within(loop.body.block))
