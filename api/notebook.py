"""`%load_ext ulam` and `%%stan NAME` in IPython and Jupyter. IPython loads it."""

from __future__ import annotations

import shlex
from typing import Any

from IPython.core.error import UsageError  # pyright: ignore[reportMissingImports]
from IPython.core.magic import Magics, cell_magic, magics_class  # pyright: ignore[reportMissingImports]
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring  # pyright: ignore[reportMissingImports]

from ulam.runtime.arguments import asked_level
from ulam.runtime.errors import ArgumentError, UlamError
from ulam.runtime.named_text import NamedText
from ulam.runtime.results import seconds_text
from ulam.runtime.stan_program import StanProgram

_DATA = "--data"


@magics_class
class StanMagics(Magics):
    """The magic `%%stan`."""

    @magic_arguments()
    @argument("name", metavar="NAME", help="The variable that becomes the program.")
    @argument("-O", "--opt-level", metavar="LEVEL", help="Optimization level: 0 to 4, or a name.")
    @argument("--passes", metavar="PIPELINE", help="Passes instead of those of a level.")
    @argument("-I", "--include-path", action="append", default=[], metavar="FOLDER", help="Where included files are.")
    @argument(
        _DATA, metavar="EXPR",
        help="Python that gives the data: NAME is then the model with these data. Comes last; the rest of the line.",
    )  # fmt: skip
    @cell_magic
    def stan(self, line: str, cell: str) -> None:
        """Checks and compiles the Stan program of the cell; NAME becomes an `ulam.StanProgram`.

        Call it with data for a model:

            %%stan schools
            data { int J; ... }

            fit = schools({"J": 8, ...}).sample()

        With `--data EXPR` NAME is the model itself. Mistakes in the program are shown where they are.
        """
        options, data, expression = line.partition(_DATA)
        arguments = parse_argstring(self.stan, options)
        name = _unquoted(arguments.name)
        if not name.isidentifier():
            raise UsageError(f"%%stan NAME: a name of Python, found {name!r}")
        if data and not expression.strip():
            raise UsageError("--data EXPR: Python that gives the data")
        shell: Any = self.shell
        try:
            program = StanProgram(
                NamedText(cell, f"{name}.stan"),
                opt_level=asked_level(arguments.opt_level),
                passes=arguments.passes,
                include_paths=[_unquoted(folder) for folder in arguments.include_path],
            )
        except (UlamError, ArgumentError) as error:
            raise _without_traceback(error) from None
        if not data:
            shell.user_ns[name] = program
            print(f"{name}: compiled in {seconds_text(program.compile_seconds)}; {_how_to_go_on(name, program)}")
            return
        values = shell.ev(expression.strip())
        try:
            shell.user_ns[name] = program(values)
        except (UlamError, ArgumentError) as error:
            raise _without_traceback(error) from None
        print(f"{name}: a model with data, compiled in {seconds_text(program.compile_seconds)}")


def _how_to_go_on(name: str, program: StanProgram) -> str:
    declared = ", ".join(program.declarations())
    return f"{name}(data) is a model, of {declared}" if declared else f"{name}() is a model"


def _unquoted(word: str) -> str:
    """IPython leaves quotes where they are."""
    try:
        return " ".join(shlex.split(word))
    except ValueError:
        return word


def _without_traceback(error: Exception) -> Exception:
    """The error as IPython is to show it: its message says where the mistake is, the way through ulam does not."""
    text = f"{type(error).__name__}:\n{error}".splitlines()
    error._render_traceback_ = lambda *_: text  # pyright: ignore[reportAttributeAccessIssue]
    return error.with_traceback(None)


def load_ipython_extension(ipython: Any) -> None:
    """What `%load_ext ulam` does."""
    ipython.register_magics(StanMagics)
