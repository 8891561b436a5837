"""Exit statuses of the command lines, and the message for an error of our own."""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import PurePath

EXIT_OK = 0
EXIT_FAILURE = 1  # the program, the data or the run failed
EXIT_USAGE = 2
EXIT_INTERNAL = 70
EXIT_INTERRUPTED = 130

TRACEBACK_VARIABLE = "ULAM_TRACEBACK"


def internal_error(command: str, error: BaseException) -> int:
    """Says on standard error that ulam itself failed, where, and how to report it."""
    print(f"{command}: internal error: {type(error).__name__}: {error}", file=sys.stderr)
    if os.environ.get(TRACEBACK_VARIABLE):
        traceback.print_exception(error, file=sys.stderr)
        return EXIT_INTERNAL
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        place = frames[-1]
        print(f"   at {PurePath(place.filename).name}:{place.lineno} in {place.name}", file=sys.stderr)
    print(
        "   this is a mistake in ulam, not in your program; please report it with the program, its data and the output "
        f"of the same command run with {TRACEBACK_VARIABLE}=1",
        file=sys.stderr,
    )
    return EXIT_INTERNAL
