"""Exit statuses of the command lines, and the message for an error of our own."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from typing import TextIO

from ulam.tools.interrupted import EXIT_INTERRUPTED as EXIT_INTERRUPTED
from ulam.tools.interrupted import interrupted as interrupted

EXIT_OK = 0
EXIT_FAILURE = 1  # the program, the data or the run failed
EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_TIME_LIMIT = 124  # as of `timeout`


class UsageError(Exception):
    """The command line asks for what cannot be: the command ends with EXIT_USAGE."""


_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""What writing may end with: full disks, limits, closed streams."""

TRACEBACK_VARIABLE = "ULAM_TRACEBACK"


def can_show_all(stream: TextIO) -> None:
    """Characters that a stream does not have are escaped, as on standard error, instead of being an error."""
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")


def named(error: OSError) -> OSError:
    """The error; with the name of standard output if that cannot be written. What writes other files names them."""
    if error.filename is not None or error.errno not in _CANNOT_WRITE:
        return error
    discard_output()
    return OSError(error.errno, error.strerror, "standard output")


def discard_output() -> None:
    """What is left to be written goes nowhere: Python would try again when it ends, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def internal_error(command: str, error: BaseException) -> int:
    """Says on standard error that ulam itself failed, where, and how to report it."""
    import traceback
    from pathlib import PurePath

    from ulam.runtime.errors import INTERNAL_ERROR_HELP, InternalCompilerError

    text = f"{type(error).__name__}: {error}"
    if isinstance(error, InternalCompilerError):
        text = str(error).splitlines()[0].replace("internal error ", "", 1)
    print(f"{command}: internal error: {text}", file=sys.stderr)
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
        return EXIT_INTERNAL
    while isinstance(error, Exception) and error.__cause__ is not None:
        error = error.__cause__
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        place = frames[-1]
        print(f"   at {PurePath(place.filename).name}:{place.lineno} in {place.name}", file=sys.stderr)
    print(
        f"   {INTERNAL_ERROR_HELP}, its data and the output of the same command run with {TRACEBACK_VARIABLE}=1",
        file=sys.stderr,
    )
    return EXIT_INTERNAL
