"""Python's settings while the compiler runs: no cyclic collector, and room for deep recursion."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

RECURSION_LIMIT = 20_000
"""Python frames that every stage has room for: the deepest programs that the parser lets pass (200 levels of nesting,
1000 branches in a row) need about half of it."""
MANY_OBJECTS = 50_000
"""Objects that a stage leaves from which on they are made old ones: a collection of young ones, which looks at all of
them, takes hundredths of a second, and most are in use, as the program is."""
MOST_SETTLED = 500_000
"""Objects that are made old ones before their garbage is collected: some 100 MB."""


def settle() -> None:
    """Makes all objects that there are old ones, which only full collections look at: not the next one of young ones,
    after a compile. Objects that somebody has frozen stay that; so do all, then."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


_settled = 0


def _settle_many() -> None:
    """Makes what a large program's stage has left old objects, and when there are very many, collects their garbage."""
    global _settled
    if (young := gc.get_count()[0]) < MANY_OBJECTS:
        return
    _settled += young
    if _settled > MOST_SETTLED:
        gc.collect()
        _settled = 0
    else:
        settle()


_settings_lock = threading.Lock()
_settings: list[tuple[bool, int]] = []  # one for each thread that compiles: what to go back to


@contextmanager
def compiling() -> Iterator[None]:
    """Python's settings while a compiler stage runs; the last of several threads puts back what was before.

    The cyclic collector would cost a compiler's many small objects up to half of its time. Stages walk the program
    recursively, deeper than Python's limit.
    """
    with _settings_lock:
        _settings.append((gc.isenabled(), sys.getrecursionlimit()))
        gc.disable()
        sys.setrecursionlimit(max(RECURSION_LIMIT, sys.getrecursionlimit()))
    try:
        yield
    finally:
        with _settings_lock:
            collect, limit = _settings.pop()
            if not _settings:
                if collect:
                    _settle_many()
                    gc.enable()
                sys.setrecursionlimit(limit)
