"""The sweep of `benchmarks/guard_pages.py`: random programs, the test programs and posteriordb under guard pages."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path

import guard_pages
import numpy as np
import structured_programs
from guarded_runs import Case, Outcome, RunOptions, run_case
from indexing_programs import indexing_program
from layout_programs import PROGRAMS
from runtime_builds import ROOT

import ulam


def random_cases(first: int, count: int) -> Iterator[tuple[Case, RunOptions]]:
    """Random programs; a fourth of them as code for the real runtime, an eighth with second derivatives."""
    for seed in range(first, first + count):
        program = indexing_program(seed)
        options = RunOptions(whole_lines=seed % 4 == 3, second=seed % 8 == 0, seed=seed)
        yield Case(f"seed {seed}", program.text, program.data), options


def structured_cases(first: int, count: int) -> Iterator[tuple[Case, RunOptions]]:
    """Random programs with complex numbers and tuples."""
    data = json.dumps(structured_programs.DATA)
    for seed in range(first, first + count):
        text = structured_programs.generate(seed)
        yield Case(f"structured seed {seed}", text, (data,)), RunOptions(whole_lines=seed % 4 == 3, seed=seed)


def layout_cases(first: int, count: int) -> Iterator[tuple[Case, RunOptions]]:
    """Random programs of sums over rows, of each kind by turns: tables of layouts, and rows where none is taken."""
    kinds = list(PROGRAMS)
    for seed in range(first, first + count):
        program, data = PROGRAMS[kinds[seed % len(kinds)]]
        options = RunOptions(whole_lines=seed // len(kinds) % 4 == 3, seed=seed)
        yield Case(f"{kinds[seed % len(kinds)]} seed {seed}", program(seed), (data(seed),)), options


def program_cases() -> Iterator[tuple[Case, RunOptions]]:
    """The programs of tests and examples, with their data where there are some, else with none."""
    folders = ("tests/regressions", "tests/filecheck", "examples")
    for path in sorted(path for folder in folders for path in (ROOT / folder).rglob("*.stan")):
        data = path.with_suffix(".json")
        given = (str(data) if data.exists() else None,)
        yield Case(str(path.relative_to(ROOT)), str(path), given), RunOptions(seconds=60)


def posterior_cases(folder: Path) -> Iterator[tuple[Case, RunOptions]]:
    """The posteriors of a checkout of posteriordb."""
    for posterior in import_module("posteriordb").posteriors(folder):  # of benchmarks/, from where this is run
        yield Case(posterior.name, str(posterior.model), (posterior.data,)), RunOptions(seconds=240)


def cases(arguments: argparse.Namespace) -> Iterator[tuple[Case, RunOptions]]:
    """What the options ask for."""
    yield from random_cases(arguments.seed_base, arguments.programs)
    yield from structured_cases(arguments.seed_base, arguments.structured)
    yield from layout_cases(arguments.seed_base, arguments.layouts)
    if arguments.test_programs:
        yield from program_cases()
    if arguments.posteriordb is not None:
        yield from posterior_cases(arguments.posteriordb)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=0, help="so many random programs")
    parser.add_argument("--structured", type=int, default=0, help="so many with complex numbers and tuples")
    parser.add_argument("--layouts", type=int, default=0, help="so many with sums over rows, that have layouts")
    parser.add_argument("--seed-base", type=int, default=0, help="the seed of the first")
    parser.add_argument("--test-programs", action="store_true", help="the programs of tests and examples")
    parser.add_argument("--posteriordb", type=Path, help="a checkout of posteriordb")
    parser.add_argument("--results", type=Path, help="a line for each program; those that have one are not run again")
    parser.add_argument("--seconds", type=float, help="begin no program after so many seconds")
    arguments = parser.parse_args(argv)
    done: dict[str, Outcome] = {}
    if arguments.results is not None and arguments.results.exists():
        for line in arguments.results.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            done[entry["name"]] = Outcome(**{**entry, "results": Counter(entry["results"])})
    guard_pages.use_guarded_runtime()
    smallest = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 1); }", cache=False)
    smallest.log_density_gradient(np.array([0.5]))
    started, outcomes = time.monotonic(), list(done.values())
    for case, options in cases(arguments):
        if case.name in done:
            continue
        if arguments.seconds is not None and time.monotonic() - started > arguments.seconds:
            break
        outcome = run_case(case, options)
        outcomes.append(outcome)
        if arguments.results is not None:
            with open(arguments.results, "a", encoding="utf-8") as file:
                file.write(outcome.to_json() + "\n")
        if not outcome.is_good:
            print(outcome.to_json(), flush=True)
    print(summary(outcomes))
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def summary(outcomes: Sequence[Outcome]) -> str:
    """What was run and seen, in a few lines."""
    results = sum((outcome.results for outcome in outcomes), Counter())
    kinds = ", ".join(f"{count} {kind}" for kind, count in results.most_common())
    found = {
        name: sum(len(getattr(outcome, name)) for outcome in outcomes)
        for name in ("faults", "uninitialized", "differences", "unexpected", "stopped")
    }
    blocks, unguarded = (sum(getattr(outcome, name) for outcome in outcomes) for name in ("blocks", "unguarded"))
    return (
        f"{len(outcomes)} programs, {sum(outcome.runs for outcome in outcomes)} runs: {kinds}\n"
        f"accesses outside: {found['faults']}; values that depend on memory's old contents: {found['uninitialized']}; "
        f"differences between levels: {found['differences']}; other errors than ulam's: {found['unexpected']}; "
        f"stopped for time: {found['stopped']}\n"
        f"{blocks} blocks, {unguarded} of them without guard pages"
    )


if __name__ == "__main__":
    sys.exit(main())
