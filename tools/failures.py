"""What a command tells of an error that it ended with, and its exit status."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ulam.tools.exits import EXIT_FAILURE, EXIT_TIME_LIMIT, internal_error, interrupted, named

if TYPE_CHECKING:
    from ulam.runtime.errors import InitializationError


def failure(error: Exception, command: str = "ulam") -> int:
    """A user's mistake is a message; anything else is a mistake of ours."""
    from ulam.runtime.errors import (
        ArgumentError,
        CompileError,
        InitializationError,
        InternalCompilerError,
        Interrupted,
        TimeLimit,
        UlamError,
    )
    from ulam.runtime.interrupts import is_interrupt
    from ulam.runtime.terminal import escaped
    from ulam.tools.messages import show, tell

    if isinstance(error, Interrupted) or is_interrupt(error):
        return interrupted(command)
    if isinstance(error, TimeLimit):
        tell("error", str(error), command)
        return EXIT_TIME_LIMIT
    if isinstance(error, InternalCompilerError):
        return internal_error(command, error)
    if isinstance(error, CompileError):
        show(str(error))
    elif isinstance(error, (UlamError, ArgumentError, NotImplementedError, MemoryError)):
        tell("error", str(error) or type(error).__name__, command)
        if isinstance(error, InitializationError):
            _explain(error)
    elif isinstance(error, OSError):
        file = named(error).filename
        said = f"{escaped(str(file))}: {error.strerror}" if file is not None else error.strerror or str(error)
        tell("error", said, command)
    else:
        return internal_error(command, error)
    return EXIT_FAILURE


def _explain(error: InitializationError) -> None:
    """Shows why the first initial point failed, where that is known. The error itself was shown before."""
    from ulam.tools.messages import tell

    try:
        found = error.explain()
    except Exception as problem:
        tell("note", f"no explanation: {type(problem).__name__}: {problem}")
        return
    if found is not None:
        from ulam.tracing.explain.text import print_explanation

        print("\nThe first point that failed:", file=sys.stderr)
        print_explanation(found, sys.stderr)
