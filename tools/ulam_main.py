"""The command `ulam`: parses arguments by the tables of `options`, runs a command, turns errors into messages.

Exit status: 0 done; 1 the program, the data or the run failed; 2 wrong usage; 70 an error inside ulam; 124 the time
limit was reached; 130 interrupted.
Everything but typer is imported when a command runs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ulam.tools import options
from ulam.tools.exits import (
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    UsageError,
    can_show_all,
    discard_output,
    interrupted,
)
from ulam.tools.failures import failure
from ulam.tools.version_line import version_line

app = typer.Typer(
    name="ulam",
    help="Compiles Stan programs to native code and runs them.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# ---------------------------------------------------------------- commands, from the tables


class TableCommand(TyperCommand):
    """A command whose usage and help are those of the tables."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(written for written, _ in options.help_rows(self.name or "")[0])]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, rows = options.help_rows(self.name or "")
        for title, entries in (("Arguments", arguments), ("Options", [*rows, ("--help", "Show this and exit.")])):
            if entries:
                with formatter.section(title):
                    formatter.write_dl(entries)


def _parameter(name: str, command: str) -> inspect.Parameter:
    """An option as a parameter of a function, which is what typer reads."""
    option = options.OPTIONS[name]
    default = option.default_in(command)
    if option.argument:
        required = not option.hidden
        kind = Annotated[option.type if required else option.type | None, typer.Argument(metavar=option.of)]
        default = inspect.Parameter.empty if required else None
    else:
        given = typer.Option(*options.flags(name), min=option.least, max=option.most)
        kind = Annotated[option.type | None if default is None else option.type, given]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


def _register(name: str, command: options.Command) -> None:
    def run(**values: Any) -> Callable[[], int]:
        return partial(execute, name, values)  # for `main`: typer would make a bare status of an interrupt

    parameters = [_parameter(entry, name) for entry in command.names()]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    # Only of hidden arguments there may be more than the table shows: those of `trace` may look like options.
    lenient = any(options.OPTIONS[entry].hidden for entry in command.arguments)
    settings = {"ignore_unknown_options": True} if lenient else {}
    app.command(name, cls=TableCommand, help=command.help, context_settings=settings)(run)


for _name, _command in options.COMMANDS.items():
    _register(_name, _command)


def execute(name: str, values: dict[str, Any]) -> int:
    """Runs a command with these values of its options; what can be told to be wrong beforehand, is."""
    from ulam.runtime import compile_notice, terminal
    from ulam.tools.files import checked_files, is_standard_output
    from ulam.tools.messages import warnings_told

    if wrong := options.wrong_choice(name, values):
        raise UsageError(wrong)
    terminal.color = values.pop("color")
    if (limit := values.pop("time_limit", None)) is not None and not limit > 0:
        raise UsageError(f"--time-limit: give a positive number of seconds, found {limit:g}")
    compile_notice.shown_on = sys.stderr if terminal.is_animated(sys.stderr) else None
    values = checked_files(name, values)
    printed = [file for _, file in options.files(name, values, written=True) if is_standard_output(file)]
    taken = printed or (options.COMMANDS[name].is_for_programs and values.get("output") is None)
    module, _, kind = options.COMMANDS[name].runs.partition(":")

    def run() -> int:
        with warnings_told(), terminal.programs_print_to(sys.stderr) if taken else nullcontext():
            return getattr(import_module(f"ulam.tools.{module}"), kind)(**values).run()

    if "time_limit" not in options.COMMANDS[name].names():
        return run()
    from ulam.runtime.interrupts import as_command

    return as_command(run, limit)


def _version(value: bool) -> None:
    if value:
        print(version_line())
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


# ---------------------------------------------------------------- running


def main(argv: Sequence[str] | None = None, begin: Callable[[], None] | None = None) -> int:
    """The command. `begin` is called first, where an interrupt is already a message."""
    given = sys.argv[1:] if argv is None else argv
    try:
        if begin is not None:
            begin()
        words = list(options.with_values(given))
        if wrong := options.empty_name(words):
            raise UsageError(wrong)
        can_show_all(sys.stdout)
        found = app(args=words, prog_name="ulam", standalone_mode=False)
        if found == EXIT_INTERRUPTED:  # of typer itself, which says nothing
            return interrupted("ulam")
        status = found() if callable(found) else found
        sys.stdout.flush()
        return status if isinstance(status, int) else EXIT_OK
    except BrokenPipeError:  # the reader of our output has gone
        discard_output()
        return EXIT_FAILURE
    except (KeyboardInterrupt, typer.Abort):
        return interrupted("ulam")
    except UsageError as error:
        from ulam.tools.messages import tell

        tell("error", str(error))
        return EXIT_USAGE
    except Exception as error:
        show = getattr(error, "show", None)
        if show is not None and hasattr(error, "exit_code"):  # typer's own: wrong usage
            show()
            if told := options.hint(given):
                print(f"Help: {told}", file=sys.stderr)
            return EXIT_USAGE
        return failure(error)


if __name__ == "__main__":
    sys.exit(main())
