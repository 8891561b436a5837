"""The options of stanc that ulam's stand-in for it takes, and what each becomes here.

The names are those of `stanc --help` (Stan User's Guide, "Stan's compiler"). What is about C++ or the formatter is
known, too, so that the answer is why it is not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ulam.tools.exits import UsageError

Kind = Literal["flag", "value", "level", "ignored", "missing"]

_NO_FORMATTER = "ulam has no formatter: give the program to stanc's"
_NO_CPP = "ulam makes no C++: a program becomes machine code in the process"
_NO_DUMP = "ulam has no such listing; `stan-opt` prints a program at any stage"
DEFAULT_LEVEL = 3


@dataclass(frozen=True)
class StancOption:
    """A row: what kind of option it is, and the level it means or why it is not there."""

    kind: Kind
    level: int = DEFAULT_LEVEL
    reason: str = ""


STANC_OPTIONS: Mapping[str, StancOption] = {
    "info": StancOption("flag"),
    "version": StancOption("flag"),
    "help": StancOption("flag"),
    "allow-undefined": StancOption("flag"),
    "include-paths": StancOption("value"),
    "filename-in-msg": StancOption("value"),
    "name": StancOption("value"),
    "O0": StancOption("level", 0),
    "O1": StancOption("level"),
    "O": StancOption("level", 4),
    "Oexperimental": StancOption("level", 4),
    "warn-pedantic": StancOption("ignored"),
    "warn-uninitialized": StancOption("ignored"),
    "use-opencl": StancOption("ignored"),
    "fsoa": StancOption("ignored"),
    "fno-soa": StancOption("ignored"),
    "auto-format": StancOption("missing", reason=_NO_FORMATTER),
    "print-canonical": StancOption("missing", reason=_NO_FORMATTER),
    "canonicalize": StancOption("missing", reason=_NO_FORMATTER),
    "max-line-length": StancOption("missing", reason=_NO_FORMATTER),
    "print-cpp": StancOption("missing", reason=_NO_CPP),
    "standalone-functions": StancOption("missing", reason=_NO_CPP),
    "o": StancOption("missing", reason=_NO_CPP),
    "dump-stan-math-signatures": StancOption("missing", reason=_NO_DUMP),
    "dump-stan-math-distributions": StancOption("missing", reason=_NO_DUMP),
}
"""By name, without dashes. O1 is ulam's default level, which does more than stanc's O1."""

_DEBUG = "debug-"


@dataclass
class StancArguments:
    """A command line of stanc: its flags and values by name, the level, and the programs."""

    flags: frozenset[str]
    values: Mapping[str, str]
    level: int
    programs: tuple[str, ...]

    @property
    def include_paths(self) -> tuple[str, ...]:
        """Folders that are searched for included files."""
        return tuple(path for path in self.values.get("include-paths", "").split(",") if path)


def parse(words: Sequence[str]) -> StancArguments:
    """The arguments of a command line. Raises UsageError for what is not known, or not there."""
    flags, values, programs, level = set[str](), dict[str, str](), list[str](), DEFAULT_LEVEL
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            programs.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        option = STANC_OPTIONS.get(name)
        if option is None:
            option = StancOption("missing", reason=_NO_DUMP) if name.startswith(_DEBUG) else None
        if option is None:
            raise UsageError(f"unknown option '{word}'; known are {', '.join(f'--{each}' for each in STANC_OPTIONS)}")
        match option.kind:
            case "missing":
                raise UsageError(f"--{name} is not there: {option.reason}")
            case "level":
                level = option.level
            case "value":
                if not equals:
                    if not rest:
                        raise UsageError(f"--{name}: give a value, as in --{name}=VALUE")
                    value = rest.pop()
                # Folders of several options are all searched.
                values[name] = f"{values[name]},{value}" if name == "include-paths" and name in values else value
            case "flag":
                flags.add(name)
            case "ignored":
                pass
    return StancArguments(frozenset(flags), values, level, tuple(programs))
