"""Running a call on by its table, op by op: where values were set in it, machine code would not know of them.

What the call did up to a place is copied, with what was set; from there on ops are evaluated one by one, and calls are
entered in the same way. Slow, next to machine code, but rarely needed: only where a value was set and a condition then
changes in the same call, or in one that has it below.

`Evaluator` evaluates single ops, for other operands and for the draws that they had.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError, FatalError, ProgramError, Rejection, UlamError, value_text
from ulam.tracing.copying import NO_CALLER, FrameCopier, Record, RecordWriter, Stream, no_draws
from ulam.tracing.instrument.graph import ADDING, Block, Edge, Item, Operand, Place, ValueType
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import Layout, Spot, spot_of
from ulam.tracing.tape.overlay import FrameChanges, Key
from ulam.tracing.tape.recorder import (
    NO_DRAWS,
    Continuation,
    Draws,
    DrawsExhausted,
    Recorder,
    Replay,
    Scripted,
    Source,
    generator,
)
from ulam.tracing.tape.tape import Tape
from ulam.tracing.tape.target import is_read
from ulam.tracing.tape.values import converted, unassigned

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace
    from ulam.tracing.update.values import FullValues


_RANGE = "accessing element out of range"


class Threw(Exception):
    """An op has thrown; `error` is what the program would raise."""

    def __init__(self, error: UlamError) -> None:
        self.error = error


class Evaluator:
    """Values of ops. What draws draws what it had drawn, then from the version's continuation; or from `source`."""

    def __init__(self, version: Trace, source: Source | None) -> None:
        self._version = version
        if source is not None and len(version.draws):
            scripted = isinstance(source, Scripted) or (isinstance(source, Replay) and source.scripted)
            if scripted != version.draws.scripted:
                kind = "scripted" if version.draws.scripted else "of a generator"
                raise ArgumentError(f"the draws of the trace are {kind}: others must be so, too")
        self._source = source

    def source(self, had: Draws) -> Source:
        """What a run draws from that had drawn `had`."""
        if self._source is not None:
            return self._source
        return Replay.of(had, self._version.continuation, fills=True)

    def went_on(self, continuation: Continuation) -> None:
        """A run has drawn: later ones go on from there."""
        self._version.continuation = continuation
        if self._source is not None:
            self._source = Replay.of(NO_DRAWS, continuation)

    def value(self, item: Item, operands: Sequence[Any]) -> Any:
        """Of an op that does not draw. Raises Threw."""
        if item.derived == "operand":
            return converted(operands[0], item.type)
        if item.derived == "dropped":
            return 0.0
        if item.kind == "target" and not item.text:
            return _sum(operands[0], item)
        try:
            return self._version.op_library.value(item, operands)
        except ProgramError as error:
            raise Threw(error) from None
        except IndexError:  # an element, where the count of a loop was set
            place = item.place or Place("", 0, 0)
            raise Threw(FatalError(_RANGE, "", place.file, place.line, place.column, ())) from None

    def drawn(
        self, item: Item, operands: Sequence[Any], had: Draws, *, others_follow: bool = False
    ) -> tuple[Any, Draws]:
        """The same for one that does: its value, and what it drew. `others_follow`: they have the rest of `had`."""
        source = self.source(had)
        made: list[Any] = []

        def start(context: Any) -> Any:
            made.append(generator(context, source))
            return made[-1]

        try:
            value = self._version.op_library.value(item, operands, start)
        except ProgramError as error:
            if made and made[-1].problem == 1:
                raise Threw(DrawsExhausted.after(len(made[-1].taken()))) from None
            raise Threw(error) from None
        self.went_on(made[-1].beyond() if others_follow else made[-1].continuation())
        return value, made[-1].taken()


def _sum(value: Any, item: Item) -> float:
    """Of a container that is added to the target: the elements one after the other, matrices by column."""
    type_ = item.operands[0].type
    flat = (np.swapaxes(value, -1, -2) if type_.base == "matrix" else np.asarray(value)).reshape(-1).astype(float)
    return float(np.add.accumulate(np.concatenate([[0.0], flat]))[-1])


RunLibrary = Callable[[str, Sequence[Any], Sequence[ValueType]], tuple[Recorder, UlamError | None]]
"""Runs a traced higher-order function for some arguments: its records, all containers whole, and its error."""


@dataclass
class _Active:
    """A call that is open: its values so far, or, behind them, those of the call that it goes on from."""

    layout: Layout
    values: dict[int, Any]
    base: Frame | None
    at: Spot
    block: Block
    ordinal: int
    record: Record | None
    run: int
    """Twice the number of its last step; one more in the header that follows it."""


@dataclass
class WrittenFrame:
    """What a run has left: records as shown and whole, what was drawn, how it ended."""

    writer: RecordWriter
    stream: Stream
    changes: dict[int, FrameChanges]
    error: UlamError | None = None
    result: Any = None


class Interpreter:
    """Runs calls on: `frames` are open, each called by the one before, and `keys` is where they are.

    `caller`, `call`: of the first.
    """

    def __init__(
        self, frames: Sequence[Frame], keys: Sequence[Key], writer: RecordWriter, stream: Stream,
        full: FullValues, evaluator: Evaluator, draws_of: Callable[[Frame, Spot], Draws], target: float,
        run_library: RunLibrary,
    ) -> None:  # fmt: skip
        self._run_library = run_library
        self.writer, self.stream = writer, stream
        self.full, self.evaluator, self.target = full, evaluator, target
        self.tables = frames[0].tape.tables
        self.stack: list[_Active] = []
        copier = FrameCopier(writer, stream, lambda f, item, spot: full.item(f, item, spot), draws_of)
        self.fixed = copier.fixed
        caller = NO_CALLER
        for frame, key in zip(frames, keys, strict=True):
            place, record = copier.copy(frame, key, caller)
            self._open(frame, key, record)
            caller = (place, key)

    def run(self) -> WrittenFrame:
        """To the end of the first call."""
        done = WrittenFrame(self.writer, self.stream, self.fixed)
        try:
            done.result = self._run()
        except Threw as threw:
            done.error = threw.error
        return done

    def _open(self, frame: Frame, key: Key, record: Record | None) -> None:
        spot = spot_of(key)
        block = frame.block_at(spot)
        ordinal = spot.offset - len(block.arguments)
        if ordinal < len(block.items) and (stream := block.items[ordinal].stream) is not None and record is not None:
            record.put(stream, struct.pack("<q", self.stream.count))
        active = _Active(frame.layout, {}, frame, spot, block, ordinal, record, key[0])
        self.stack.append(active)

    # ------------------------------------------------------------ running

    def _run(self) -> Any:
        result: Any = None
        for outer in self.stack[:-1]:  # each but the last is in a call
            self._guard(outer)
        while True:
            active = self.stack[-1]
            if active.ordinal < len(active.block.items):
                self._item(active, active.block.items[active.ordinal])
                continue
            edge = self._edge(active)
            if edge.target:
                self._go(active, edge)
                continue
            returned = None if edge.value is None else self._operand(active, edge.value)
            result = None if returned is None else converted(returned, active.layout.graph.result)
            self.stack.pop()
            if not self.stack:
                return result
            caller = self.stack[-1]
            self._done(caller, caller.block.items[caller.ordinal], result)

    def _guard(self, active: _Active) -> None:
        if active.record is not None:
            active.record.reached(active.ordinal)

    def _item(self, active: _Active, item: Item) -> None:
        if item.throws or item.child:
            self._guard(active)
        if item.stream is not None and active.record is not None:
            active.record.put(item.stream, struct.pack("<q", self.stream.count))
        operands = [self._operand(active, operand) for operand in item.operands]
        if item.child and not item.calls_function:
            self._call(active, item, operands)
            return
        if item.child:
            self._done(active, item, self._of_library(item, operands))
            return
        if item.name in ("reject", "fatal_error") and item.kind == "special":
            raise Threw(_stopped(item, operands))
        value: Any = None
        if is_read(item):
            value = self.target
        elif item.stream is not None:
            value, drawn = self.evaluator.drawn(item, operands, self.stream.left, others_follow=True)
            self.stream.add(drawn)
        elif item.name != "print" or item.kind != "special":
            value = self.evaluator.value(item, operands)
        self._done(active, item, value)

    def _done(self, active: _Active, item: Item, value: Any) -> None:
        """An op is over."""
        if item.kind in ADDING:
            self.target += value
        if active.record is not None and active.run % 2 == 0:
            if item.stream is not None:
                active.record.put(item.stream + 1, struct.pack("<q", self.stream.count))
            if item.slot is not None:
                self.writer.put(active.record, item.slot, item.type, value)
            if item.target_slot is not None:
                active.record.put(item.target_slot, struct.pack("<d", self.target))
        active.values[item.index] = value
        active.ordinal += 1

    def _call(self, active: _Active, item: Item, operands: Sequence[Any]) -> None:
        layout = self.tables.layouts[item.child]
        entry = layout.graph.blocks[0]
        record = self.writer.begin(entry)
        pairs = zip(layout.graph.parameters, operands, strict=True)
        values = {parameter.index: converted(value, parameter.type) for parameter, value in pairs}
        self.stack.append(_Active(layout, values, None, Spot(0, False, 0), entry, 0, record, 0))

    def _of_library(self, item: Item, operands: Sequence[Any]) -> Any:
        """The value of a higher-order function, which runs as machine code: what it recorded is copied."""
        parameters = self.tables.layouts[item.child].graph.parameters
        values = [converted(value, p.type) for p, value in zip(parameters, operands, strict=True)]
        recorder, error = self._run_library(item.child, values[1:], [p.type for p in parameters[1:]])
        frame = Tape(recorder, self.tables, values, error is not None).frame(item.child, 0)
        copier = FrameCopier(self.writer, Stream(NO_DRAWS), lambda f, i, spot: f.item_value(i, spot), no_draws)
        copier.copy(frame, None, NO_CALLER)
        if error is not None:
            raise Threw(error)
        end = frame.spot(frame.length)
        returned = frame.block_at(end).edges[0].value
        assert returned is not None
        return frame.operand(returned, end)

    def _edge(self, active: _Active) -> Edge:
        edges = active.block.edges
        if len(edges) == 1:
            return edges[0]
        condition = edges[0].condition
        assert condition is not None
        truth = bool(self._operand(active, condition))
        return next(edge for edge in edges if edge.holds == truth)

    def _go(self, active: _Active, edge: Edge) -> None:
        block = active.layout.graph.blocks[edge.target - 1]
        passed = [self._operand(active, operand) for operand in edge.arguments]
        if block.record:
            active.record = self.writer.begin(block)
            active.run = 2 * (active.run // 2 + 1)
            if block.counter >= 0:
                header = active.layout.header_before(block)
                count = self._value(active, header.arguments[-1].index)
                active.record.put(block.counter, struct.pack("<q", count))
        else:
            active.run += 1
        for argument, value in zip(block.arguments, passed, strict=True):
            active.values[argument.index] = converted(value, argument.type)
        active.block, active.ordinal = block, 0

    def _operand(self, active: _Active, operand: Operand) -> Any:
        if operand.index:
            return converted(self._value(active, operand.index), operand.type)
        if operand.constant is None:
            return unassigned(operand.type, (0,) * operand.type.rank)
        return converted(operand.constant, operand.type)

    def _value(self, active: _Active, index: int) -> Any:
        if index in active.values:
            return active.values[index]
        assert active.base is not None
        value = active.values[index] = self.full.value(active.base, index, active.at)
        return value


def _stopped(item: Item, operands: Sequence[Any]) -> UlamError:
    """What `reject` and `fatal_error` raise."""
    parts = [value_text(v) if isinstance(v, int | float) else str(v) for v in operands]
    place = item.place
    file, line, column = ("", 0, 0) if place is None else (place.file, place.line, place.column)
    kind = Rejection if item.name == "reject" else FatalError
    return kind("".join(parts), "", file, line, column, ())
