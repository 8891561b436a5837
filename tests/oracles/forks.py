"""Children of fork that do something and end."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable

SECONDS = 60.0


def in_child(work: Callable[[], bool]) -> bool:
    """Whether `work` is true in a child of fork, and ends."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        except BaseException:
            traceback.print_exc(file=sys.stderr)
        finally:
            os._exit(status)
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False
