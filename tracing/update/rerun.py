"""Runs of a traced program, to be run again: as a whole, or a single call of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ulam.runtime.errors import ArgumentError, UlamError
from ulam.tracing.contexts import TraceContext
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.recorder import Continuation, Draws, Recorder, Replay, Source

EVERYTHING = 1 << 62
"""A limit that is none."""


@dataclass(eq=False)
class Run:
    """What one run has recorded, and how it goes once more. `entry`: the traced function; empty: the tracked one."""

    recorder: Recorder
    values: Sequence[Any]
    types: Sequence[ValueType]
    draws: Draws
    continuation: Continuation
    error: UlamError | None
    entry: str
    again: Callable[..., Run]
    """`again(context, entry, values, types, rng, recorder=None, target=0.0)`."""
    target: float = 0.0
    """Before a single call."""
    parts: bool = True
    """Whether single calls can run again."""
    is_written: bool = False
    """Whether the records were written op by op."""
    _whole: Recorder | None = None

    def call(
        self, context: TraceContext, entry: str, values: Sequence[Any], types: Sequence[ValueType], rng: Source | None,
        target: float,
    ) -> Run:  # fmt: skip
        """Runs a traced function of the program, with the target so far. Raises ArgumentError if records do not fit."""
        made = self.again(context, entry, values, types, rng, target=target)
        if made.recorder.info().dropped:
            raise ArgumentError(f"what runs again does not fit limit_bytes ({context.limit_bytes})")
        return made

    def keep_whole(self, recorder: Recorder) -> None:
        """Of records that were written: the same with all containers."""
        self._whole, self.is_written = recorder, True

    def whole(self, context: TraceContext) -> Recorder:
        """The same run with all containers kept. Records have the same places."""
        if self._whole is not None:
            return self._whole
        context = copy.copy(context)
        context.max_copy = context.limit_bytes = EVERYTHING
        recorder = Recorder(EVERYTHING, "stop", self.recorder.chunk_bytes)
        self.again(context, self.entry, self.values, self.types, Replay.of(self.draws), recorder, self.target)
        self._whole = recorder
        return recorder
