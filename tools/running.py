"""A command is run: its files are checked before, and what ends it becomes a message and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from typing import Any

from ulam.tools import commands, options
from ulam.tools.exits import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_USAGE,
    UsageError,
    can_show_all,
    discard_output,
    interrupted,
)


def execute(name: str, values: dict[str, Any]) -> int:
    """Runs a command with these values of its options; what can be told to be wrong beforehand, is."""
    from ulam.runtime import compile_notice, terminal
    from ulam.tools.files import checked_files, is_standard_output
    from ulam.tools.messages import warnings_told

    if wrong := commands.wrong_choice(name, values):
        raise UsageError(wrong)
    _check_passes(values)
    if external := values.pop("external", None):
        from ulam.tools.external_functions import register_given

        register_given(external)
    terminal.color = values.pop("color")
    if (limit := values.pop("time_limit", None)) is not None and not limit > 0:
        raise UsageError(f"--time-limit: give a positive number of seconds, found {limit:g}")
    compile_notice.shown_on = sys.stderr if terminal.is_animated(sys.stderr) else None
    values = checked_files(name, values)
    printed = [file for _, file in commands.files(name, values, written=True) if is_standard_output(file)]
    taken = printed or (commands.COMMANDS[name].is_for_programs and values.get("output") is None)
    module, _, kind = commands.COMMANDS[name].runs.partition(":")

    def run() -> int:
        with warnings_told(), terminal.programs_print_to(sys.stderr) if taken else nullcontext():
            return getattr(import_module(f"ulam.tools.{module}"), kind)(**values).run()

    if "time_limit" not in commands.COMMANDS[name].names():
        return run()
    from ulam.runtime.interrupts import as_command

    return as_command(run, limit)


def _check_passes(values: dict[str, Any]) -> None:
    """Raises UsageError for a level or passes that there are not."""
    for level, passes in (("opt_level", "passes"), ("vs_opt_level", "vs_passes")):
        given = [name for name in (level, passes) if values.get(name) is not None]
        if len(given) == 2:
            raise UsageError(f"give either {options.long_name(level)} or {options.long_name(passes)}")
        if given:
            from ulam.runtime.arguments import asked_level, chosen_level
            from ulam.runtime.errors import ArgumentError

            try:
                chosen_level(asked_level(values[level]), values.get(passes))
            except ArgumentError as error:
                raise UsageError(f"{options.long_name(given[0])}: {error}") from None


def ended(
    run: Callable[[], int],
    begin: Callable[[], None] | None = None,
    usage: Callable[[Exception], bool] = lambda error: False,
) -> int:
    """The exit status of what `run` does, with a message for what it raises.

    `begin` is called first, where an interrupt is already a message. `usage` says whether an error is wrong usage, and
    has told it then.
    """
    try:
        if begin is not None:
            begin()
        can_show_all(sys.stdout)
        status = run()
        if status == EXIT_INTERRUPTED:
            return status
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader of our output has gone
        discard_output()
        return EXIT_FAILURE
    except KeyboardInterrupt:
        return interrupted("ulam")
    except UsageError as error:
        from ulam.tools.messages import tell

        tell("error", str(error))
        return EXIT_USAGE
    except Exception as error:
        from ulam.tools.failures import failure

        return EXIT_USAGE if usage(error) else failure(error)
