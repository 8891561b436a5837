"""Where the console scripts begin: from here on Ctrl-C ends a command without a traceback.

While the command itself is being imported, and when it is over, nothing needs tidying up: the process just ends.
"""

from __future__ import annotations

import signal
from collections.abc import Callable


def ulam() -> int:
    """The console script `ulam`."""
    _end_at_once(True)
    from ulam.tools.ulam import main

    return _run(main)


def stan_opt() -> int:
    """The console script `stan-opt`."""
    _end_at_once(True)
    from ulam.tools.stan_opt import main

    return _run(main)


def _run(main: Callable[..., int]) -> int:
    try:
        return main(begin=lambda: _end_at_once(False))
    finally:
        _end_at_once(True)


def _end_at_once(on: bool) -> None:
    """Whether SIGINT ends the process or raises KeyboardInterrupt. Where it is ignored it stays so."""
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, signal.SIG_DFL if on else signal.default_int_handler)
