"""What a version of a trace has that the run it was made of has not: values, calls that ran again, draws.

A version shares the records of its base. What differs lies beside them, frame by frame: few entries, by the places of
values in the frame. A call that ran again has records of its own, in a further segment; places of segment n begin at
n * SEGMENT.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ulam.tracing.tape.layout import Spot, spot_of
from ulam.tracing.tape.recorder import Draws

if TYPE_CHECKING:
    from ulam.tracing.tape.frames import Frame

SEGMENT = 1 << 48
"""Places of one segment; records of one run are fewer bytes."""

Key = tuple[int, int]
"""A place in a frame: which run of a block it is (twice the step, one more in the header that follows), and the offset
there: arguments first, then ops, then the jump. Their order is that of the tape. Parameter n is (-1, n)."""


def key_of(spot: Spot) -> Key:
    """The key of a spot."""
    return (2 * spot.step + spot.in_header, spot.offset)


def parameter_key(number: int) -> Key:
    """The key of a parameter, counted from 0."""
    return (-1, number)


@dataclass(frozen=True)
class Taken:
    """Random numbers that were taken: from one to another of a segment's draws."""

    segment: int
    begin: int
    end: int


@dataclass
class FrameChanges:
    """What is different in one frame. `caller`, `call`: the place of the caller's frame, and of the call there."""

    caller: int
    call: Key
    values: dict[Key, Any] = field(default_factory=dict[Key, Any])
    fixed: set[Key] = field(default_factory=set[Key])
    """Of `values`, those that were set, not computed."""
    calls: dict[Key, int] = field(default_factory=dict[Key, int])
    """Calls that ran again, and the places of their frames."""
    draws: dict[Key, Taken] = field(default_factory=dict[Key, Taken])
    """What drew other numbers than in the records."""

    def copy(self) -> FrameChanges:
        return FrameChanges(
            self.caller, self.call, dict(self.values), set(self.fixed), dict(self.calls), dict(self.draws)
        )


class Changes(Mapping[int, FrameChanges]):
    """What is different, by the place of the frame. Shared by versions until one of them writes."""

    def __init__(self, frames: Mapping[int, FrameChanges] | None = None) -> None:
        self._frames = dict(frames or {})
        self._own: set[int] = set()

    def __getitem__(self, place: int) -> FrameChanges:
        return self._frames[place]

    def __iter__(self) -> Iterator[int]:
        return iter(self._frames)

    def __len__(self) -> int:
        return len(self._frames)

    def get(self, place: int, default: Any = None) -> Any:
        return self._frames.get(place, default)

    def of(self, frame: Frame) -> FrameChanges:
        """Those of a frame, to be written to."""
        place = frame.place
        if place not in self._own:
            self._own.add(place)
            found = self._frames.get(place)
            if found is not None:
                self._frames[place] = found.copy()
            else:
                self._add(frame)
        return self._frames[place]

    def _add(self, frame: Frame) -> None:
        """With its callers: what is inside is found by them."""
        while frame.place not in self._frames:
            self._own.add(frame.place)
            if frame.parent is None:
                self._frames[frame.place] = FrameChanges(-1, (-1, -1))
                return
            self._frames[frame.place] = FrameChanges(frame.parent.place, key_of(frame.parent.spot(frame.call)))
            frame = frame.parent

    def within(self, outer: int) -> dict[int, Key]:
        """The changed frames below the frame `outer`, and through which of its calls they are reached."""
        known: dict[int, Key | None] = {}
        for place in self._frames:
            chain: list[int] = []
            while place not in known and place != outer and (found := self._frames.get(place)) is not None:
                chain.append(place)
                place = found.caller
            through = known.get(place)
            for inner in reversed(chain):
                found = self._frames[inner]
                through = known[inner] = found.call if found.caller == outer else through
        return {place: call for place, call in known.items() if call is not None}

    def forget(self, outer: int, after: Key = (-2, 0)) -> None:
        """What is different in a frame, and in what it calls, behind a place."""
        inside = [place for place, call in self.within(outer).items() if call > after]
        for place in inside:
            del self._frames[place]
            self._own.discard(place)
        self._frames.pop(outer, None)
        self._own.discard(outer)

    def add(self, others: Mapping[int, FrameChanges], base: int, caller: int, call: Key) -> None:
        """Those of a call that ran again, by places from `base` on; the first has no caller."""
        needed = set[int]()
        for place, found in others.items():
            while found.fixed and place >= 0 and place not in needed:
                needed.add(place)
                place = others[place].caller
        for place in needed:
            made = others[place].copy()
            made.caller, made.call = (made.caller + base, made.call) if made.caller >= 0 else (caller, call)
            self._frames[place + base] = made
            self._own.add(place + base)

    @property
    def segments(self) -> set[int]:
        """Those that are in use."""
        return {0} | {place // SEGMENT for frame in self._frames.values() for place in frame.calls.values()}


def collected(frame: Frame, taken: Taken, segments: Mapping[int, Draws]) -> Draws:
    """The numbers that a call has drawn, in the order of the program, where parts of it have drawn others."""
    parts: list[Draws] = []
    _collect(frame, taken, segments, parts)
    return Draws.joined(parts)


def _collect(outer: Frame, taken: Taken, segments: Mapping[int, Draws], parts: list[Draws]) -> None:
    changes = outer.tape.changes
    inside: dict[int, set[Key]] = {}  # frames that differ, or that call some that do: where
    for place, found in changes.items():
        if not found.draws:
            continue
        inside.setdefault(place, set()).update(found.draws)
        while found.caller >= 0 and found.call not in inside.setdefault(found.caller, set()):
            inside[found.caller].add(found.call)
            found = changes[found.caller]
    stack: list[tuple[Frame, Taken, Iterator[Key], int]] = []

    def enter(frame: Frame, range_: Taken) -> None:
        stack.append((frame, range_, iter(sorted(inside.get(frame.place, ()))), range_.begin))

    enter(outer, taken)
    while stack:
        frame, range_, keys, at = stack.pop()
        draws = segments[range_.segment]
        key = next(keys, None)
        if key is None:
            parts.append(draws[at : range_.end])
            continue
        spot = spot_of(key)
        recorded, now = frame.recorded_draws(spot), frame.draws_taken(spot)
        parts.append(draws[at : recorded.begin])
        stack.append((frame, range_, keys, recorded.end))
        child = frame.child(spot)
        if child is not None and child.place in inside:
            enter(child, now)
        else:
            parts.append(segments[now.segment][now.begin : now.end])
