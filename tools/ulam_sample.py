"""`ulam sample`: draws from the posterior; prints their summary and what is wrong with them, writes CSV, JSON, a fit.

The summary goes to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import json
import os
import sys
import warnings
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.data import INITIAL_VALUES, read_data
from ulam.runtime.errors import DataError, SamplingWarning
from ulam.runtime.named_text import NamedText
from ulam.runtime.output_files import check_writable
from ulam.runtime.parallel_jobs import INTERRUPT
from ulam.runtime.sampling.chain_csv import chain_path
from ulam.runtime.sampling.fit import SampleFit
from ulam.runtime.sampling.report import print_fit
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK, EXIT_TIME_LIMIT, UsageError, interrupted
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import ModelCommand, Text, initial_values

SO_FAR = "the draws so far are shown"


@dataclass(kw_only=True)
class SampleCommand(ModelCommand):
    """The arguments of the command; options that are None were not given."""

    chains: int
    warmup: int
    draws: int
    init: Text | None
    thin: int
    sampler: str
    target_accept: float
    max_depth: int
    integration_time: float | None
    metric: str
    step_size: float | None
    step_size_jitter: float
    adapt: list[str] | None
    save_warmup: bool
    keep: bool
    jobs: int | None
    progress: bool
    output: Path | None
    save: Path | None
    json: str | None
    rows: int

    def __post_init__(self) -> None:
        self.inits = self._inits()
        self.adaptation = _adaptation(self.adapt or [])
        if self.output is not None and self.chains > 1 and is_standard_output(self.output):
            raise UsageError("--output: standard output takes one chain; give --chains 1, or the name of a file")
        for path in self._chain_files():
            check_writable(path)

    def run(self) -> int:
        options: dict[str, Any] = {
            "chains": self.chains, "warmup": self.warmup, "draws": self.draws, "seed": self.seed, "init": self.inits,
            "thin": self.thin, "target_accept": self.target_accept, "max_depth": self.max_depth,
            "metric": _saved_fit(self.metric) or self.metric,
            "step_size": self.step_size, "step_size_jitter": self.step_size_jitter, "adapt": self.adaptation,
            "integration_time": self.integration_time, "save_warmup": self.save_warmup, "keep": self.keep,
            "jobs": self.jobs, "progress": self.progress, "output": self.output, "sampler": self.sampler,
        }  # fmt: skip
        try:
            model = self.loaded()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SamplingWarning)  # the notes say the same
                fit = model.sample(**options)
        except ValueError as error:
            if isinstance(error, RuntimeError):
                raise
            raise UsageError(str(error)) from None
        return self._report(fit)

    def _inits(self) -> Any:
        """The argument `init` of `sample`. What is wrong with values is said at once."""
        given = initial_values(self.init)
        if given is None:
            return 2
        if isinstance(given, int | float) or given == "pathfinder":
            return given
        if (each := _list_of_values(given)) is not None:
            return each
        if (fit := _saved_fit(given)) is not None:
            return fit
        read_data(given, INITIAL_VALUES)
        return given

    def _chain_files(self) -> list[Path]:
        """The files of `--output`."""
        return [] if self.output is None else [chain_path(self.output, k + 1, self.chains) for k in range(self.chains)]

    def _report(self, fit: SampleFit) -> int:
        """Shows and writes the result whatever comes of it; the exit status says how it ended."""
        printed = is_standard_output(self.json)
        told = sys.stderr if printed or is_standard_output(self.output) else sys.stdout
        if printed:
            sys.stdout.write(fit.to_json())
        else:
            print_fit(fit, self.rows or None, told)
        for note in fit.notes:
            tell("warning", note)
        written = self._chain_files()
        for path, write in ((self.json, fit.to_json), (self.save, fit.save)):
            if path is not None and not (printed and path is self.json):
                write(path)
                written.append(Path(path))
        for path in written:
            print(f"written  {escaped(str(path))}", file=told)
        if not fit.ended:
            return EXIT_OK
        if fit.ended == INTERRUPT:
            return interrupted("ulam", SO_FAR)
        tell("error", f"the time limit was reached; {SO_FAR}")
        return EXIT_TIME_LIMIT


def _saved_fit(given: Text) -> SampleFit | None:
    """The fit in a file that `--save` has written; None if it is anything else."""
    if not isinstance(given, str) or not os.path.isfile(given) or not zipfile.is_zipfile(given):
        return None
    from ulam.runtime.sampling.loading import load

    return load(given)


def _list_of_values(given: Text) -> list[Any] | None:
    """JSON text with an array of objects: values for each chain. None if it is anything else."""
    text = given.text if isinstance(given, NamedText) else given
    if not text.lstrip().startswith("["):
        return None
    name = str(given) if isinstance(given, NamedText) else "--init"
    try:
        values = json.loads(text)
    except ValueError as error:
        raise DataError([f"{name}: not valid JSON: {error}"]) from None
    if not all(isinstance(entry, dict) for entry in values):
        raise DataError([f"{name}: expected an array of objects, with the values of each chain"])
    return values


def _adaptation(given: list[str]) -> dict[str, float] | None:
    """`NAME=VALUE` several times as a mapping."""
    found: dict[str, float] = {}
    for entry in given:
        name, equals, value = entry.partition("=")
        try:
            number = float(value)
        except ValueError:
            equals = ""
            number = 0.0
        if not equals:
            raise UsageError(f"--adapt: give NAME=VALUE, as in --adapt window=50, found '{entry}'")
        found[name.strip().replace("-", "_")] = int(number) if number.is_integer() else number
    return found or None
