"""The command `ulam`: parses arguments by the tables of `options`, runs a command, turns errors into messages.

Exit status: 0 done; 1 the program, the data or the run failed; 2 wrong usage; 70 an error inside ulam; 124 the time
limit was reached; 130 interrupted.
Everything but typer is imported when a command runs.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ulam.tools import commands, options
from ulam.tools.exits import EXIT_INTERRUPTED, EXIT_OK, UsageError, interrupted
from ulam.tools.quick_start import ABOUT, COMMAND_HELP, VERSION_HELP
from ulam.tools.running import ended, execute
from ulam.tools.version_line import version_line

app = typer.Typer(
    name="ulam",
    help=ABOUT,
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


# ---------------------------------------------------------------- commands, from the tables


class TableCommand(TyperCommand):
    """A command whose usage and help are those of the tables."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return ["[OPTIONS]", *(written for written, _ in commands.help_rows(self.name or "")[0])]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments, rows = commands.help_rows(self.name or "")
        for title, entries in (("Arguments", arguments), ("Options", [*rows, COMMAND_HELP])):
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


def _register(name: str, command: commands.Command) -> None:
    def run(**values: Any) -> Callable[[], int]:
        return partial(execute, name, values)  # for `main`: typer would make a bare status of an interrupt

    parameters = [_parameter(entry, name) for entry in command.names()]
    run.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    run.__annotations__ = {entry.name: entry.annotation for entry in parameters}
    # Only of hidden arguments there may be more than the table shows: those of `trace` may look like options.
    lenient = any(options.OPTIONS[entry].hidden for entry in command.arguments)
    settings = {"ignore_unknown_options": True} if lenient else {}
    app.command(name, cls=TableCommand, help=command.help, context_settings=settings)(run)


for _name, _command in commands.COMMANDS.items():
    _register(_name, _command)


def _version(value: bool) -> None:
    if value:
        print(version_line())
        raise typer.Exit


@app.callback()
def _options(  # pyright: ignore[reportUnusedFunction]
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help=VERSION_HELP)] = False,
) -> None:
    pass


# ---------------------------------------------------------------- running


def main(argv: Sequence[str] | None = None, begin: Callable[[], None] | None = None) -> int:
    """The command. `begin` is called first, where an interrupt is already a message."""
    given = sys.argv[1:] if argv is None else argv

    def run() -> int:
        words = list(commands.with_values(given))
        if wrong := commands.empty_name(words):
            raise UsageError(wrong)
        found = app(args=words, prog_name="ulam", standalone_mode=False)
        if found == EXIT_INTERRUPTED:  # of typer itself, which says nothing
            return interrupted("ulam")
        status = found() if callable(found) else found
        return status if isinstance(status, int) else EXIT_OK

    def usage(error: Exception) -> bool:
        if isinstance(error, typer.Abort):
            raise KeyboardInterrupt
        show = getattr(error, "show", None)
        if show is None or not hasattr(error, "exit_code"):
            return False
        show()  # typer's own: wrong usage
        if told := commands.hint(given):
            print(f"Help: {told}", file=sys.stderr)
        return True

    return ended(run, begin, usage)


if __name__ == "__main__":
    sys.exit(main())
