"""One run of a method: the model, the arguments, and what all methods do alike."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ulam.runtime.cmdstan_csv import CsvForm, comment
from ulam.runtime.output_files import check_writable
from ulam.tools.cmdstan.arguments import Arguments
from ulam.tools.cmdstan.parser import CommandLineError
from ulam.tools.cmdstan.r_dump import values_file
from ulam.tools.cmdstan.settings import SEED, about_file, config, given_paths, numbered_paths, told

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.named_text import NamedText

_REASON = re.compile(r" +(\d+ of \d+): (.*)")
"""A line of the table of reasons (`FailureTally.table`)."""

THREADS_VARIABLE = "STAN_NUM_THREADS"


VERSION_VARIABLE = "ULAM_CMDSTAN_VERSION"
NEWER_COLUMNS = {"converged__": (2, 37), "path__": (2, 37)}
"""Columns that versions of CmdStan before these do not write, for clients that were written then."""


def newer_columns() -> tuple[str, ...]:
    """Columns that are to be left out: those that the version in the environment, if there is one, does not have."""
    found = re.match(r"(\d+)\.(\d+)", os.environ.get(VERSION_VARIABLE, ""))
    if found is None:
        return ()
    version = int(found[1]), int(found[2])
    return tuple(name for name, since in NEWER_COLUMNS.items() if version < since)


def time_seed() -> int:
    """The seed of a run that was given none."""
    return time.time_ns() // 1_000_000 % (1 << 32)


@dataclass
class MethodCall:
    """What a method works with."""

    source: str | os.PathLike[str] | NamedText
    arguments: Arguments
    options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Further ones of `StanModel`."""
    seed: int = field(default_factory=time_seed)

    def __post_init__(self) -> None:
        if self.arguments[SEED] >= 0:
            self.seed = self.arguments[SEED]

    # ------------------------------------------------------------ what was asked for

    @property
    def first(self) -> int:
        """The number of the first chain."""
        return self.arguments["id"]

    @property
    def refresh(self) -> int:
        return self.arguments["output.refresh"]

    @property
    def output(self) -> str:
        """The name of the file of results, before numbers are added."""
        return self.arguments["output.file"]

    @property
    def digits(self) -> int | None:
        """Significant digits of numbers in files; None: all that they need."""
        digits = self.arguments["output.sig_figs"]
        return None if digits < 0 else digits

    @property
    def threads(self) -> int:
        """How many chains or paths run at a time."""
        threads = self.arguments["num_threads"]
        if "num_threads" not in self.arguments.given and (text := os.environ.get(THREADS_VARIABLE)):
            if not text.lstrip("-").isdecimal() or not (int(text) > 0 or int(text) == -1):
                raise CommandLineError(f"{THREADS_VARIABLE} must be a positive number or -1, found '{text}'")
            threads = int(text)
        return (os.cpu_count() or 1) if threads == -1 else threads

    def init(self, count: int = 1) -> Any:
        """Where chains or paths begin: what `optimize` takes, or a list of it."""
        text = self.arguments["init"]
        try:
            return float(text)
        except ValueError:
            paths = given_paths(text, count, self.first)
            values = {path: values_file(path) for path in paths}
            return [values[path] for path in paths] if len(values) > 1 else values[paths[0]]

    # ------------------------------------------------------------ what is made of it

    @cached_property
    def model(self) -> StanModel:
        """The model with its data."""
        from ulam.runtime.model import StanModel

        data = self.arguments["data.file"]
        return StanModel(self.source, values_file(data) if data else None, seed=self.seed, **self.options)

    def announce(self) -> None:
        """Prints the arguments."""
        lines = map(comment, told(self.arguments, self.seed))
        sys.stdout.write("".join(line.removeprefix("# ") for line in lines) + "\n")
        sys.stdout.flush()

    def files(self, count: int = 1, tag: str = "", suffix: str = "") -> list[str]:
        """The files of so many chains or paths, which can be written, and are none that are read."""
        paths = numbered_paths(self.output, count, self.first, tag, suffix)
        for path in paths:
            check_writable(path)
            self._keep_inputs(path)
        return paths

    def _keep_inputs(self, path: str) -> None:
        for name, source in (("program", str(self.source)), ("data", self.arguments["data.file"]),
                             ("init", self.arguments["init"])):  # fmt: skip
            if os.path.isfile(source):
                self.refuse_input(source, path, name)

    def diagnostic_files(self, count: int = 1, suffix: str = "") -> list[str]:
        """The files of `diagnostic_file`, if it is given."""
        file = self.arguments["output.diagnostic_file"]
        if file and not suffix and os.path.realpath(file) == os.path.realpath(self.output):
            raise CommandLineError(f"Filename conflict, diagnostic_file {file} and output file names are identical.")
        return numbered_paths(file, count, self.first, suffix=suffix) if file else []

    def form(self) -> CsvForm:
        """What CSV files begin with."""
        return CsvForm(about_file(self.arguments, self.model.name(), self.seed), self.digits, newer_columns())

    def write_config(self) -> None:
        """The file that `save_cmdstan_config` asks for."""
        if self.arguments["output.save_cmdstan_config"]:
            self.write_json("_config", config(self.arguments, self.model.name(), self.seed))

    def write_json(self, tag: str, record: Any, count: int = 1, which: int = 0) -> None:
        """A JSON file beside that of results."""
        write_json(numbered_paths(self.output, count, self.first, tag, ".json")[which], record)

    def refuse_input(self, source: str, path: str, name: str) -> None:
        """A file that is read is not written."""
        if os.path.exists(path) and os.path.samefile(source, path):
            raise CommandLineError(
                f"Filename conflict, {name} file {source} and output file names are identical, must be different."
            )

    @contextmanager
    def executor(self, count: int) -> Iterator[Any]:
        """Threads for so many chains."""
        with ThreadPoolExecutor(min(self.threads, count)) as threads:
            yield threads

    def write_profile(self) -> None:
        """What the program's profile statements have recorded, if it has any."""
        profiler, path = self.model.profiler, self.arguments["output.profile_file"]
        if profiler is not None and path and profiler.rows():
            profiler.to_csv(path, columns="cmdstan")


def say(lines: str | Iterable[str]) -> None:
    """Lines on the console."""
    print(*([lines] if isinstance(lines, str) else lines), sep="\n", flush=True)


def write_json(path: str, record: Any) -> None:
    """A whole JSON file."""
    from ulam.runtime.json_text import json_page
    from ulam.runtime.output_files import write_text

    write_text(path, json_page(record))


def check_readable(path: str) -> None:
    """Whether there is such a file. Raises OSError."""
    with open(path, "rb"):
        pass


def informed(notes: Sequence[str]) -> None:
    """What there is to know about a run. Reasons why points were rejected begin as clients look for them."""
    for note in notes:
        first, *rest = note.splitlines()
        say(f"Informational Message: {first}")
        for line in rest:
            say(as_clients_look(line))


def as_clients_look(line: str) -> str:
    """A line of what is told; of a reason of a table, in the words that clients look for."""
    reason = _REASON.fullmatch(line)
    return line if reason is None else f"Exception: {reason[2]} ({reason[1]})"
