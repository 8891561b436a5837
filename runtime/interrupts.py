"""Interrupts and time limits of public calls.

A public call of ulam is a *scope* of its thread (`stoppable`): while it lasts the C runtime's handler stands before the
host's for SIGINT, and what asks the call to end, SIGINT or a time limit, ends the native code that runs, or the next
one (c/interrupts.h). In the main thread Python's handler then raises KeyboardInterrupt; in others, and where a handler
of the host's own raises nothing, the call ends with `Interrupted`. Single evaluations of code that is compiled are one
run, and need no scope.

Compiling is Python and LLVM, which cannot be left anywhere: it is `held` together, and ends at a `checkpoint`.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

from ulam.library.records import record
from ulam.runtime.c_library import STOP_INTERRUPT, library
from ulam.runtime.errors import ArgumentError, Interrupted, TimeLimit

_T = TypeVar("_T")
_P = ParamSpec("_P")


@record(frozen=True)
class Limit:
    """A time limit that has begun: `seconds` until `deadline`, of `time.monotonic`."""

    seconds: float
    deadline: float

    @staticmethod
    def of(seconds: float) -> Limit:
        """One that begins now. Raises ArgumentError for what is no positive number."""
        if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not seconds > 0:
            raise ArgumentError(f"time_limit must be a positive number of seconds, found {seconds!r}")
        return Limit(float(seconds), time.monotonic() + seconds)

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.deadline - time.monotonic())


class _Limits(threading.local):
    """The limits of this thread's scopes, the outermost first."""

    def __init__(self) -> None:
        self.stack: list[Limit] = []


_limits = _Limits()


def current_limit() -> Limit | None:
    """The limit of this thread that ends first, for threads that work for it."""
    return min(_limits.stack, key=lambda limit: limit.deadline, default=None)


def stoppable(work: Callable[[], _T], limit: float | Limit | None = None, *, kept: bool = False) -> _T:
    """Runs `work` as a public call that SIGINT and the limit, in seconds, can end.

    SIGINT after the last step of `work` that it could end still ends the call, unless what it returns is to be `kept`.
    """
    begun = limit if limit is None or isinstance(limit, Limit) else Limit.of(limit)
    deadline = -1 if begun is None or math.isinf(begun.deadline) else max(0, int(begun.deadline * 1e9))
    native, stack = library(), _limits.stack
    depth = native.ulam_scope_depth()
    if depth == 0:
        stack.clear()  # an interrupt may have come between the two last lines
    size = len(stack)
    # Of native functions only the end is a place where Python interrupts: what was entered is surely left.
    try:
        if begun is not None:
            stack.append(begun)
        native.ulam_scope_enter(deadline)
        result = work()
        if depth == 0 and not kept and native.ulam_stop_reasons() & STOP_INTERRUPT:
            raise_stopped()
        return result
    except RuntimeError as error:
        if is_interrupt(error):
            raise KeyboardInterrupt from None
        raise
    finally:
        native.ulam_scope_leave(depth)
        del stack[size:]


def is_interrupt(error: Exception) -> bool:
    """Whether it is a KeyboardInterrupt in disguise: Python before 3.12 wraps those that come while a class is made."""
    return isinstance(error, RuntimeError) and isinstance(error.__cause__, KeyboardInterrupt)


def scoped(method: Callable[_P, _T]) -> Callable[_P, _T]:
    """The method as a public call from its first line on, imports and compiling included."""

    @wraps(method)
    def call(*args: _P.args, **options: _P.kwargs) -> _T:
        return stoppable(lambda: method(*args, **options))

    return call


def limited(time_limit: float, call: Callable[_P, _T], *args: _P.args, **options: _P.kwargs) -> _T:
    """The call, within a time limit."""
    return stoppable(lambda: call(*args, **options), time_limit)


def as_command(work: Callable[[], _T], time_limit: float | None = None) -> _T:
    """Runs what a command of the shell does: a second SIGINT ends the process at once."""
    native = library()
    try:
        native.ulam_end_on_second(1)
        return stoppable(work, time_limit, kept=True)
    finally:
        native.ulam_end_on_second(0)


def forget_stop() -> None:
    """The call goes on to its end: what asked it to stop has been heard."""
    library().ulam_stop_take()


def raise_stopped() -> NoReturn:
    """Raises why a run of this thread was stopped. Python's own handler has run before, and may have raised."""
    reasons = library().ulam_stop_take()
    if reasons and not reasons & STOP_INTERRUPT:
        raise _time_limit()
    raise_interrupted()


def raise_interrupted() -> NoReturn:
    """KeyboardInterrupt in the main thread if that is how Python is interrupted, else `Interrupted`."""
    if (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    ):
        raise KeyboardInterrupt  # its handler has raised it where nobody could hear, in a callback
    raise Interrupted


def _time_limit() -> TimeLimit:
    now = time.monotonic()
    expired = next((limit for limit in _limits.stack if limit.deadline <= now), None) or current_limit()
    return TimeLimit(expired.seconds if expired is not None else math.nan)


def checkpoint() -> None:
    """Ends the call here if it was asked to end: between steps that are not to be left in the middle.

    Outside of calls Python's own handlers interrupt, and what is noted was meant for a call that is over.
    """
    native = library()
    if native.ulam_deliver() and native.ulam_scope_depth() > 0:
        raise_stopped()


def listen() -> None:
    """Ends the call here if SIGINT, not a time limit, asked for it: for a thread that waits for others."""
    if library().ulam_deliver() & STOP_INTERRUPT:
        raise_stopped()


def held(work: Callable[[], _T]) -> _T:
    """Runs `work`, in which the main thread is interrupted at checkpoints only."""
    if threading.current_thread() is not threading.main_thread():
        return work()  # Python interrupts no other
    native, before = library(), 0
    try:
        before = native.ulam_hold(1)
        return work()
    finally:
        native.ulam_hold(before)
