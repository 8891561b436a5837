"""Arrays of tuples among the parameters: where the unconstrained values of their fields lie.

    array[2] tuple(real, simplex[3]) a;      a.1[1]  a.2[1] (2 values)  a.1[2]  a.2[2] (2 values)

In the unconstrained vector a tuple's values stand together. Compiled code has an array for each field: its values are
gathered before they are transformed, and scattered where a point is unconstrained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import groupby

from xdsl.ir import SSAValue

from ulam.dialects import stan
from ulam.library.records import record
from ulam.passes.builder import BUFFER_REAL, Builder
from ulam.passes.complex_types import part_number
from ulam.passes.to_loops.lowering import Lowering
from ulam.passes.to_loops.values import total


@record(eq=False)
class _Level:
    """An array of tuples around a field: its sizes, the values of one tuple, and those before the field in it."""

    count: SSAValue
    stride: SSAValue
    offset: SSAValue


_Run = tuple[SSAValue, int | None]
"""Where values begin, and, if they are parts of complex numbers, which."""


def _position(builder: Builder, run: _Run, k: SSAValue) -> SSAValue:
    begin, part = run
    if part is None:
        return builder.add(begin, k)
    return builder.add(builder.add(begin, builder.i64(part)), builder.mul(k, builder.i64(2)))


@record(eq=False)
class FieldPlace:
    """Where the values of a field are: `own` for each of the tuples; `end` is behind all of what has been read."""

    begin: SSAValue
    end: SSAValue
    own: SSAValue
    levels: list[_Level]
    part: int | None
    """Of a part of a complex field: which. Its values are every second one."""

    def gathered(self, low: Lowering, theta: SSAValue) -> SSAValue:
        """A buffer with the values of all tuples one after the other."""
        builder = low.builder
        count = self.own
        for level in self.levels:
            count = builder.mul(count, level.count)
        out = builder.alloc(count, BUFFER_REAL)
        self._each(low, lambda at, there: self._copy(low, out, (there, None), theta, (at, self.part)))
        return out

    def scatter(self, low: Lowering, values: SSAValue, theta: SSAValue) -> None:
        """The inverse of `gathered`."""
        self._each(low, lambda at, there: self._copy(low, theta, (at, self.part), values, (there, None)))

    def _copy(self, low: Lowering, out: SSAValue, target: _Run, source: SSAValue, begin: _Run) -> None:
        builder = low.builder
        (to, _), (at, _) = target, begin
        if self.part is not None:

            def step(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                here, there = (_position(builder, run, k) for run in (target, begin))
                builder.store(builder.load(source, there), out, here, initial=True)
                return ()

            builder.for_loop(builder.i64(0), self.own, step)
        elif builder.known.get(self.own) == 1:
            builder.store(builder.load(source, at), out, to, initial=True)
        else:
            builder.copy(builder.view(out, to), builder.view(source, at), self.own, initial=True)

    def _each(self, low: Lowering, body: Callable[[SSAValue, SSAValue], None]) -> None:
        """Calls `body` for each tuple with the field's position in the vector, and in an array of its own."""
        builder = low.builder

        def nest(level: int, at: SSAValue, number: SSAValue) -> None:
            if level == len(self.levels):
                body(at, builder.mul(number, self.own))
                return
            here = self.levels[level]

            def step(k: SSAValue, _: Sequence[SSAValue]) -> Sequence[SSAValue]:
                place = builder.add(builder.add(at, here.offset), builder.mul(k, here.stride))
                nest(level + 1, place, builder.add(builder.mul(number, here.count), k))
                return ()

            builder.for_loop(builder.i64(0), here.count, step)

        nest(0, self.begin, builder.i64(0))


SizeOf = Callable[[Lowering, stan.ParameterOp, Sequence[SSAValue], int], SSAValue]
DimsOf = Callable[[stan.ParameterOp], list[SSAValue]]


@record(eq=False)
class ArraysOfTuples:
    """The parameters that are fields in arrays of tuples.

    `dims_of` gives a field's sizes before it is declared, `size_of` how many unconstrained values it has without its
    first dimensions.
    """

    ops: Sequence[stan.ParameterOp]
    dims_of: DimsOf
    size_of: SizeOf
    _places: dict[stan.ParameterOp, FieldPlace] = field(default_factory=dict["stan.ParameterOp", FieldPlace])

    def place(self, low: Lowering, op: stan.ParameterOp, begin: SSAValue) -> FieldPlace | None:
        """Where the values of a field are, if the first of the variable is at `begin`; None for other parameters."""
        name = _root(op)
        fields = [other for other in self.ops if _root(other) == name] if op.field_ranks is not None else []
        if not any(any(other.array_ranks) for other in fields):
            return None
        if op not in self._places:
            self._lay_out(low, fields, begin)
        return self._places[op]

    def _lay_out(self, low: Lowering, fields: Sequence[stan.ParameterOp], begin: SSAValue) -> None:
        builder = low.builder
        dims = {op: self.dims_of(op) for op in fields}
        own: dict[stan.ParameterOp, SSAValue] = {}
        levels: dict[stan.ParameterOp, list[_Level]] = {op: [] for op in fields}

        def size(ops: Sequence[stan.ParameterOp], level: int, skipped: int) -> SSAValue:
            """How many values the tuple has that these are the fields of, or the array of such tuples."""
            first = ops[0]
            if level == len(first.array_ranks):
                count = self.size_of(low, first, dims[first], skipped)
                own.update(dict.fromkeys(ops, count))
                return builder.mul(count, builder.i64(len(ops)))  # of a complex number both parts
            rank = first.array_ranks[level]
            count = total(builder, dims[first][skipped : skipped + rank])
            offset = builder.i64(0)
            offsets: list[tuple[stan.ParameterOp, SSAValue]] = []
            for _, group in groupby(ops, lambda op: op.var_name.data.split(".")[level + 1]):
                found = list(group)
                offsets += [(op, offset) for op in found]
                offset = builder.add(offset, size(found, level + 1, skipped + rank))
            for op, before in offsets:
                levels[op].insert(0, _Level(count, offset, before))
            return builder.mul(count, offset)

        end = builder.add(begin, size(fields, 0, 0))
        for op in fields:
            self._places[op] = FieldPlace(begin, end, own[op], levels[op], part_number(op.var_name.data))


def _root(op: stan.ParameterOp) -> str:
    return op.var_name.data.partition(".")[0]
