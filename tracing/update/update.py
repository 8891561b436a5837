"""Changing values of a trace, and working out anew only what depends on them.

A version of the trace is made that shares its records (see `overlay`). Changed values are followed in the order of the
tape: an op whose operands have changed is evaluated by its compiled function, and where the new value is the old one,
bit for bit, nothing more is done. Calls are entered, not run again. Where a condition changes, what follows in that
call is void: the call runs once more, with its present arguments, and the draws that it had.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import ArgumentError
from ulam.tracing.nodes import ItemNode, JumpNode, NestedCallNode, Node
from ulam.tracing.tape.frames import Frame
from ulam.tracing.tape.layout import spot_of
from ulam.tracing.tape.overlay import Key
from ulam.tracing.tape.recorder import Source
from ulam.tracing.update.propagation import Propagation
from ulam.tracing.update.values import settings
from ulam.tracing.versions import State, new_version, require_updatable, restore, take_over

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace


KEPT = 100
"""Updates in place that can be taken back; of earlier ones nothing is kept."""


class Update:
    """What `Trace.update` has done. `trace` is the new version: a trace like any other.

    `flips`: the jumps whose condition has changed; `rerun_frames`: the calls that ran again, so far as they are still a
    part of the trace; `unused`: nodes that were to be set, but that do not come to pass any more.
    """

    def __init__(self, trace: Trace, before: Trace, work: Propagation, delta: float | None, undo: State | None) -> None:
        self.trace = trace
        self._work = work
        self._undo = undo
        self._before = before
        self.delta = delta

    @property
    def node(self) -> ItemNode:
        """The call that was tracked, in the new version."""
        return self.trace.root

    @cached_property
    def recomputed(self) -> frozenset[Node]:
        """The ops that were evaluated, calls that ran again apart."""
        return frozenset(self._nodes(self._work.recomputed))

    @cached_property
    def flips(self) -> list[JumpNode]:
        return [node for node in self._nodes(self._work.flips) if isinstance(node, JumpNode)]

    @cached_property
    def rerun_frames(self) -> list[NestedCallNode]:
        found = dict.fromkeys(self._nodes(self._work.rerun))
        return [node for node in found if isinstance(node, NestedCallNode)]

    @property
    def unused(self) -> list[Node]:
        return self._work.unused

    @property
    def reused(self) -> Reused:
        """All other nodes of the trace: neither evaluated nor in a call that ran again."""
        return Reused(self)

    def undo(self) -> Trace:
        """The trace as it was before. An update in place is taken back; later ones must be taken back first."""
        if self._undo is None:
            return self._before
        made = self.trace.updates
        if self not in made:
            raise ArgumentError(f"the update was taken back already, or more than {KEPT} others followed it")
        if made[-1] is not self:
            raise ArgumentError("another update was made in place since: that must be taken back before")
        made.pop()
        restore(self.trace, self._undo)
        return self.trace

    def _nodes(self, places: Sequence[tuple[Frame, Key]]) -> Iterator[Node]:
        live: dict[int, Frame | None] = {}
        for frame, key in places:
            found = self._live(frame, live)
            if found is not None:
                spot = spot_of(key)
                yield self.trace.node(found, frame.position(spot.step, spot.in_header, spot.offset))

    def _live(self, frame: Frame, known: dict[int, Frame | None]) -> Frame | None:
        """The frame of the new version where `frame` is, or was until a caller of it ran again."""
        chain: list[Frame] = []
        while frame.parent is not None and frame.place not in known:
            chain.append(frame)
            frame = frame.parent
        found = known.get(frame.place, self.trace.root.frame)
        for inner in reversed(chain):
            if found is not None:
                try:
                    found = found.child(found.spot(inner.call))
                except IndexError:
                    found = None
            known[inner.place] = found
        return found


class Reused(Collection[Node]):
    """See `Update.reused`; found when asked for."""

    def __init__(self, update: Update) -> None:
        self._update = update

    def __contains__(self, node: object) -> bool:
        if not isinstance(node, Node) or node.trace is not self._update.trace or node in self._update.recomputed:
            return False
        again = set(self._update.rerun_frames)
        current = node.parent
        while current is not None:
            if current in again:
                return False
            current = current.parent
        return True

    def __iter__(self) -> Iterator[Node]:
        again, evaluated = set(self._update.rerun_frames), self._update.recomputed
        stack: list[Iterator[Node]] = [iter((self._update.trace.root,))]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            if node not in evaluated and not node.is_root:
                yield node
            if node not in again:
                stack.append(iter(node.children))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def update(
    trace: Trace, changes: Mapping[Node, Any] | None, rng: Source | str, in_place: bool, arguments: Mapping[str, Any]
) -> Update:
    """See `Trace.update`."""
    if isinstance(rng, str) and rng != "replay":
        raise ArgumentError(f"rng is 'replay' or a source of random numbers, not {rng!r}")
    require_updatable(trace)
    given, inside = settings(trace, changes or {}, arguments)
    version = new_version(trace)
    before = trace.root.value
    work = Propagation(trace, version, None if isinstance(rng, str) else rng)
    work.run(given, inside)
    delta = _difference(before, version.root.value)
    if not in_place:
        return Update(version, trace, work, delta, None)
    state = take_over(trace, version)
    done = Update(trace, trace, work, delta, state)
    trace.updates.append(done)
    del trace.updates[:-KEPT]
    return done


def _difference(old: Any, new: Any) -> float | None:
    """Of two results; None unless both are real numbers."""
    if not isinstance(old, float) or not isinstance(new, float):
        return None
    return 0.0 if old == new else new - old if math.isfinite(old) or math.isfinite(new) else math.nan
