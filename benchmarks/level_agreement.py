"""Levels against each other on public programs, with data of many rows, of rows that repeat, and of hardly any.

    python benchmarks/level_agreement.py --programs TABLE.tsv --checkouts DIR [--extracted DIR] [--levels 3 4]
        [--seconds 240] [--only TEXT ...] [--shard 1/4] [--results FILE]
    python benchmarks/level_agreement.py --posteriordb DIR [...]

TABLE.tsv and DIR are those of `public_programs.py`: such programs get random data of each extent in `EXTENTS`. With a
checkout of posteriordb it is its posteriors, whose data keep their sizes and have rows drawn from themselves
(`RESAMPLED`), so that some repeat and groups lose theirs. Layouts of the data, branches that loops leave and the choice
between versions of a loop depend on how many rows there are and how many of them are equal. Programs are evaluated at
level 0 and at the levels asked for, at points near zero and far from it.

Levels agree if all give numbers, the density relative to what is above 1 and the gradient to its largest entry within
what `POINTS` says, or errors (the text may name another cause where several terms fail), or the same special value.
The exit status is 1 if levels differ.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from posteriordb import Posterior, posteriors
from public_programs import NAME, difference
from public_sources import PublicProgram, Repositories
from random_data import Array, Extent, NoData, random_data
from sweeps import add_options, in_child, report_differences, sweep

import ulam
from ulam.runtime.compiler import load_stages
from ulam.runtime.named_text import NamedText

FAR = 0.05
POINTS = ((0.1, 1e-8), (0.5, 1e-8), (1.0, 1e-8), (30.0, FAR))
"""How large unconstrained parameters are, and how far levels may differ there. At 30 what has bounds is so close to
them that its distance from them has few digits, and which ones, is chance of rounding; a matrix that is singular but
for rounding may be refused or have a density of 0."""
EXTENTS = {
    "rows": Extent(20, 60),
    "repeated rows": Extent(30, 60, distinct=5),
    "equal rows": Extent(8, 20, distinct=1),
    "special values": Extent(20, 40, special=True),
    "special values, repeated rows": Extent(20, 40, distinct=5, special=True),
    "one": Extent(1, 1),
    "none": Extent(0, 1),
}
RESAMPLED: dict[str, int | None] = {"drawn rows": None, "five rows": 5, "one row": 1}
"""How many different rows of posteriordb's data are drawn from."""
ATTEMPTS = 4
"""Data that a program may refuse, of an extent, before it goes without."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=Path, metavar="TABLE.tsv")
    parser.add_argument("--checkouts", type=Path, metavar="DIR", help="bare repositories")
    parser.add_argument("--posteriordb", type=Path, metavar="DIR", help="a checkout")
    parser.add_argument("--extracted", type=Path, metavar="DIR", help="their files, kept for the next run")
    parser.add_argument("--levels", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--seconds", type=float, default=240, help="CPU time that a program may take")
    add_options(parser)
    options = parser.parse_args(argv)
    load_stages()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["ULAM_CACHE_DIR"] = os.path.join(temporary, "cache")
        if options.posteriordb is not None:
            found = {posterior.name: posterior for posterior in posteriors(options.posteriordb)}
            rows = sweep(list(found), options, lambda name: examined(lambda: resampled(found[name]), options))
        elif options.programs is not None and options.checkouts is not None:
            with options.programs.open(encoding="utf-8", newline="") as file:
                names = [row["program"] for row in csv.DictReader(file, delimiter="\t")]
            repositories = Repositories(options.checkouts, options.extracted or Path(temporary))
            rows = sweep(names, options, lambda name: examined(lambda: generated(repositories.program(name)), options))
        else:
            parser.error("expected --programs and --checkouts, or --posteriordb")
    return report(rows)


class Case(NamedTuple):
    """A program, and data by what they are: for each of `extents`, attempts one after the other."""

    code: str
    folders: tuple[str, ...]
    extents: Sequence[str]
    data: Callable[[str, int], dict[str, Any]]
    """Of an extent and an attempt; raises NoData."""


def generated(program: PublicProgram) -> Case:
    """With random data."""
    make = partial(random_data, program.code, NAME, program.folders)
    return Case(program.code, program.folders, list(EXTENTS), lambda extent, attempt: make(attempt, EXTENTS[extent]))


def resampled(posterior: Posterior) -> Case:
    """With its data, rows drawn from themselves."""
    data = json.loads(posterior.data)

    def drawn(extent: str, attempt: int) -> dict[str, Any]:
        rng = np.random.default_rng(attempt)
        rows: dict[int, list[int]] = {}
        for value in data.values():
            if isinstance(value, list) and (n := len(value)) > 4:
                rows.setdefault(n, rng.integers(0, RESAMPLED[extent] or n, size=n).tolist())
        return {
            name: [value[k] for k in rows[len(value)]] if isinstance(value, list) and len(value) in rows else value
            for name, value in data.items()
        }

    return Case(posterior.code, (), list(RESAMPLED), drawn)


def examined(make: Callable[[], Case], options: argparse.Namespace) -> dict[str, Any]:
    """What became of a program: `problem`, or `extents` with how many points were compared, and `differences`."""
    try:
        case = make()
    except FileNotFoundError as error:
        return {"problem": f"not found: {error}"}
    outcome = in_child(lambda: compared(case, options.levels), options.seconds)
    return {"seconds": round(outcome.seconds, 2), **(outcome.answer or {"problem": outcome.problem})}


def compared(case: Case, levels: Sequence[int]) -> dict[str, Any]:
    """In a child, which prints nothing: each extent at all levels."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    text = NamedText(case.code, NAME)
    compiled = {level: ulam.StanProgram(text, opt_level=level, include_paths=case.folders) for level in (0, *levels)}
    extents: dict[str, int] = {}
    differences: list[str] = []
    for extent in case.extents:
        for attempt in range(ATTEMPTS):
            try:
                data = case.data(extent, attempt)
            except NoData:
                continue
            found = at_data(compiled, data, f"{extent}, data {attempt}", differences)
            if found:
                extents[extent] = found
                break
    return {"extents": extents, "differences": differences}


def at_data(compiled: dict[int, Any], data: dict[str, Any], where: str, differences: list[str]) -> int:
    """Points compared with some data, 0 if all levels refuse them; adds to `differences`."""
    models = {level: bound(stan_program, data) for level, stan_program in compiled.items()}
    reference = models.pop(0)
    for level, model in models.items():
        if isinstance(reference, str) != isinstance(model, str):
            differences.append(f"{where}, level {level}: {text_of(model)} for {text_of(reference)}")
    if isinstance(reference, str) or any(isinstance(model, str) for model in models.values()):
        return 0
    n_finite = 0
    for number, (scale, tolerance) in enumerate(POINTS):
        theta = scale * np.sin(1.7 * np.arange(1, reference.param_unc_num() + 1) + 0.9 * number)
        expected = outcome_of(reference, theta)
        n_finite += not isinstance(expected, str) and math.isfinite(expected[0])
        for level, model in models.items():
            told = disagreement(outcome_of(model, theta), expected, tolerance)
            if told:
                differences.append(f"{where}, level {level}, point {number}: {told}")
    return n_finite


def bound(program: Any, data: dict[str, Any]) -> Any:
    """The model, or the text of the error."""
    try:
        return program(data)
    except (ulam.UlamError, ValueError) as error:
        return str(error) or type(error).__name__


def text_of(model: Any) -> str:
    return model[:120] if isinstance(model, str) else "a model"


def outcome_of(model: Any, theta: Array) -> tuple[float, Array] | str:
    """Density and gradient, or the text of the error."""
    try:
        value, gradient = model.log_density_gradient(theta)
    except ulam.UlamError as error:
        return str(error) or type(error).__name__
    return float(value), np.array(gradient)


def disagreement(found: tuple[float, Array] | str, expected: tuple[float, Array] | str, tolerance: float) -> str:
    """What differs, or nothing."""
    if isinstance(found, str) or isinstance(expected, str):
        refused = [isinstance(x, str) or (tolerance >= FAR and x[0] == -math.inf) for x in (found, expected)]
        if all(refused):
            return ""
        told, other = (x[:100] if isinstance(x, str) else f"{x[0]:g}" for x in (found, expected))
        return f"{told} for {other}"
    value = difference([found[0]], [expected[0]])
    if not math.isfinite(expected[0]):  # what a gradient is there, nobody asks
        return f"{found[0]:g} for {expected[0]:g}" if value else ""
    gradient = difference(found[1].tolist(), expected[1].tolist())
    worst = max(value, gradient)
    return f"value {value:.1e} (of {expected[0]:.6g}), gradient {gradient:.1e}" if worst > tolerance else ""


def report(rows: Sequence[dict[str, Any]]) -> int:
    """Prints what was found; 1 if levels differ."""
    extents = Counter(extent for row in rows for extent in row.get("extents", ()))
    points = sum(sum(row.get("extents", {}).values()) for row in rows)
    print(f"{len(rows)} programs, {points} points; programs with data of each extent: {dict(extents)}")
    return report_differences(rows)


if __name__ == "__main__":
    sys.exit(main())
