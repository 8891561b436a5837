"""Counts what a call does, where time would depend on how busy the machine is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


def lines_executed(run: Callable[[], Any]) -> int:
    """How many lines of Python `run()` executes, each time that it executes them (and each call counts as one).

    The same number in every run. Work that C code does at one line counts as one, whatever its length.
    """
    count = 0

    def in_frame(frame: FrameType, event: str, argument: object) -> Callable[..., Any]:
        nonlocal count
        count += 1
        return in_frame

    with _observed(sys.settrace, sys.gettrace(), in_frame):
        run()
    return count


def calls_made(run: Callable[[], Any]) -> int:
    """How many functions of Python `run()` calls: a coarser measure, in a third of the time."""
    count = 0

    def at_event(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    with _observed(sys.setprofile, sys.getprofile(), at_event):
        run()
    return count


@contextmanager
def _observed(use: Callable[[Any], None], before: Any, observer: Callable[..., Any]) -> Iterator[None]:
    collects = gc.isenabled()
    gc.collect()
    gc.disable()  # what others have left, some of it with finalizers in Python
    use(observer)
    try:
        yield
    finally:
        use(before)
        if collects:
            gc.enable()
