"""`bin/stansummary` and `bin/print` of a CmdStan home: the table of chains' files, as text and as CSV."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from ulam.runtime.names import bracket_name
from ulam.runtime.output_files import write_text
from ulam.runtime.results import plain_table
from ulam.runtime.sampling.draw_statistics import Columns
from ulam.runtime.sampling.summary import QUANTILES, SummaryTable
from ulam.tools.cmdstan.chain_files import ReadChains
from ulam.tools.exits import EXIT_OK, UsageError

TITLES = {
    "mean": "Mean", "mcse": "MCSE", "sd": "StdDev", "mad": "MAD", "ess_bulk": "ESS_bulk", "ess_tail": "ESS_tail",
    "r_hat": "R_hat",
}  # fmt: skip
"""CmdStan's names of the columns; quantiles have their own."""

OPTIONS = {
    "percentiles": "p", "sig_figs": "s", "csv_filename": "c", "csv_file": "", "include_param": "i", "autocorr": "a",
    "help": "h",
}  # fmt: skip
"""Long names, and the short ones."""

_INDEX = re.compile(r"\.(\d+)")


@dataclass
class SummaryArguments:
    """The command line: quantiles as probabilities, digits, files."""

    quantiles: tuple[float, ...] = QUANTILES
    digits: int = 2
    csv: str = ""
    only: list[str] = field(default_factory=list[str])
    files: list[str] = field(default_factory=list[str])
    help: bool = False


def run(words: Sequence[str]) -> int:
    """The command; the exit status. Raises UsageError, DataError, OSError."""
    arguments = read_arguments(words)
    if arguments.help:
        print("Usage: stansummary [--percentiles=5,50,95] [--sig_figs=2] [--csv_filename=FILE] [--include_param=NAME] "
              "FILE.csv ...")  # fmt: skip
        return EXIT_OK
    if not arguments.files:
        raise UsageError("give the CSV files of a model's chains")
    chains = ReadChains(arguments.files)
    table = cmdstan_table(chains, _wanted(chains, arguments.only), arguments.quantiles)
    about = _about(chains)
    if arguments.csv:
        write_text(arguments.csv, _csv(table, arguments.digits) + "".join(f"# {line}\n" for line in about))
    print("\n".join(about), end="\n\n")
    header = ("", *map(_title, table.columns))
    rows = [(name, *cells) for name, cells in _rows(table, arguments.digits)]
    print(plain_table(header, rows))
    return EXIT_OK


def read_arguments(words: Sequence[str]) -> SummaryArguments:
    """Options as `--name=value`, `--name value` or `-n value`, and files."""
    found, rest = SummaryArguments(), list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            found.files.append(word)
            continue
        given, equals, value = word.lstrip("-").partition("=")
        name = next((long for long, short in OPTIONS.items() if given in (long, short) and given), None)
        if name is None:
            raise UsageError(f"unknown option '{word}'; known are {', '.join(f'--{each}' for each in OPTIONS)}")
        if name == "help":
            found.help = True
            continue
        if not equals:
            if not rest:
                raise UsageError(f"--{name}: give a value, as in --{name}=VALUE")
            value = rest.pop()
        _take(found, name, value.strip())
    return found


def _take(found: SummaryArguments, name: str, value: str) -> None:
    match name:
        case "percentiles":
            found.quantiles = _quantiles(value)
        case "sig_figs":
            if not value.isdecimal() or not 1 <= int(value) <= 18:
                raise UsageError(f"--sig_figs: give a number from 1 to 18, found '{value}'")
            found.digits = int(value)
        case "include_param":
            found.only.append(value)
        case "autocorr":
            raise UsageError("--autocorr is not there: ArviZ plots autocorrelations, of what cmdstanpy or ulam give it")
        case _:
            found.csv = value


def _quantiles(text: str) -> tuple[float, ...]:
    try:
        found = tuple(float(part) for part in text.split(",") if part.strip())
    except ValueError:
        found = (-1.0,)
    if any(not 0 <= value <= 100 for value in found):
        raise UsageError(f"--percentiles: give numbers from 0 to 100 with commas between them, found '{text}'")
    return tuple(value / 100 for value in found)


# ---------------------------------------------------------------- the table


NORMAL_MAD = 1.4826
"""What makes the median absolute deviation of normal draws their standard deviation, as R's `mad` has it."""


def cmdstan_table(chains: ReadChains, names: Sequence[str], quantiles: Sequence[float]) -> SummaryTable:
    """The table with CmdStan's conventions.

    Those of ulam are arviz-stats'. Here variances are of one draw less, MAD is as of normal draws, columns that never
    change have no sample size, and R-hat of one chain compares its halves.
    """
    table = chains.summary(names, quantiles)
    columns = {name: table.table[:, k] for k, name in enumerate(table.columns)}
    count = chains.n_chains * chains.n_draws
    for name in ("sd", "mcse"):
        columns[name] *= math.sqrt(count / max(count - 1, 1))
    columns["mad"] *= NORMAL_MAD
    constant = columns["sd"] == 0
    for name in ("mcse", "ess_bulk", "ess_tail"):
        columns[name][constant] = np.nan
    if chains.n_chains == 1:
        columns["r_hat"][:] = Columns(chains.of(names)).split_rhat
    columns["r_hat"][constant] = np.nan
    return table


def _wanted(chains: ReadChains, only: Sequence[str]) -> list[str]:
    """The columns that are asked for, those of a matrix row by row."""
    names = in_row_order(chains.columns)
    if not only:
        return names
    found = [name for name in names if name.split(".")[0] in only or bracket_name(name) in only]
    if not found:
        raise UsageError(f"--include_param: there is no parameter '{only[0]}'")
    return found


def in_row_order(names: Iterable[str]) -> list[str]:
    """Names with the elements of each container in the order of its rows; the files have that of its columns."""
    runs = groupby(names, key=lambda name: _INDEX.sub(".", name))
    return [
        name
        for _, run in runs
        for name in sorted(run, key=lambda name: tuple(int(index) for index in _INDEX.findall(name)))
    ]


def _rows(table: SummaryTable, digits: int) -> Iterable[tuple[str, list[str]]]:
    for name, row in zip(table.names, table.table.tolist(), strict=True):
        yield bracket_name(name), [f"{value:.{digits}g}" for value in row]


def _title(column: str) -> str:
    return TITLES.get(column, column)


def _csv(table: SummaryTable, digits: int) -> str:
    lines = [",".join(["name", *map(_title, table.columns)])]
    lines += [",".join([f'"{name}"', *cells]) for name, cells in _rows(table, digits)]
    return "\n".join(lines) + "\n"


def _about(chains: ReadChains) -> list[str]:
    """Whose draws these are, how many, and how long they took."""
    said = chains.first.settings
    lines = [
        f"Model {said.get('model', 'unknown')}, method {said.get('method', 'unknown')}",
        f"{chains.n_chains} chains of {chains.n_draws} draws",
    ]
    for phase, which in (("Warmup", 0), ("Sampling", 1)):
        seconds = [file.seconds[which] for file in chains.files]
        lines.append(f"{phase} took {', '.join(f'{each:.3g}' for each in seconds)} seconds, {sum(seconds):.3g} in all")
    return lines


