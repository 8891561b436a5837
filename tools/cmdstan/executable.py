"""The executable of a program in a CmdStan home: a short script with the program in it, and what runs it.

Text, options and all are in the script, so that it is a compiled program as clients know it: it may be copied, and what
becomes of the `.stan` file later does not change it. Files that it includes are read where they were. Its start is what
every chain pays for, so nothing is imported before it is needed.
"""

from __future__ import annotations

import json
import os
import shlex
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

_MARK = "PROGRAM = "
_LONGEST_SHEBANG = 127
"""Systems cut longer first lines, or refuse them."""


@dataclass(frozen=True)
class StanExecutable:
    """What an executable is of: text and file name of the program, where its includes are, and how it is compiled."""

    text: str
    name: str
    include_paths: tuple[str, ...] = ()
    level: int = 3
    threads: bool = False
    flags: str = ""

    def script(self) -> str:
        """The text of the executable."""
        return (
            f"{interpreter_line()}"
            "import sys\n"
            "from ulam.tools.cmdstan.executable import run_program\n"
            f"{_MARK}{json.dumps(asdict(self))!r}\n"
            "sys.exit(run_program(PROGRAM, sys.argv))\n"
        )

    def write(self, path: str) -> None:
        """Puts the executable in its place, whole."""
        from ulam.runtime.output_files import writing

        with writing(path) as file:
            file.write(self.script())
            make_executable(file.fileno())
        if not os.access(path, os.X_OK):  # one that was there before kept its permissions
            make_executable(path)

    @staticmethod
    def read(path: str) -> StanExecutable | None:
        """What is in an executable; None if it is not one of ours, or cannot be read."""
        from ast import literal_eval

        try:
            with open(path, encoding="utf-8") as file:
                line = next((line for line in file if line.startswith(_MARK)), "")
            return StanExecutable.of(literal_eval(line.removeprefix(_MARK)))
        except (OSError, ValueError, SyntaxError, TypeError):
            return None

    @staticmethod
    def of(record: str) -> StanExecutable:
        """What a script has written in it."""
        found = json.loads(record)
        return StanExecutable(**{**found, "include_paths": tuple(found["include_paths"])})


def interpreter_line() -> str:
    """The first lines of a script for this interpreter, which looks for no modules beside the script.

    Where the name of the interpreter does not fit a first line, the script is one of the shell's that starts it.
    """
    line = f"#!{sys.executable} -P\n"
    if " " not in sys.executable and len(line) <= _LONGEST_SHEBANG:
        return line
    return f"#!/bin/sh\n'''exec' {shlex.quote(sys.executable)} -P \"$0\" \"$@\"\n' '''\n"


def make_executable(file: int | str) -> None:
    """Who may read a file may run it."""
    mode = stat.S_IMODE(os.stat(file).st_mode)
    os.chmod(file, mode | (mode & 0o444) >> 2)


def run_program(record: str, argv: Sequence[str]) -> int:
    """What the executable does: CmdStan's command line for its program."""
    executable, words = StanExecutable.of(record), list(argv[1:])
    if words == ["info"]:
        from ulam.tools.cmdstan.info import info_text

        print(info_text(executable.threads), end="")
        return 0
    from ulam.tools.entry import run_quietly

    name = os.path.basename(argv[0])

    def work(begin: Callable[[], None]) -> int:
        from ulam.runtime.named_text import NamedText
        from ulam.tools.cmdstan.command import run

        model = NamedText(executable.text, executable.name)
        options = {"include_paths": executable.include_paths, "opt_level": executable.level}
        return run(model, words, command=name, threads=executable.threads, begin=begin, **options)

    return run_quietly(name, work)
