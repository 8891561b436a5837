"""The make program of a home: `make [NAME=VALUE ...] TARGET ...` writes executables, and libraries of BridgeStan's.

It takes what cmdstanpy, cmdstanr and bridgestan give to GNU make, and knows the targets that they ask for: an
executable beside its `.stan` file, `NAME_model.so`, `print-NAME`, `build` and `clean-all`. An executable is made anew
when its program, a file that is included or its options are others than before.
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ulam.frontend.encoding import read_text
from ulam.frontend.source import Source
from ulam.runtime.named_text import NamedText
from ulam.tools.cmdstan.executable import StanExecutable
from ulam.tools.cmdstan.stanc_options import DEFAULT_LEVEL, StancArguments, parse
from ulam.tools.exits import EXIT_FAILURE, EXIT_OK, UsageError

FLAGS, THREADS, USER_HEADER = "STANCFLAGS", "STAN_THREADS", "USER_HEADER"
LOCAL = os.path.join("make", "local")
"""A file of a home with variables, a line for each."""

SOURCE_SUFFIX, LIBRARY_SUFFIX = ".stan", "_model.so"
NOTHING_TO_DO = ("build", "all", "clean", "clean-all", "clean-deps", "clean-program", "stan-update")
_OPTIONS_WITH_VALUE = ("-C", "-f", "-I", "-j", "-l", "-o", "-W")
_ASSIGNMENT = re.compile(r"(\w+)\s*([+:?]?=)\s*(.*)", re.DOTALL)


@dataclass
class MakeArguments:
    """Variables and targets of a command line, and the folder that it runs in."""

    variables: dict[str, str] = field(default_factory=dict[str, str])
    targets: list[str] = field(default_factory=list[str])
    folder: str = "."

    def assign(self, text: str) -> bool:
        """`NAME=VALUE` or `NAME+=VALUE`; whether the text is one."""
        found = _ASSIGNMENT.fullmatch(text)
        if found is None:
            return False
        name, operator, value = found.groups()
        before = self.variables.get(name, "")
        if operator == "?=" and before:
            return True
        self.variables[name] = f"{before} {value}".strip() if operator == "+=" else value
        return True

    def is_set(self, name: str) -> bool:
        """Whether a switch is on: any value but these, as in CmdStan's makefile."""
        return self.variables.get(name, "").lower() not in ("", "0", "false")

    def stanc(self) -> StancArguments:
        """The options for stanc. A backslash is before a space within one."""
        return parse(shlex.split(self.variables.get(FLAGS, "")))


def run(words: Sequence[str]) -> int:
    """The command; the exit status. Raises UsageError, and what compiling raises."""
    arguments = read_arguments(words)
    if not arguments.targets:
        raise UsageError("give a target: the name of a .stan file without its end")
    if header := arguments.variables.get(USER_HEADER):
        raise UsageError(f"{USER_HEADER}={header}: functions written in C++ are not there; write them in Stan")
    for target in arguments.targets:
        if status := _make(target, arguments):
            return status
    return EXIT_OK


def read_arguments(words: Sequence[str]) -> MakeArguments:
    """Variables, those of `make/local` first, and targets; options of GNU make that mean nothing here are dropped."""
    found = MakeArguments()
    given, rest = list[str](), list(reversed(words))
    while rest:
        word = rest.pop()
        if word in _OPTIONS_WITH_VALUE and rest and (word != "-j" or rest[-1].isdecimal()):
            value = rest.pop()
            found.folder = value if word == "-C" else found.folder
        elif not word.startswith("-"):
            given.append(word)
    for line in _local_lines(os.path.join(found.folder, LOCAL)):
        found.assign(line)
    found.targets = [word for word in given if not found.assign(word)]
    return found


def _local_lines(path: str) -> Iterator[str]:
    try:
        with open(path, encoding="utf-8") as file:
            yield from (line.partition("#")[0].strip() for line in file)
    except FileNotFoundError:
        return


def _make(target: str, arguments: MakeArguments) -> int:
    if target.startswith("print-"):
        name = target.removeprefix("print-")
        print(f"{name} = {arguments.variables.get(name, '')}")
        return EXIT_OK
    if target in NOTHING_TO_DO:
        print(f"ulam: nothing to be done for '{target}'")
        return EXIT_OK
    path = os.path.join(arguments.folder, target)
    if path.endswith(LIBRARY_SUFFIX):
        return _make_library(path, path.removesuffix(LIBRARY_SUFFIX) + SOURCE_SUFFIX, arguments)
    return _make_executable(path, path.removesuffix(".exe") + SOURCE_SUFFIX, arguments)


def _make_executable(path: str, program: str, arguments: MakeArguments) -> int:
    wanted, includes = _program(program, arguments)
    if StanExecutable.read(path) == wanted and os.access(path, os.X_OK) and _is_newer(path, [program, *includes]):
        print(f"ulam: '{path}' is up to date.")
        return EXIT_OK
    if not compile_program(wanted):
        return EXIT_FAILURE
    wanted.write(path)
    print(f"ulam: compiled {path}")
    return EXIT_OK


def _make_library(path: str, program: str, arguments: MakeArguments) -> int:
    """Built anew each time: a library does not say of which program it is, and with compiled code it is soon done."""
    from ulam.runtime.libraries.build import build

    wanted, _ = _program(program, arguments)
    if not _is_valid(wanted):
        return EXIT_FAILURE
    level = min(wanted.level, DEFAULT_LEVEL)  # libraries are for any data
    build(NamedText(wanted.text, wanted.name), path, opt_level=level, include_paths=wanted.include_paths)
    print(f"ulam: built {path}")
    return EXIT_OK


def _program(program: str, arguments: MakeArguments) -> tuple[StanExecutable, list[Path]]:
    """The program with its options, and the files that it includes."""
    stanc = arguments.stanc()
    if not os.path.isfile(program):
        raise UsageError(f"no rule to make '{program.removesuffix(SOURCE_SUFFIX)}': there is no file '{program}'")
    folder = os.path.dirname(os.path.abspath(program))
    paths = tuple(os.path.abspath(os.path.join(arguments.folder, path)) for path in stanc.include_paths)
    name = stanc.values.get("filename-in-msg", os.path.basename(program))
    text, flags = read_text(program), arguments.variables.get(FLAGS, "")
    made = StanExecutable(text, name, (folder, *paths), stanc.level, arguments.is_set(THREADS), flags)
    return made, Source(text, name, made.include_paths).included_files


def _is_newer(path: str, sources: Sequence[str | Path]) -> bool:
    made = os.path.getmtime(path)
    return all(os.path.getmtime(source) <= made for source in sources)


def compile_program(program: StanExecutable) -> bool:
    """Checks a program, tells what is wrong with it, and compiles it into the cache. Whether it could be."""
    from ulam.runtime.stan_program import StanProgram

    if not _is_valid(program):
        return False
    StanProgram(NamedText(program.text, program.name), opt_level=program.level, include_paths=program.include_paths)
    return True


def _is_valid(program: StanExecutable) -> bool:
    """Whether a program can be compiled; tells what is wrong with it."""
    from ulam.tools.cmdstan.stanc_messages import checked

    tree, messages = checked(Source(program.text, program.name, program.include_paths))
    for message in messages:
        print(message, file=sys.stderr)
    return tree is not None
