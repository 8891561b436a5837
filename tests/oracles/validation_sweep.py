"""Compares passes and levels with level 0 on random programs, and reduces what differs.

The command line is `benchmarks/translation_validation.py`.
"""

from __future__ import annotations

import argparse
import gc
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import program_generator
import structured_programs
from program_reducer import reduce_program
from translation_validation import ALL_UNITS, Subject, single_passes

from ulam.passes.pipelines import LEVELS

PROGRESS = 50  # programs between lines that say how far a run is


@dataclass
class Outcome:
    """What was found with the program of a seed."""

    seed: int
    counts: Counter[str] = field(default_factory=Counter)
    differences: list[tuple[str, str, str]] = field(default_factory=list)
    """Pipeline, differences, reduced program."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", type=int, default=100, help="how many programs")
    parser.add_argument("--structured", action="store_true", help="with complex numbers and tuples")
    parser.add_argument("--seed-base", type=int, default=0, help="the first program's seed")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--passes", default="", help="pipelines to try, separated by `;`, or names of passes by `,`")
    parser.add_argument("--levels", default="1,2,3,4", help="levels to try; empty for none")
    parser.add_argument("--reduce", type=float, default=60.0, metavar="SECONDS", help="time to reduce one program")
    parser.add_argument("--keep", type=Path, help="where reduced programs go")
    arguments = parser.parse_args(argv)
    pipelines = pipelines_of(arguments.passes, arguments.levels)
    seeds = range(arguments.seed_base, arguments.seed_base + arguments.programs)
    start = time.monotonic()
    total: Counter[str] = Counter()
    with ProcessPoolExecutor(arguments.jobs, initializer=gc.disable) as pool:
        runs = [pool.submit(partial(check, seed, pipelines, arguments.reduce, arguments.structured)) for seed in seeds]
        for run in as_completed(runs):
            outcome = run.result()
            total += outcome.counts
            if total["programs"] % PROGRESS == 0:
                print(f"{total['programs']} programs, {total['differences']} differences", file=sys.stderr, flush=True)
            for pipeline, text, program in outcome.differences:
                print(f"seed {outcome.seed}, {pipeline}:\n  {text}\n", flush=True)
                if arguments.keep is not None:
                    keep(arguments.keep, outcome.seed, pipeline, text, program)
    for name, count in sorted(total.items()):
        print(f"{count:7d}  {name}")
    print(f"{time.monotonic() - start:7.0f}  seconds")
    return 1 if total["differences"] else 0


def pipelines_of(passes: str, levels: str) -> list[str | int]:
    """The pipelines and levels that the command line asks for; all single passes if it names none."""
    chosen = passes.split(";") if ";" in passes or "{" in passes else passes.split(",")
    numbers = [int(level) for level in levels.split(",") if level]
    assert all(level in LEVELS for level in numbers)
    return [*(name.strip() for name in chosen if name.strip())] + numbers if passes else [*single_passes(), *numbers]


def check(seed: int, pipelines: Sequence[str | int], reduce_seconds: float, structured: bool = False) -> Outcome:
    """Compares the program of a seed under each pipeline."""
    gc.collect()  # cycles of the program before; a sweep does without the automatic ones, a tenth of its time
    outcome = Outcome(seed)
    programs = structured_programs if structured else program_generator
    text = programs.generate(seed)
    outcome.counts["programs"] += 1
    subject = Subject(text, programs.DATA, seed=seed)
    at_level_0 = subject.expected()
    failed = [event.error for event in at_level_0 if "CompileError" in event.error]
    if failed:
        outcome.counts["programs that do not compile at level 0"] += 1
        outcome.differences.append(("level 0", failed[0], text))
        return outcome
    outcome.counts["programs with errors at run time"] += any(event.error for event in at_level_0)
    for pipeline in pipelines:
        units = units_for(seed, pipeline)
        result = subject.compare(pipeline, units=units)
        outcome.counts["comparisons"] += 1
        outcome.counts["comparisons of changed modules"] += result.changed
        outcome.counts["discarded: hang on less than 1e-8"] += result.discarded
        if result.differences:
            outcome.counts["differences"] += 1
            outcome.counts[f"differences of {pipeline}"] += 1
            small = reduce_program(
                text, partial(_fails, seed, programs.DATA, pipeline, kind_of(result.differences[0])), reduce_seconds
            )
            outcome.differences.append((str(pipeline), result.differences[0], small))
    return outcome


def units_for(seed: int, pipeline: str | int) -> Sequence[str]:
    """All units at a level; for single passes gradients (with their value), by turns with and without constants."""
    if isinstance(pipeline, int):
        return ALL_UNITS
    return ("gradient_propto" if seed % 2 else "gradient_full", "constrain")


def kind_of(difference: str) -> str:
    """What sort of difference it is: the same after reducing, other numbers notwithstanding."""
    for kind in ("printed", "error", "random numbers", "gradient is", "log density is"):
        if f": {kind}" in difference or f" {kind} " in difference:
            return kind
    return re.sub(r"[\W\d].*", "", difference)


def _fails(seed: int, data: Mapping[str, Any], pipeline: str | int, kind: str, text: str) -> bool:
    try:
        subject = Subject(text, data, seed=seed)
        units = units_for(seed, pipeline)
        if any("CompileError" in event.error for event in subject.expected(units)):
            return False
        return any(kind_of(found) == kind for found in subject.compare(pipeline, units=units).differences)
    except Exception:  # does not compile
        return False


def keep(folder: Path, seed: int, pipeline: str, text: str, program: str) -> None:
    """Writes a reduced program."""
    name = re.sub(r"[^\w]+", "_", pipeline).strip("_")
    target = folder / name / f"seed_{seed}.stan"
    target.parent.mkdir(parents=True, exist_ok=True)
    comment = "".join(f"// {line}\n" for line in _lines(f"{pipeline}, seed {seed}: {text}"))
    target.write_text(comment + program)


def _lines(text: str) -> Iterator[str]:
    for line in text.splitlines():
        yield line[:400]
