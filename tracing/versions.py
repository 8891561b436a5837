"""Versions of a trace: made of another, sharing its records (see `overlay`), or put in its place."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError, UlamError
from ulam.tracing.contexts import TraceContext
from ulam.tracing.instrument.graph import ValueType
from ulam.tracing.tape.recorder import Continuation, Draws, Recorder, Replay, Source
from ulam.tracing.tape.tape import Tape
from ulam.tracing.trace import Trace, TraceError, origin

if TYPE_CHECKING:
    from ulam.tracing.contexts import TraceContext


def require_updatable(trace: Trace) -> None:
    """Raises ArgumentError for traces that are not whole, or whose program is not there."""
    recorder = trace.tape.recorder
    if not trace.runs:
        raise ArgumentError("the trace was loaded from a file: its program is not there to be run; track it again")
    if recorder.mode != "edges" and recorder.info().dropped:
        raise ArgumentError(
            f"the trace is not whole: {recorder.info().dropped} nodes were not kept; give it a higher limit_bytes"
        )


def new_version(trace: Trace) -> Trace:
    """A trace with the same contents, to be changed."""
    tape = trace.tape.version()
    tape.copied = trace.context.max_copy
    made = trace.same_program(tape)
    made.draws, made.continuation, made.error = trace.draws, trace.continuation, trace.error
    made.runs, made.other_draws = dict(trace.runs), dict(trace.other_draws)
    made.again = partial(_with_copies, made)
    return made


def _with_copies(version: Trace, context: TraceContext) -> Trace:
    """The same version with all containers whole; the context that asks for that."""
    made = version.same_program(whole_tape(version, version.tape))
    made.context, made.draws, made.error = context, version.draws, version.error
    return made


@dataclass
class State:
    """What a trace was before an update in place."""

    tape: Tape
    draws: Draws
    continuation: Continuation
    error: TraceError | None
    runs: dict[int, Any]
    other_draws: dict[int, Draws]


def take_over(trace: Trace, version: Trace) -> State:
    """Makes a trace what a version of it is. Nodes stay, and have the new values; what they were is returned."""
    state = State(trace.tape.version(), trace.draws, trace.continuation, trace.error, trace.runs, trace.other_draws)
    _become(trace, version.tape, version)
    return state


def restore(trace: Trace, state: State) -> None:
    """Takes an update in place back."""
    _become(trace, state.tape, state)


def _become(trace: Trace, tape: Tape, other: Trace | State) -> None:
    trace.tape.take_over(tape)
    trace.draws, trace.continuation, trace.error = other.draws, other.continuation, None
    trace.runs, trace.other_draws = other.runs, other.other_draws
    trace.users.clear()
    trace.decided.clear()
    trace.adjoints = None
    trace.forget_terms()
    if other.error is not None:
        trace.error = TraceError(other.error.exception, None)
        trace.error = TraceError(other.error.exception, origin(trace))


def set_error(trace: Trace, error: UlamError | None) -> None:
    """Of a version whose function has run again: how that ended."""
    trace.tape.set_failed(error is not None)
    trace.error = None
    if error is not None:
        trace.error = TraceError(error, None)
        trace.error = TraceError(error, origin(trace))


def draws_of(trace: Trace) -> Mapping[int, Draws]:
    """What was drawn, by segment."""
    return {number: run.draws for number, run in trace.runs.items()} | trace.other_draws


def drop_segments(trace: Trace) -> None:
    """Lets the records and draws go that nothing refers to any more."""
    tape = trace.tape
    used = tape.changes.segments
    drawn = {taken.segment for found in tape.changes.values() for taken in found.draws.values()}
    tape.drop_runs(used)
    tape.segments = {number: recorder for number, recorder in tape.segments.items() if number in used}
    trace.runs = {number: run for number, run in trace.runs.items() if number in used}
    trace.other_draws = {number: draws for number, draws in trace.other_draws.items() if number in drawn}


def whole_tape(trace: Trace, tape: Tape) -> Tape:
    """A tape of the same version where large containers are whole: when it is read, its runs run once more."""
    made = tape.version()
    made.changes, made.arguments, made.copied = tape.changes, tape.arguments, None
    made.segments = _Whole(trace)
    return made


class _Whole(dict[int, Recorder]):
    """Runs with all containers kept, made when they are asked for."""

    def __init__(self, trace: Trace) -> None:
        super().__init__()
        self._trace = trace

    def __bool__(self) -> bool:
        return True

    def __missing__(self, number: int) -> Recorder:
        found = self[number] = self._trace.runs[number].whole(self._trace.context)
        return found


# ---------------------------------------------------------------- runs that can be run again


EVERYTHING = 1 << 62
"""A limit that is none."""


@dataclass(eq=False)
class RecordedRun:
    """What one run has recorded, and how it goes once more. `entry`: the traced function; empty: the tracked one."""

    recorder: Recorder
    values: Sequence[Any]
    types: Sequence[ValueType]
    draws: Draws
    continuation: Continuation
    error: UlamError | None
    entry: str
    again: Callable[..., RecordedRun]
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
    ) -> RecordedRun:  # fmt: skip
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
