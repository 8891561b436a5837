"""Log densities and distribution functions of all univariate distributions in their tails, against extended precision.

    python benchmarks/tails.py [--only PREFIX] [--points N] [--seed S] [--state FILE] [--write]  (needs mpmath)

At 40 points each (tail_points.py), with the definitions of scalar_functions.py, scalar_distributions.py and
scalar_densities.py in 50 digits and more: a value v, and each partial derivative alike, may be off by
1e-10 (|v| + |x dv/dx|), for the argument x where that is largest. What is not is printed, and with `--write` becomes
the table in docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import mpmath as mp  # pyright: ignore[reportMissingImports]
import numpy as np
from scalar_accuracy import DIGITS, evaluate, exact, program
from scalar_densities import ROWS
from scalar_functions import Row
from tail_points import RECIPES, Point

from ulam.library.functions import named

BAR = 1e-10
DIGITS_ENOUGH = {"exp_mod_normal": 120}
"""At these points, where the table has more."""

DOCUMENT = Path(__file__).parents[1] / "docs" / "accuracy.md"
BEGIN, END = "<!-- begin: tails, written by benchmarks/tails.py -->\n", "<!-- end: tails -->"


def distribution(row: Row) -> str:
    """What the function is of; empty if it is not of a distribution."""
    name = named(row.name.removesuffix("_unnorm"))
    return name.stem if name.kind.is_probability else ""


def chosen(row: Row, count: int, seed: int) -> Iterator[tuple[Point, Any]]:
    """Points at which the definition has a finite value, with that and the partials."""
    stem = distribution(row)
    generator, found = Random(f"{stem} {seed}"), 0
    for _ in range(20 * count):
        if found == count:
            return
        point = RECIPES[stem](generator)
        try:
            truth = exact(row, tuple(mp.mpf(x) if i >= row.ints else x for i, x in enumerate(point)))
        except (ValueError, ArithmeticError, TypeError, AssertionError):
            continue
        if all(mp.isfinite(t) or mp.isnan(t) for t in truth):
            found += 1
            yield point, truth


def moved(row: Row, point: Point, k: int) -> float:
    """How much the k-th number changes for a change of an argument by its own size: the largest |x dv/dx|."""
    ints, reals = point[: row.ints], [mp.mpf(x) for x in point[row.ints :]]
    step = mp.mpf(10) ** -10
    sizes = [mp.mpf(0)]
    base = exact(row, (*ints, *reals))[k]
    for i, x in enumerate(reals):
        if x:
            others = list(reals)
            others[i] = x * (1 + step)
            try:
                sizes.append(abs(exact(row, (*ints, *others))[k] - base) / step)
            except (ValueError, ArithmeticError, TypeError):
                continue
    return float(max(s for s in sizes if not mp.isnan(s)))


def failures(row: Row, point: Point, found: Any, truth: Any) -> Iterator[tuple[str, float, str]]:
    """What is beyond the bar: value or partial, error by the bar's measure, text."""
    for k, t in enumerate(truth):
        if mp.isnan(t) or (abs(t) < 1e-300 and abs(found[k]) < 1e-300) or abs(t) > 1e300:
            continue
        error = float(abs(mp.mpf(found[k]) - t)) if np.isfinite(found[k]) else float("inf")
        if error <= BAR * float(abs(t)):
            continue
        measure = error / (float(abs(t)) + moved(row, point, k))
        if not measure <= BAR:
            yield "value" if k == 0 else f"partial {k}", measure, f"{found[k]!r}, exact {mp.nstr(t, 12)}"


Swept = tuple[int, list[str]]
"""The number of points of a function, and lines of the table for those that are excepted."""


def sweep(row: Row, options: argparse.Namespace) -> Swept:
    """One function at all its points, with what is wrong printed."""
    pairs = list(chosen(row, options.points, options.seed))
    points = [p for p, _ in pairs]
    bad = []
    for (point, truth), found in zip(pairs, evaluate(program([row]), 1, row, points, options.level), strict=True):
        shown = ", ".join(f"{v:.6g}" for v in point)
        if isinstance(found, str):
            bad.append((shown, [("value", float("inf"), found)]))
        elif problems := list(failures(row, point, found, truth)):
            bad.append((shown, problems))
    print(f"{row.name}: {len(bad)} of {len(points)}", flush=True)
    excepted = []
    for shown, problems in bad:
        for part, measure, text in problems:
            print(f"    ({shown}) {part}: {measure:.1e}; {text}", flush=True)
        worst = max(problems, key=lambda p: p[1])
        excepted.append(f"| {row.name} | {shown} | {worst[0]} | {worst[1]:.1e} |")
    return len(points), excepted


def read(state: Path | None) -> dict[str, Swept]:
    """What earlier runs with the same options have found, by function."""
    if state is None or not state.exists():
        return {}
    rows = map(json.loads, state.read_text().splitlines())
    return {name: (points, excepted) for name, points, excepted in rows}


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of functions begin so; several by commas")
    parser.add_argument("--points", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--level", type=int, default=1)
    parser.add_argument("--state", type=Path, help="file with what is done; read and written")
    parser.add_argument("--write", action="store_true", help="the table of the documentation")
    options = parser.parse_args()
    mp.mp.dps = DIGITS
    rows = [r for r in ROWS if distribution(r) in RECIPES]
    rows = [r for r in rows if r.name.startswith(tuple(options.only.split(",")))]
    rows = [replace(r, digits=DIGITS_ENOUGH.get(distribution(r), r.digits)) for r in rows]
    known = read(options.state)
    for row in rows:
        if row.name in known:
            continue
        known[row.name] = swept = sweep(row, options)
        if options.state:
            with options.state.open("a") as file:
                file.write(json.dumps([row.name, *swept]) + "\n")
    total = sum(known[row.name][0] for row in rows)
    excepted = [text for row in rows for text in known[row.name][1]]
    summary = f"{len(rows)} functions, {total} points; {len(excepted)} excepted ({100 * len(excepted) / total:.1f}%)"
    print(summary)
    if options.write:
        text = DOCUMENT.read_text()
        before, after = text.partition(BEGIN)[0], text.partition(END)[2]
        table = ["| function | arguments | worst part | error |", "|---|---|---|--:|", *excepted]
        DOCUMENT.write_text(f"{before}{BEGIN}\n{summary}.\n\n" + "\n".join(table) + f"\n\n{END}{after}")
    return len(excepted) > 0.02 * total


if __name__ == "__main__":
    sys.exit(main())
