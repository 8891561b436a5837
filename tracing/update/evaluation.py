"""Ops one by one, for versions of a trace: their values for other operands, and for the draws that they had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.errors import ArgumentError, FatalError, ProgramError, UlamError
from ulam.tracing.instrument.graph import Item, Place
from ulam.tracing.tape.recorder import (
    NO_DRAWS,
    Continuation,
    Draws,
    DrawsExhausted,
    Replay,
    Scripted,
    Source,
    generator,
)
from ulam.tracing.tape.values import converted

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


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
