"""Threads and processes that work for one call, and end when it does.

A `Crew` that is pickled, as a part of a job, works for the same call in the process where it arrives. The first one
there connects to a socket that the call has opened and that nobody ever answers: what is heard is its end, by `stop`,
by `close`, or because the process of the call has ended, whatever it ended by. That takes no thread and no file there,
and a thread in each process that works. Linux only; elsewhere, and on other machines, they are not told.
"""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from ulam.runtime.c_library import STOP_INTERRUPT, library
from ulam.runtime.errors import Interrupted
from ulam.runtime.interrupts import Limit, stoppable

_T = TypeVar("_T")

_BACKLOG = 4096
"""Processes that may connect, at most; the system may have less."""


class Crew:
    """Threads that work for one call: `stop` ends what all of them do, here and in other processes."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self._lock = threading.Lock()
        self._handles: list[int] = []
        self._line: _Line | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            if self._line is None:
                self._line = _Line.opened()
                if self.stopped.is_set() and self._line is not None:
                    self._line.close()
            line = self._line
        return (Crew, ()) if line is None else (_member, (line.name, line.machine))

    def run(self, work: Callable[[], _T], limit: float | Limit | None = None) -> _T:
        """Runs `work` in the calling thread as a member."""
        return stoppable(lambda: self._run(work), limit, kept=True)

    def _run(self, work: Callable[[], _T]) -> _T:
        handle = library().ulam_thread_handle()
        with self._lock:
            self._handles.append(handle)
        try:
            if self.stopped.is_set():
                raise Interrupted
            return work()
        finally:
            with self._lock:
                self._handles.remove(handle)

    def stop(self) -> None:
        """Each member's call ends with `Interrupted`, now or at its beginning."""
        self.stopped.set()
        with self._lock:
            for handle in self._handles:
                library().ulam_thread_stop(handle, STOP_INTERRUPT)
        self.close()

    def close(self) -> None:
        """The call is over: members in other processes that still work end."""
        with self._lock:
            if self._line is not None:
                self._line.close()


# ---------------------------------------------------------------- the process of the call


class _Line:
    """A socket with a name and without a file. Children of fork, which would keep it open, close it."""

    def __init__(self, listener: socket.socket, name: str, machine: str) -> None:
        self.listener, self.name, self.machine = listener, name, machine
        _lines.add(self)

    @staticmethod
    def opened() -> _Line | None:
        """One that listens; None where there is no such thing."""
        machine = _machine()
        if not machine:
            return None
        name = f"\0ulam-{secrets.token_hex(16)}"
        listener = socket.socket(socket.AF_UNIX)
        try:
            listener.bind(name)
            listener.listen(_BACKLOG)
        except OSError:
            listener.close()
            return None
        return _Line(listener, name, machine)

    def close(self) -> None:
        """Who has connected hears it."""
        self.listener.close()


_lines: weakref.WeakSet[_Line] = weakref.WeakSet()


def _close_all() -> None:
    for line in list(_lines):
        line.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


def _machine() -> str:
    """What processes have in common that hear each other by names of sockets; empty where there are none."""
    if sys.platform != "linux":
        return ""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip() + os.readlink("/proc/self/ns/net")
    except OSError:
        return ""


# ---------------------------------------------------------------- processes that work for it

_members: dict[str, Crew] = {}
_members_lock = threading.Lock()


def _member(name: str, machine: str) -> Crew:
    """The crew of a call, in a process that works for it. If the call is over it is stopped."""
    with _members_lock:
        crew = _members.get(name)
        if crew is not None:
            return crew
        crew = Crew()
        if machine != _machine():
            return crew
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)  # where too many have connected this one is not told
        try:
            connection.connect(name)
        except ConnectionRefusedError:
            connection.close()
            crew.stop()
            return crew
        except OSError:
            connection.close()
            return crew
        connection.setblocking(True)
        _members[name] = crew
    threading.Thread(target=_wait_for_end, args=(connection, name, crew), daemon=True).start()
    return crew


def _wait_for_end(connection: socket.socket, name: str, crew: Crew) -> None:
    with connection, suppress(ConnectionError):  # the line has ended with this one in it
        connection.recv(1)
    with _members_lock:
        _members.pop(name, None)
    crew.stop()
