"""`StanModel(tiered=True)`: evaluations begin with code that LLVM has hardly optimised, until the other is there.

Only at levels 0 to 2, where both have the same bits, and for units that LLVM is long at work on. What makes many
evaluations (`sample`, `optimize`, ...) never begins so. A thread compiles meanwhile; what follows of that:

* A fork waits for it: locks of LLVM would stay taken in the child.
* It ends with the main thread, between two steps of LLVM.
* What goes wrong in it is told by the next call that needs the optimised code, which compiles again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, MutableMapping
from typing import TYPE_CHECKING, Protocol

from ulam.library.collector import without_collector
from ulam.passes.units import density_unit
from ulam.runtime.errors import ArgumentError
from ulam.runtime.interrupts import checkpoint
from ulam.runtime.native import density_call

if TYPE_CHECKING:
    from ulam.runtime._calls import DensityCall
    from ulam.runtime.program import BoundProgram
    from ulam.runtime.unit_objects import UnitObject

HIGHEST_LEVEL = 2
"""Above, LLVM may contract and re-associate, and what it does depends on how hard it tries."""
LISTEN_SECONDS = 0.05


class _Ended(Exception):
    """The main thread has ended: nobody will want what is compiled."""


class TieredCompiler(Protocol):
    """What is asked of compilers: a first version of a unit, if that is sooner there, and then the unit."""

    def quickly(self, name: str) -> UnitObject | None: ...
    def finish(self, name: str, between: Callable[[], None]) -> None: ...


def require_same_bits(opt_level: int) -> None:
    """Raises ArgumentError for levels at which there is one version only."""
    if opt_level > HIGHEST_LEVEL:
        raise ArgumentError(
            f"tiered=True works at levels 0 to {HIGHEST_LEVEL}, where both versions give the same bits, and the level "
            f"is {opt_level}"
        )


class Tiers:
    """First versions of the densities of one model."""

    def __init__(self, compiler: TieredCompiler, program: BoundProgram) -> None:
        self._compiler = compiler
        self._program = program
        self._lock = threading.Lock()
        self._finished: list[threading.Event] = []
        self._over = False

    def begin(
        self, known: MutableMapping[bool, DensityCall], order: int, propto: bool, n: int, *, keeps: bool
    ) -> bool:
        """Puts the first version of a density into `known`, and the other when it is there; False if there is no
        first one."""
        name = density_unit(order, propto).name
        with self._lock:
            if propto in known:
                return True
            if self._over or self._program.is_loaded(name):
                return False
            first = self._program.first_version(name, self._compiler.quickly)
            if first is None or first.failure is not None:
                return False
            known[propto] = density_call(first, n, bool(order), keeps=keeps)

            finished = threading.Event()

            def finish() -> None:
                try:
                    with without_collector():
                        self._compiler.finish(name, _while_wanted)
                    unit = self._program.load(name)
                    known[propto] = density_call(unit, n, bool(order), keeps=keeps)
                except Exception:  # whoever needs the unit compiles it and is told
                    pass
                finally:
                    _running.pop(finished, None)
                    finished.set()

            thread = _running[finished] = threading.Thread(target=finish, name=f"ulam {name}")
            try:
                thread.start()
            except RuntimeError:  # there can be no more threads
                del _running[finished]
                raise
            self._finished.append(finished)
        return True

    def end(self) -> None:
        """Waits for what is being compiled; from now on there are no first versions. A call that is stopped ends."""
        self._over = True
        for finished in self._finished:
            while not finished.wait(LISTEN_SECONDS):
                checkpoint()


# Whether a thread has finished is asked of an event: Python takes a thread for ended whose `join` was interrupted.
_running: dict[threading.Event, threading.Thread] = {}


def _while_wanted() -> None:
    if not threading.main_thread().is_alive():
        raise _Ended


def _before_fork() -> None:
    for finished, thread in list(_running.items()):
        if thread is not threading.current_thread():
            finished.wait()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork)
