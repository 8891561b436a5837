"""How long public Stan programs take to compile, in multiples of the median of an earlier version, in one run.

    python benchmarks/compile_public.py --programs TABLE.tsv --checkouts DIR [--extracted DIR] [--before PYTHON]
        [--allow TEXT=MULTIPLE ...] [--level 3] [--data] [--seconds 300] [--only TEXT ...] [--shard 1/4]
        [--results FILE]

TABLE.tsv has a column `program` (see `public_sources.py`), DIR bare repositories `OWNER+NAME/repo`. Of each program
transformed data, gradient, and transformed parameters with generated quantities are compiled, in a process of its own
that has imported the compiler: CPU time, time on the clock, and largest memory. PYTHON is that of an environment with
the earlier version, which compiles each program right before, for at most 20 s: a median does not notice.

With --data, programs whose data have switches are compiled as a user's are, for what these are in rstanarm's data for a
small model, or in random ones; for any data (`any data` behind the figure) where there are none that fit.

Judged are, in multiples of the median of the earlier version: median and 95th percentile, at most 5% more than there;
the 99th percentile, at most 6; and each program, at most 12, or what --allow says of names with TEXT. The exit status
is 1 if one is more. Without --before the median is that of this version, and only the last two are judged.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from public_sources import PublicProgram, Repositories
from random_data import NoData, random_data
from rstanarm import MAKERS
from sweeps import add_options, in_child, sweep

import ulam
from ulam.runtime.compiler import CompileOptions, Compiler, load_stages

if TYPE_CHECKING:
    from ulam.passes.known_data import KnownSwitches

UNITS = ("setup", "gradient_propto", "constrain")
TOLERANCE = 1.05
MOST_99 = 6.0
MOST = 12.0
SECONDS_BEFORE = 20.0
ATTEMPTS = 20
"""Random data that are tried for a program."""


def compiled(program: PublicProgram, level: int, switches: KnownSwitches | None) -> dict[str, Any]:
    """In a child: seconds of CPU and clock that the units take, all threads together, and MB."""
    as_models: dict[str, Any] = {} if switches is None else {"pieces": True}  # an earlier version may not know it
    options = CompileOptions(opt_level=level, include_paths=program.folders, **as_models)
    cpu, clock = time.process_time(), time.perf_counter()
    compiler = Compiler(program.code, Path(program.name).name, options)
    if switches is not None:
        compiler.metadata()
        compiler.specialize(switches)
    compiler.compile_all(UNITS)
    return {
        "cpu": time.process_time() - cpu,
        "clock": time.perf_counter() - clock,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "code": sum(len(compiler.unit(name)) for name in UNITS),
    }


def measured(
    program: PublicProgram, level: int, seconds: float, switches: KnownSwitches | None = None
) -> dict[str, Any]:
    """What compiling a program takes; `problem` if it does not compile, or takes more than `seconds`."""
    outcome = in_child(lambda: compiled(program, level, switches), seconds)
    return outcome.answer if outcome.answer is not None else {"problem": outcome.problem}


def switches_of(program: PublicProgram) -> KnownSwitches | bool:
    """What the switches of a program are in data for it; whether it has some, where no data are known."""
    from ulam.passes.known_data import KnownSwitches

    options = CompileOptions(include_paths=program.folders, pieces=True)
    metadata = Compiler(program.code, Path(program.name).name, options).metadata()
    if metadata["switches"] is None:
        return False
    found: dict[str, Any] | None = None
    for data in candidates(program):
        try:
            model = ulam.StanModel(program.code, data, include_paths=program.folders, opt_level=0)
        except ulam.UlamError:
            continue
        if (is_possible := has_finite_density(model)) or found is None:
            found = model.bound_values()
        if is_possible:
            break
    return True if found is None else KnownSwitches.of(metadata["switches"], found.get)


def has_finite_density(model: ulam.StanModel) -> bool:
    """Whether a log density is finite at one of a few points: random data may leave parameters no room."""
    rng = np.random.default_rng(20)
    for size in (0.0, 0.1, 0.5, 1.0, 2.0, 2.0):
        try:
            if math.isfinite(model.log_density(rng.normal(0, size, model.param_unc_num()))):
                return True
        except ulam.UlamError:
            continue
    return False


def candidates(program: PublicProgram) -> Iterator[dict[str, Any]]:
    """Data that may fit a program."""
    name = Path(program.name).name.partition(".")[0]
    if "/rstanarm/" in program.name and name in MAKERS:
        yield MAKERS[name](np.random.default_rng(20))
    for attempt in range(ATTEMPTS):
        try:
            yield random_data(program.code, "model.stan", program.folders, attempt)
        except NoData:
            continue


def worker() -> int:
    """Measures what comes on standard input, a JSON object a line, for a run of another version."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    load_stages()
    for line in sys.stdin:
        task = json.loads(line)
        program = PublicProgram(task["name"], task["code"], tuple(task["folders"]), None)
        answers.write(json.dumps(measured(program, task["level"], SECONDS_BEFORE)) + "\n")
    return 0


class Before:
    """The earlier version, in a process of its own."""

    def __init__(self, python: str) -> None:
        command, pipe = [python, __file__, "--worker"], subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def __call__(self, program: PublicProgram, level: int) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        task = {"name": program.name, "code": program.code, "folders": program.folders, "level": level}
        self._process.stdin.write(json.dumps(task) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def examined(
    name: str, repositories: Repositories, options: argparse.Namespace, before: Before | None
) -> dict[str, Any]:
    """A row of the table."""
    try:
        program = repositories.program(name)
    except FileNotFoundError as error:
        return {"problem": f"not found: {error}"}
    row: dict[str, Any] = {"before": before(program, options.level)} if before is not None else {}
    switches = switches_of(program) if options.data else False
    row["any data"] = switches is True
    return row | measured(program, options.level, options.seconds, None if isinstance(switches, bool) else switches)


def quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def report(rows: Sequence[dict[str, Any]], allowed: dict[str, float]) -> int:
    """Prints what was found; 1 if a bar is not reached."""
    good = [row for row in rows if "cpu" in row]
    for row in rows:
        if "cpu" not in row:
            print(f"{row['name']}: {row['problem']}")
    if not good:
        return 1
    ours = sorted(row["cpu"] for row in good)
    both = [row for row in good if "before" in row]
    theirs = sorted(row["before"].get("cpu", SECONDS_BEFORE) for row in both)
    unit = statistics.median(theirs or ours)
    failed = False
    print(f"{len(good)} programs; in multiples of {unit:.3f} s of CPU, the median{' before' if theirs else ''}")
    for label, share, bar in (("median", 0.5, None), ("95%", 0.95, None), ("99%", 0.99, MOST_99), ("largest", 1, None)):
        multiple = quantile(ours, share) / unit
        there = quantile(theirs, share) / unit if theirs else None
        limit = bar if bar is not None else TOLERANCE * there if there is not None and share < 1 else None
        missed = limit is not None and multiple > limit
        failed = failed or missed
        beside = "" if there is None else f", before {there:.2f}"
        print(f"  {label}: {multiple:.2f} ({multiple * unit:.2f} s{beside}){' MISSED' if missed else ''}")
    for row in sorted(good, key=lambda row: -row["cpu"]):
        multiple = row["cpu"] / unit
        if multiple < MOST_99:
            break
        bar = next((most for text, most in allowed.items() if text in row["name"]), MOST)
        missed = multiple > bar
        failed = failed or missed
        print(
            f"  {row['name']}: {multiple:.1f} ({row['cpu']:.2f} s of CPU, {row['clock']:.2f} s on the clock, "
            f"{row['memory']:.0f} MB, {row['code'] / 1000:.0f} kB of code)"
            f"{' any data' if row['any data'] else ''}{' MISSED' if missed else ''}"
        )
    return int(failed)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=Path, metavar="TABLE.tsv")
    parser.add_argument("--checkouts", type=Path, metavar="DIR", help="bare repositories")
    parser.add_argument("--extracted", type=Path, metavar="DIR", help="their files, kept for the next run")
    parser.add_argument("--before", metavar="PYTHON", help="one with an earlier version")
    parser.add_argument("--allow", nargs="*", default=[], metavar="TEXT=MULTIPLE", help="of programs with that name")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--data", action="store_true", help="programs that have switches are compiled for data")
    parser.add_argument("--seconds", type=float, default=300, help="CPU time that a program may take")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    add_options(parser)
    options = parser.parse_args(argv)
    if options.worker:
        return worker()
    if options.programs is None or options.checkouts is None:
        parser.error("--programs and --checkouts are needed")
    with options.programs.open(encoding="utf-8", newline="") as file:
        names = [row["program"] for row in csv.DictReader(file, delimiter="\t")]
    load_stages()
    before = None if options.before is None else Before(options.before)
    allowed = {text: float(most) for text, _, most in (part.rpartition("=") for part in options.allow)}
    with tempfile.TemporaryDirectory() as temporary:
        repositories = Repositories(options.checkouts, options.extracted or Path(temporary))
        rows = sweep(names, options, lambda name: examined(name, repositories, options, before))
    return report(rows, allowed)


if __name__ == "__main__":
    sys.exit(main())
