"""How a command line is told again, as comments and as JSON, and the files that it names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from ulam.runtime.cmdstan_csv import Setting, preamble
from ulam.runtime.versions import STAN_PATCH, STAN_VERSION, ulam_version
from ulam.tools.cmdstan.arguments import TREE, Argument, ArgumentChoice, ArgumentGroup, Arguments, members

SEED = "random.seed"


def about_file(arguments: Arguments, model: str, seed: int) -> tuple[Setting, ...]:
    """What a CSV file says before its header. `model` is its name, `seed` what the run's is if none was given."""
    return (
        *preamble(model),
        (0, "start_datetime", _now(), None),
        *told(arguments, seed),
        (0, "stanc_version", f"ulam {ulam_version()}", None),
    )


def told(arguments: Arguments, seed: int, node: Argument = TREE, path: str = "", depth: int = 0) -> Iterator[Setting]:
    """All arguments that count, with those that were not given, in the order of the tree."""
    for member in members(node):
        below = f"{path}.{member.name}" if path else member.name
        if isinstance(member, ArgumentGroup):
            yield depth, member.name, None, None
            yield from told(arguments, seed, member, below, depth + 1)
            continue
        value: Any = arguments[below]
        default: Any = member.default
        if below == SEED and value == default:
            value = default = seed
        yield depth, member.name, value, default
        if isinstance(member, ArgumentChoice) and (option := member.option(value)) is not None:
            yield depth + 1, option.name, None, None
            yield from told(arguments, seed, option, f"{below}.{option.name}", depth + 2)


def config(arguments: Arguments, model: str, seed: int) -> dict[str, Any]:
    """The same as a tree for JSON: CmdStan's `save_cmdstan_config`."""
    major, minor = STAN_VERSION.split(".")
    return {
        "stan_major_version": major,
        "stan_minor_version": minor,
        "stan_patch_version": STAN_PATCH,
        "model_name": model,
        "start_datetime": _now(),
        **_record(arguments, seed, TREE, ""),
        "mpi_enabled": False,
        "stanc_version": f"ulam {ulam_version()}",
    }


def _record(arguments: Arguments, seed: int, node: Argument, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for member in members(node):
        below = f"{path}.{member.name}" if path else member.name
        if isinstance(member, ArgumentGroup):
            found[member.name] = _record(arguments, seed, member, below)
            continue
        value = arguments[below]
        if isinstance(member, ArgumentChoice):
            option = member.option(value)
            assert option is not None
            inside = _record(arguments, seed, option, f"{below}.{value}")
            found[member.name] = {"value": value, value: inside}
        else:
            found[member.name] = seed if below == SEED and value == member.default else value
    return found


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def numbered_paths(file: str, count: int, first: int = 1, tag: str = "", suffix: str = "") -> list[str]:
    """The files of several chains or paths: `_1` and so on before the suffix; of one, the file itself.

    `tag` comes before the number, `suffix` in place of the file's own, which is `.csv` if it has none.
    """
    stem, own = os.path.splitext(file)
    suffix = suffix or own or ".csv"
    return [f"{stem}{tag}{f'_{first + k}' if count > 1 else ''}{suffix}" for k in range(count)]


def given_paths(file: str, count: int, first: int) -> list[str]:
    """The files that are read for several chains: those with numbers if the first of them is there, else the file."""
    numbered = numbered_paths(file, count, first)
    return numbered if count > 1 and os.path.exists(numbered[0]) else [file] * count
