"""`run`: a model with CmdStan's command line, to the exit status, which is 0 or 1."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ulam.tools.cmdstan.arguments import TREE, Arguments
from ulam.tools.cmdstan.parser import INFO, CommandLineError, HelpAsked, parse

if TYPE_CHECKING:
    from ulam.runtime.named_text import NamedText

    Program = str | os.PathLike[str] | NamedText

METHODS = {
    "sample": "sampling:sample",
    "optimize": "estimates:optimize",
    "laplace": "estimates:laplace",
    "pathfinder": "estimates:pathfinder",
    "generate_quantities": "evaluations:generate_quantities",
    "log_prob": "evaluations:log_prob",
    "diagnose": "evaluations:diagnose",
}
"""The functions of the methods; each is given a `MethodCall` and returns the exit status."""

WITH_DIAGNOSTICS = ("sample", "laplace")
"""Methods that write to `diagnostic_file`."""

OK, FAILED = 0, 1

_MISSING = re.compile(r"variable '(\S+)' does not exist; declared (\S+)")


def run(
    model: Program,
    words: Sequence[str],
    *,
    command: str = "",
    threads: bool = True,
    begin: Callable[[], None] | None = None,
    **options: Any,
) -> int:
    """Runs the model (a `.stan` file, or the text of a program) with a command line of CmdStan's.

    `command` is what help calls the program, `threads` what `info` says of them; `options` are those of `StanModel`:
    `include_paths`, `opt_level`, `cache`. Messages of errors go to standard error, with `Error` or `Exception` before
    them. `begin` is called where an interrupt is already a message.
    """
    command = command or os.path.splitext(os.path.basename(str(model)))[0]
    try:
        if not words:
            _show_help("help", TREE, command)
            return FAILED
        arguments = parse(words)
    except HelpAsked as asked:
        if asked.word == INFO:
            from ulam.tools.cmdstan.info import info_text

            print(info_text(threads), end="")
        else:
            _show_help(asked.word, asked.node, command)
        return OK
    except CommandLineError as error:
        _tell(error.lines)
        _tell(["Failed to parse command arguments, cannot run model."])
        return FAILED
    return _run(model, arguments, options, begin)


def _show_help(word: str, node: Any, command: str) -> None:
    from ulam.tools.cmdstan.help_text import help_text

    print(help_text(word, node, command), end="")


def _run(model: Program, arguments: Arguments, options: dict[str, Any], begin: Callable[[], None] | None) -> int:
    from ulam.runtime import terminal
    from ulam.runtime.interrupts import as_command
    from ulam.tools.cmdstan.call import MethodCall
    from ulam.tools.exits import can_show_all, discard_output

    can_show_all(sys.stdout)
    call = MethodCall(model, arguments, options)
    module, _, name = METHODS[arguments.method].partition(":")

    def work() -> int:
        call.announce()
        if arguments["output.diagnostic_file"] and arguments.method not in WITH_DIAGNOSTICS:
            _tell([f"Warning: {arguments.method} writes no diagnostic_file."])
        method = getattr(import_module(f"ulam.tools.cmdstan.{module}"), name)
        status = method(call)
        call.write_profile()
        return status

    colors, terminal.color = terminal.color, "never"  # lines that clients read: none that change
    try:
        if begin is not None:
            begin()
        with warnings.catch_warnings():
            warnings.showwarning = _told_warning
            return as_command(work)
    except BrokenPipeError:  # the reader of our output has gone
        discard_output()
        return FAILED
    except (Exception, KeyboardInterrupt) as error:
        return _failure(error, arguments["data.file"] or "data")
    finally:
        terminal.color = colors


def _told_warning(message: Warning | str, *_: object, **__: object) -> None:
    _tell(f"Warning: {message}".splitlines())


def _failure(error: BaseException, data: str) -> int:
    """Says what went wrong, in lines that CmdStan's clients look for. `data`: how messages call the data."""
    from ulam.runtime.errors import (
        ArgumentError,
        CompileError,
        DataError,
        InternalCompilerError,
        Interrupted,
        ProgramError,
        UlamError,
    )
    from ulam.runtime.interrupts import is_interrupt
    from ulam.tools.cmdstan.call import as_clients_look
    from ulam.tools.exits import internal_error

    sys.stdout.flush()
    if isinstance(error, (KeyboardInterrupt, Interrupted)) or (isinstance(error, Exception) and is_interrupt(error)):
        _tell(["Interrupted."])
    elif isinstance(error, CommandLineError):
        _tell([f"Error: {error.lines[0]}", *error.lines[1:]])
    elif isinstance(error, OSError) and error.filename is not None:
        _tell([f"Error: {error.filename}: {error.strerror}"])
    elif isinstance(error, InternalCompilerError) or not isinstance(
        error, (UlamError, ArgumentError, ValueError, NotImplementedError, MemoryError, OSError)
    ):
        internal_error("ulam", error)
    elif isinstance(error, CompileError):
        _tell(["Error: the program does not compile:", *str(error).splitlines()])
    else:
        word = "Exception" if isinstance(error, (DataError, ProgramError)) else "Error"
        first, *rest = (str(error) or type(error).__name__).splitlines()
        known = [line for line in (first, *rest) if isinstance(error, DataError) for line in _as_stan(line, data)]
        _tell([*known, f"{word}: {first}", *map(as_clients_look, rest)])
    return FAILED


def _as_stan(problem: str, data: str) -> Iterator[str]:
    """A problem of data in the words that CmdStan's clients look for, where they look for any."""
    if missing := _MISSING.search(problem):
        stage = "data" if problem.startswith(f"{data}:") else "parameter"
        base = "int" if missing[2].startswith("int") else "double"
        told = f"processing stage={stage} initialization; variable name={missing[1]}; base type={base}"
        yield f"Exception: variable does not exist; {told}"


def _tell(lines: Sequence[str]) -> None:
    from ulam.runtime.terminal import escaped

    sys.stderr.write("".join(f"{escaped(line)}\n" for line in lines))
    sys.stderr.flush()
