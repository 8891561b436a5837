"""What `profile("name") { ... }` statements recorded: rows by name, and the tree of regions.

The runtime counts, per context and thread (c/profile.h); here that is put together, and ticks become seconds.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, TextIO

from ulam.runtime.c_library import library
from ulam.runtime.native import Context, ProfileEvent
from ulam.runtime.native import ProfileRecord as Recorded
from ulam.runtime.profiling.records import PHASES, Overhead, ProfileNode, ProfileRow, Region, walk

_DEFAULT_PHASE = PHASES.index("evaluation")
_phase: ContextVar[int | None] = ContextVar("phase", default=None)


@contextmanager
def in_phase(name: str) -> Iterator[None]:
    """What evaluations of the calling thread are recorded as."""
    token = _phase.set(PHASES.index(name))
    try:
        yield
    finally:
        _phase.reset(token)


class Profiler:
    """The profiles of one model."""

    def __init__(self, regions: Sequence[Region], events: int = 0) -> None:
        self.regions = list(regions)
        self._events = events
        self._contexts: list[Context] = []
        self._lock = threading.Lock()
        self._phases_elsewhere: tuple[int, ...] = ()
        self.created = time.time_ns()
        self.sources: dict[str, str] = {}
        """Texts of programs by the names of their files, as far as they are known."""
        self.written: dict[Path, int] = {}
        """CSV files of this profiler, with the time they were written, in nanoseconds."""

    @property
    def keeps_events(self) -> bool:
        """Whether single passes are kept: the model's `profile_events`."""
        return self._events > 0

    def attach(self, context: Context) -> None:
        """Lets a context record."""
        context.attach_profile(self._events)
        with self._lock:
            self._contexts.append(context)

    def enter(self, context: Context, phase: str | None = None) -> None:
        """Before an evaluation: notes the phase."""
        if phase is not None:
            context.set_phase(PHASES.index(phase))
            return
        of_thread, elsewhere = _phase.get(), self._phases_elsewhere
        if of_thread is None:
            of_thread = elsewhere[-1] if elsewhere else _DEFAULT_PHASE
        context.set_phase(of_thread)

    @contextmanager
    def in_phase(self, name: str) -> Iterator[None]:
        """What evaluations of the model are recorded as, in the calling thread and in those that do not say."""
        number = PHASES.index(name)
        with self._lock:
            self._phases_elsewhere = (*self._phases_elsewhere, number)
        try:
            with in_phase(name):
                yield
        finally:
            with self._lock:
                left = list(self._phases_elsewhere)
                left.remove(number)  # several threads may be here, and end in any order
                self._phases_elsewhere = tuple(left)

    def reset(self) -> None:
        """Forgets what was recorded. No evaluation may be running."""
        for context in self._known():
            context.reset_profile()

    def _known(self) -> list[Context]:
        with self._lock:
            return list(self._contexts)

    # ------------------------------------------------------------ results

    def tree(self, *, overhead: Overhead | None = None) -> list[ProfileNode]:
        """The outermost regions, by thread and phase; what contexts of one thread recorded is added up."""
        return [node for root in self.evaluations(overhead=overhead) for node in root.children]

    def evaluations(self, *, overhead: Overhead | None = None) -> list[ProfileNode]:
        """For each thread and phase all its evaluations: how many (`passes`), and the time between their begin and end.

        The outermost regions are their children; `self_time` is what no region covers. With an `overhead`, times are
        less what the timers took.
        """
        roots: list[ProfileNode] = []
        seconds = library().ulam_seconds_per_tick()
        for context in self._known():
            made: list[ProfileNode] = []
            for row in context.profile_rows():
                siblings = roots if row.parent < 0 else made[row.parent].children
                region = self.regions[row.region] if row.region >= 0 else None
                node = _node(siblings, region, row.thread, PHASES[row.phase])
                made.append(node)
                node.add(_measured(row, seconds))
        for root in roots:
            _include_nested(root)
            if overhead is not None:
                _correct(root, overhead)
        return roots

    def rows(self, *, by_phase: bool = False, overhead: Overhead | None = None) -> list[ProfileRow]:
        """One row for each name and thread, and with `by_phase` each phase, in the order of the program."""
        found: dict[tuple[str, int, str], ProfileRow] = {}
        for node in walk(self.tree(overhead=overhead)):
            phase = node.phase if by_phase else ""
            row = found.setdefault((node.name, node.thread_id, phase), ProfileRow(node.name, node.thread_id, phase))
            row.add(node)
        order = {region.name: n for n, region in reversed(list(enumerate(self.regions)))}
        return sorted(found.values(), key=lambda row: (order[row.name], row.thread_id, row.phase))

    def events(self) -> list[ProfileEvent]:
        """Single passes, as far as they were kept."""
        return [event for context in self._known() for event in context.profile_events()]

    def overhead(self) -> Overhead:
        """What entering and leaving a region takes here and now, measured."""
        seconds = library().ulam_seconds_per_tick()
        inside, outside = Context().profile_overhead()
        return Overhead(seconds * inside, seconds * outside)

    def line_text(self, region: Region) -> str:
        """The line of the program on which a region begins; empty if its text is not known."""
        lines = self.sources.get(region.file, "").splitlines()
        return lines[region.line - 1].strip() if 0 < region.line <= len(lines) else ""

    # ------------------------------------------------------------ reports

    def print(self, file: TextIO | None = None, *, by_phase: bool = False, corrected: bool = False) -> None:
        """The table and the tree, drawn by rich on a terminal. `corrected`: with times less the cost of the timers."""
        from ulam.runtime.profiling.report import print_profile

        print_profile(self, file, by_phase=by_phase, overhead=self.overhead() if corrected else None)

    def to_dict(self) -> dict[str, Any]:
        """Rows by phase, and the trees; times in seconds. `to_json` has the same."""
        from ulam.runtime.profiling.report import profile_record

        return profile_record(self)

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as JSON; written to `path` if that is given."""
        from ulam.runtime.results import json_text

        return json_text(self.to_dict(), path)

    def to_csv(self, path: str | os.PathLike[str] = "profile.csv", *, columns: str = "design") -> Path:
        """Writes a row for each name and thread, and returns the path written.

        That is `path` with `_2`, `_3`, ... added to its stem if the file has appeared since the model was made and is
        not this profiler's own: it then is that of another chain. `columns`: `"design"`, or `"cmdstan"` for the names
        and the order of CmdStan. Read it with `ulam.runtime.profiling.profile_csv.read_profile_csv`.
        """
        from ulam.runtime.profiling.profile_csv import write_profile_csv

        return write_profile_csv(self, path, columns=columns)

    def to_chrome_trace(self, path: str | os.PathLike[str] | None = None) -> str:
        """Single passes as a Chrome trace (chrome://tracing, Perfetto). The model needs `profile_events`."""
        from ulam.runtime.profiling.views import chrome_trace
        from ulam.runtime.results import json_text

        return json_text(chrome_trace(self), path)

    def to_speedscope(self, path: str | os.PathLike[str] | None = None) -> str:
        """The trees as JSON for speedscope.app, one profile for each phase and thread."""
        from ulam.runtime.profiling.views import speedscope
        from ulam.runtime.results import json_text

        return json_text(speedscope(self), path)

    def to_flame_graph(self, path: str | os.PathLike[str] | None = None, *, title: str = "Profile") -> str:
        """The trees, added up over threads, as one SVG; as a page if `path` ends in `.html`."""
        from ulam.runtime.profiling.flame_graph import flame_graph

        return flame_graph(self, path, title=title)

    # ------------------------------------------------------------ errors

    def explained(self, message: str) -> str:
        """The runtime's message about a name that is active already, with both places."""
        match = re.fullmatch(r"profile@(\d+)@(\d+)", message)
        if match is None:
            return message
        outer, inner = (self.regions[int(number)] for number in match.groups())
        return (
            f"profile '{inner.name}' is active already: it was entered in line {outer.line}, and again in line "
            f"{inner.line}; statements of one name must not be nested"
        )


def _measured(row: Recorded, seconds_per_tick: float) -> ProfileRow:
    return ProfileRow(
        name="",
        thread_id=row.thread,
        phase=PHASES[row.phase],
        forward_time=seconds_per_tick * row.forward_ticks,
        reverse_time=seconds_per_tick * row.reverse_ticks,
        wall_time=seconds_per_tick * row.wall_ticks,
        outlier_passes=row.outlier_passes,
        outlier_time=seconds_per_tick * row.outlier_ticks,
        kept_values=row.kept,
        other_values=row.others,
        solver_steps=row.steps,
        failed_steps=row.failed_steps,
        passes=row.passes,
        gradient_passes=row.gradient_passes,
    )


def _node(siblings: list[ProfileNode], region: Region | None, thread: int, phase: str) -> ProfileNode:
    """The one for a region, thread and phase; a new one if there is none."""
    for node in siblings:
        if (node.region, node.thread_id, node.phase) == (region, thread, phase):
            return node
    siblings.append(ProfileNode(region.name if region is not None else phase, thread, phase, region=region))
    return siblings[-1]


def _include_nested(node: ProfileNode) -> None:
    """Adds the values of nested regions, which were counted for the innermost region only: times include them, too."""
    for child in node.children:
        _include_nested(child)
        node.kept_values += child.kept_values
        node.other_values += child.other_values
        node.solver_steps += child.solver_steps
        node.failed_steps += child.failed_steps


def _correct(node: ProfileNode, overhead: Overhead) -> tuple[float, float]:
    """Takes the cost of timers off the times of a node and of all below it; returns what they cost in each sweep."""
    below = [_correct(child, overhead) for child in node.children]
    forward, reverse = (sum(costs) for costs in zip(*below, strict=True)) if below else (0.0, 0.0)
    if node.region is None:  # the time of an evaluation is that of both sweeps
        node.forward_time = max(0.0, node.forward_time - forward - reverse)
        return forward, reverse
    # Statements that no derivative goes through have no reverse half.
    passes = node.passes + node.gradient_passes, node.gradient_passes if node.reverse_time else 0
    node.forward_time = max(0.0, node.forward_time - forward - passes[0] * overhead.inside)
    node.reverse_time = max(0.0, node.reverse_time - reverse - passes[1] * overhead.inside)
    pair = overhead.inside + overhead.outside
    return forward + passes[0] * pair, reverse + passes[1] * pair
