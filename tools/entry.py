"""Where the console scripts begin: from here on Ctrl-C ends a command with a line that says so, without a traceback.

While the command itself is being imported, and when it is over, nothing needs tidying up: the process just ends.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from ulam.tools.interrupted import EXIT_INTERRUPTED, interrupted
from ulam.tools.version_line import version_line


def ulam() -> int:
    """The console script `ulam`."""
    _end_at_once("ulam", True)
    if sys.argv[1:] == ["--version"]:  # before all that other commands import
        print(version_line())
        return 0
    if _shell_asks():
        answer = None
    else:
        from ulam.tools.quick_start import quickly

        answer = quickly(sys.argv[1:])
    if answer is not None:
        from ulam.tools.running import ended

        return _run("ulam", lambda begin: ended(answer, begin))
    from ulam.tools.ulam_main import main

    return _run("ulam", main)


def _shell_asks() -> bool:
    """Whether a shell asks for completions."""
    return "_ULAM_COMPLETE" in os.environ


def run_quietly(command: str, main: Callable[[Callable[[], None]], int]) -> int:
    """A program that is started by other means than a console script. It is given what is to be called where an
    interrupt is already a message.
    """
    _end_at_once(command, True)
    return _run(command, lambda begin: main(begin))


def stan_opt() -> int:
    """The console script `stan-opt`."""
    _end_at_once("stan-opt", True)
    from ulam.tools.stan_opt import main

    return _run("stan-opt", main)


def _run(command: str, main: Callable[..., int]) -> int:
    try:
        return main(begin=lambda: _end_at_once(command, False))
    except KeyboardInterrupt:  # while the command said how it ended
        return interrupted(command)
    finally:
        _end_at_once(command, True)


class _End:
    """A handler that ends the process."""

    def __init__(self, command: str) -> None:
        self.line = f"{command}: interrupted\n".encode()

    def __call__(self, *_: object) -> NoReturn:
        try:
            os.write(2, self.line)
        finally:
            os._exit(EXIT_INTERRUPTED)


def _end_at_once(command: str, on: bool) -> None:
    """Whether SIGINT ends the process or raises KeyboardInterrupt. Where it is ignored it stays so."""
    handler = signal.getsignal(signal.SIGINT)
    if isinstance(handler, _End) or handler in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, _End(command) if on else signal.default_int_handler)
