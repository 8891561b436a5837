"""Profiles for other programs: a Chrome trace of single passes, and speedscope's JSON of the trees.

Formats: "Trace Event Format" (Google), whose complete events chrome://tracing and Perfetto read; speedscope's
`file-format-spec.ts`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ulam.runtime.c_library import library
from ulam.runtime.errors import ArgumentError
from ulam.runtime.native import ProfileEvent
from ulam.runtime.profiling.records import PHASES, ProfileNode, Region
from ulam.runtime.versions import ulam_version

if TYPE_CHECKING:
    from ulam.runtime.profiling.profiler import Profiler

SPEEDSCOPE_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def chrome_trace(profiler: Profiler) -> dict[str, Any]:
    """The last passes, one event for each sweep of each: name, `ph` X, `ts` and `dur` in microseconds, `pid`, `tid`.

    The category is `forward` or `reverse`, `args` has phase and place. Time begins with the first event. Raises
    ArgumentError if the model keeps no passes.
    """
    if not profiler.keeps_events:
        raise ArgumentError("a trace needs single passes: make the model with profile_events, the number to keep")
    events = profiler.events()
    begin = min((event.start for event in events), default=0)
    nanoseconds = 1e9 * library().ulam_seconds_per_tick()
    process = os.getpid()
    names = [metadata_event("process_name", process, 0, "ulam")]
    for thread in sorted({event.thread for event in events}):
        names.append(metadata_event("thread_name", process, thread, f"thread {thread}"))
    passes = [_event(profiler, event, begin, nanoseconds, process) for event in events]
    passes.sort(key=lambda event: (event["tid"], event["ts"], -event["dur"]))  # parents before what they hold
    return {"traceEvents": [*names, *passes], "displayTimeUnit": "ns"}


def metadata_event(kind: str, process: int, thread: int, name: str) -> dict[str, Any]:
    """Names a process or a thread."""
    return {"name": kind, "ph": "M", "pid": process, "tid": thread, "args": {"name": name}}


def _event(profiler: Profiler, event: ProfileEvent, begin: int, nanoseconds: float, process: int) -> dict[str, Any]:
    # Whole nanoseconds: rounding keeps the order of edges, so that what was nested stays nested.
    start = round(nanoseconds * (event.start - begin))
    end = round(nanoseconds * (event.start - begin + event.ticks))
    region = profiler.regions[event.region]
    return {
        "name": region.name,
        "cat": "reverse" if event.reverse else "forward",
        "ph": "X",
        "ts": start / 1e3,
        "dur": (end - start) / 1e3,
        "pid": process,
        "tid": event.thread,
        "args": {"phase": PHASES[event.phase], "place": region.place},
    }


def speedscope(profiler: Profiler) -> dict[str, Any]:
    """The trees: for each phase and thread a profile of stacks, each with the time it took itself, in seconds."""
    frames: list[dict[str, Any]] = []
    numbers: dict[Region | str, int] = {}

    def number(node: ProfileNode) -> int:
        key = node.region or node.phase
        if key not in numbers:
            numbers[key] = len(frames)
            region = node.region
            place = {} if region is None else {"file": region.file, "line": region.line, "col": region.column}
            frames.append({"name": node.name, **place})
        return numbers[key]

    profiles: list[dict[str, Any]] = []
    for root in profiler.evaluations():
        if not root.children:
            continue
        stacks = [([number(node) for node in stack], max(0.0, stack[-1].self_time)) for stack in _stacks(root)]
        weights = [weight for _, weight in stacks]
        profiles.append(
            {
                "type": "sampled",
                "name": f"{root.phase}, thread {root.thread_id}",
                "unit": "seconds",
                "startValue": 0,
                "endValue": sum(weights),
                "samples": [stack for stack, _ in stacks],
                "weights": weights,
            }
        )
    return {
        "$schema": SPEEDSCOPE_SCHEMA,
        "shared": {"frames": frames},
        "profiles": profiles,
        "name": "profile",
        "activeProfileIndex": max(range(len(profiles)), key=lambda n: profiles[n]["endValue"], default=0),
        "exporter": f"ulam@{ulam_version()}",
    }


def _stacks(node: ProfileNode, above: tuple[ProfileNode, ...] = ()) -> Iterator[tuple[ProfileNode, ...]]:
    """Each node of a tree, with those it is nested in before it."""
    stack = (*above, node)
    yield stack
    for child in node.children:
        yield from _stacks(child, stack)
