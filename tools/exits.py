"""Exit statuses of the command lines, and the message for an error of our own."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import PurePath

from ulam.runtime.errors import INTERNAL_ERROR_HELP, InternalCompilerError

EXIT_OK = 0
EXIT_FAILURE = 1  # the program, the data or the run failed
EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130


class UsageError(Exception):
    """The command line asks for what cannot be: the command ends with EXIT_USAGE."""


TRACEBACK_VARIABLE = "ULAM_TRACEBACK"


def internal_error(command: str, error: BaseException) -> int:
    """Says on standard error that ulam itself failed, where, and how to report it."""
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
