"""Counts what a call does, where time would depend on how busy the machine is."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
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

    before, collects = sys.gettrace(), gc.isenabled()
    gc.collect()
    gc.disable()  # what others have left, some of it with finalizers in Python
    sys.settrace(in_frame)
    try:
        run()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return count
