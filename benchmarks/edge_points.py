"""Levels against each other with parameters exactly at borders: 0, 1, -0, infinities, and where exponentials end.

    python benchmarks/edge_points.py --posteriordb DIR [--levels 3 4] [--seconds 240] [--only TEXT ...] [--shard 1/4]
        [--results FILE]
    python benchmarks/edge_points.py --programs FOLDER [...]

Of each program, those of posteriordb with their data or all `.stan` files of a folder with those beside them, and both
with random data of few and of no rows, each unconstrained parameter in turn is put at each of `BORDERS`, up to `MOST`
of them, the others near zero; then all at once. Where level 0 has a finite density, the other levels have it to
`TOLERANCE`, and where it has a finite slope they have it, relative to the largest; what is NaN or infinite at level 0
is not asked for. Rejections are compared as `level_agreement.py` does. The exit status is 1 if levels differ.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from level_agreement import bound, outcome_of, text_of
from posteriordb import posteriors
from random_data import Array, Extent, NoData, random_data
from sweeps import add_options, in_child, report_differences, sweep

import ulam
from ulam.runtime.compiler import load_stages
from ulam.runtime.named_text import NamedText

BORDERS = (0.0, -0.0, 1.0, -1.0, 40.0, -40.0, 709.5, 720.0, -720.0, -750.0, 1e300, -1e300, math.inf, -math.inf)
"""Of unconstrained parameters: probabilities of 0 and 1 and scales of 0 and infinity come from those far out."""
TOLERANCE = 1e-7
MOST = 16
"""Parameters of a program that are put at borders one by one."""
EXTENTS = {"three": Extent(3, 4), "none": Extent(0, 0), "none or one": Extent(0, 1)}
ATTEMPTS = 3
"""Random data that a program may refuse, of an extent, before it goes without."""
LARGEST_SHOWN = 4


class Case(NamedTuple):
    """A program and the data that come with it, if any do."""

    code: str
    data: str | None


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--posteriordb", type=Path, metavar="DIR", help="a checkout")
    parser.add_argument("--programs", type=Path, metavar="FOLDER", help="files of programs, with NAME.json as data")
    parser.add_argument("--levels", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--seconds", type=float, default=240, help="CPU time that a program may take")
    add_options(parser)
    options = parser.parse_args(argv)
    if options.posteriordb is not None:
        cases = {posterior.name: Case(posterior.code, posterior.data) for posterior in posteriors(options.posteriordb)}
    elif options.programs is not None:
        cases = {path.stem: _of_file(path) for path in sorted(options.programs.glob("**/*.stan"))}
    else:
        parser.error("expected --posteriordb or --programs")
    load_stages()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["ULAM_CACHE_DIR"] = os.path.join(temporary, "cache")
        rows = sweep(list(cases), options, lambda name: examined(cases[name], options))
    return report(rows)


def _of_file(path: Path) -> Case:
    data = path.with_suffix(".json")
    return Case(path.read_text(encoding="utf-8"), data.read_text(encoding="utf-8") if data.exists() else None)


def examined(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """What became of a program: `problem`, or how many `points` were finite at level 0, and `differences`."""
    outcome = in_child(lambda: compared(case, options.levels), options.seconds)
    return {"seconds": round(outcome.seconds, 2), **(outcome.answer or {"problem": outcome.problem})}


def compared(case: Case, levels: Sequence[int]) -> dict[str, Any]:
    """In a child, which prints nothing: all data at all levels."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    text = NamedText(case.code, "model.stan")
    compiled = {level: ulam.StanProgram(text, opt_level=level) for level in (0, *levels)}
    differences: list[str] = []
    points = 0
    for where, attempts in _data_of(case):
        for data in attempts:
            models = {level: bound(program, data) for level, program in compiled.items()}
            if any(isinstance(model, str) for model in models.values()):
                if len({isinstance(model, str) for model in models.values()}) > 1:
                    differences.append(f"{where}: {', '.join(f'{k} {text_of(model)}' for k, model in models.items())}")
                continue
            points += at_borders(models, where, differences)
            break
    return {"points": points, "differences": differences}


def _data_of(case: Case) -> Iterator[tuple[str, Iterator[Any]]]:
    """What data are, and attempts at such data."""
    if case.data is not None:
        yield "own data", iter([json.loads(case.data)])
    for name, extent in EXTENTS.items():
        yield name, _random(case.code, extent)


def _random(code: str, extent: Extent) -> Iterator[Any]:
    for attempt in range(ATTEMPTS):
        try:
            yield random_data(code, "model.stan", (), attempt, extent)
        except NoData:
            continue


def border_points(count: int) -> Iterator[tuple[str, Array]]:
    """Points of so many parameters, and what they are."""
    near = 0.1 * np.sin(1.7 * np.arange(1, count + 1))
    for border in BORDERS:
        for k in sorted({round(x) for x in np.linspace(0, count - 1, min(MOST, count))}) if count else ():
            theta = near.copy()
            theta[k] = border
            yield f"parameter {k} at {border:g}", theta
        yield f"all at {border:g}", np.full(count, border)


def at_borders(models: dict[int, Any], where: str, differences: list[str]) -> int:
    """Points compared with some data; adds to `differences`."""
    reference, points = models[0], 0
    for point, theta in border_points(reference.param_unc_num()):
        expected = outcome_of(reference, theta)
        points += not isinstance(expected, str) and math.isfinite(expected[0])
        for level, model in models.items():
            told = "" if model is reference else disagreement(outcome_of(model, theta), expected)
            if told:
                differences.append(f"{where}, level {level}, {point}: {told}")
    return points


def disagreement(found: tuple[float, Array] | str, expected: tuple[float, Array] | str) -> str:
    """What differs where level 0 is finite, or nothing."""
    if isinstance(found, str) or isinstance(expected, str):
        if isinstance(found, str) and isinstance(expected, str):
            return ""
        told, other = (x[:100] if isinstance(x, str) else f"{x[0]:g}" for x in (found, expected))
        return f"{told} for {other}"
    value, other = found[0], expected[0]
    if not math.isfinite(other):
        same = value == other or math.isnan(other)
        return "" if same else f"{value:g} for {other:g}"
    if not abs(value - other) <= TOLERANCE * max(1.0, abs(other)):
        return f"{value:.12g} for {other:.12g}"
    finite = np.isfinite(expected[1])
    slopes, others = found[1][finite], expected[1][finite]
    with np.errstate(all="ignore"):
        largest = float(np.max(np.abs(others), initial=1.0))
        wrong = np.flatnonzero(~(np.abs(slopes - others) <= TOLERANCE * largest))
    if not wrong.size:
        return ""
    shown = ", ".join(f"{slopes[k]:g} for {others[k]:g}" for k in wrong[:LARGEST_SHOWN])
    return f"{wrong.size} slopes: {shown}"


def report(rows: Sequence[dict[str, Any]]) -> int:
    """Prints what was found; 1 if levels differ."""
    print(f"{len(rows)} programs, {sum(row.get('points', 0) for row in rows)} points with a finite density at level 0")
    return report_differences(rows)


if __name__ == "__main__":
    sys.exit(main())
