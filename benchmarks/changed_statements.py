"""What a changed statement of a large program costs: its second compile, in parts of the first.

    python benchmarks/changed_statements.py [--programs TABLE.tsv --checkouts DIR] [--extracted DIR] [--lines 300]
        [--kinds NAME ...] [--changes 8] [--seed 1] [--data] [--only TEXT ...] [--results FILE]

Programs of the table (see `public_sources.py`) of so many lines and more, those that they include counted, and
generated ones of 1,000 lines of --kinds (`generated_programs.py`). Each is compiled with an empty cache: transformed
data, gradient, and what is computed for each draw; then again with a statement changed, another one each time, chosen
at random in functions, transformed parameters, model and generated quantities. Times are CPU time, each in a process of
its own that has imported the compiler. With --data, programs that have switches are compiled for what these are in data
that fit, as by `compile_public.py`; a change may be to what data leave out.

Told are the median and the largest part of each program. The exit status is 1 if the median of one of 1,000 lines and
more is above 0.4.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from compile_public import UNITS, switches_of
from generated_programs import KINDS, program_of
from public_sources import INCLUDED, PublicProgram, Repositories
from sweeps import add_options, in_child, sweep

from ulam.frontend import syntax
from ulam.frontend.check.program import check_program
from ulam.frontend.diagnostics import DiagnosticError
from ulam.frontend.parse.program import parse_program
from ulam.frontend.source import Source
from ulam.passes.known_data import KnownSwitches
from ulam.runtime.cached_compiler import CachedCompiler, with_includes
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import load_stages

MOST = 0.4
LONG = 1000
SECONDS = 300.0
FILENAME = "model.stan"


def changes(code: str) -> Iterator[str]:
    """The program with one statement changed: all there are, in the order of the text."""
    program = parse_program(Source(code, FILENAME))
    bodies = [function.body for function in program.functions]
    bodies += [program.transformed_parameters, program.model, program.generated_quantities]
    for body in bodies:
        for statement in syntax.nodes_below(body, syntax.Statement) if body is not None else ():
            match statement:
                case syntax.Tilde(span=span):
                    yield f"{code[: span.end]} target += 0.25;{code[span.end :]}"
                case (
                    syntax.Assignment(value=syntax.Expression(span=span))
                    | syntax.TargetIncrement(value=syntax.Expression(span=span))
                    | syntax.Declaration(initial=syntax.Expression(span=span))
                ):
                    yield f"{code[: span.start]}1 * ({code[span.start : span.end]}){code[span.end :]}"
                case _:
                    pass


def is_valid(code: str) -> bool:
    source = Source(code, FILENAME)
    try:
        check_program(parse_program(source), source)
    except DiagnosticError:
        return False
    return True


def compiled(code: str, switches: KnownSwitches | None) -> float:
    """In a child: CPU seconds of all threads, with what the cache has."""
    compiler = CachedCompiler(code, FILENAME, CompileOptions(pieces=True))
    begun = time.process_time()
    if switches is not None:
        compiler.metadata()
        compiler.specialize(switches)
    compiler.compile_all(UNITS)
    return time.process_time() - begun


def examined(name: str, program: PublicProgram, asked: argparse.Namespace) -> dict[str, Any]:
    """A row of the table: seconds of the first compile, and of those with other statements changed."""
    code = INCLUDED.sub("", with_includes(program.code, FILENAME, program.folders))
    found = {"lines": code.count("\n")}
    if found["lines"] < asked.lines:
        return found
    try:
        ways = list(changes(code))
    except DiagnosticError as error:
        return {**found, "problem": str(error).splitlines()[0]}
    random.Random(f"{asked.seed} {name}").shuffle(ways)
    valid = (way for way in ways if is_valid(way))
    switches = switches_of(program) if asked.data else None
    known = switches if isinstance(switches, KnownSwitches) else None
    with tempfile.TemporaryDirectory() as cache:
        os.environ["ULAM_CACHE_DIR"] = cache
        first = in_child(lambda: compiled(code, known), SECONDS)
        if first.answer is None:
            return {**found, "problem": first.problem}
        ways_tried = itertools.islice(valid, asked.changes)
        outcomes = [in_child(lambda way=way: compiled(way, known), SECONDS) for way in ways_tried]
    later = [outcome.answer for outcome in outcomes if outcome.answer is not None]
    return {**found, "first": first.answer, "later": later}


def report(rows: list[dict[str, Any]]) -> int:
    print("| program | lines | first, s | a changed statement, median | largest |\n|---|--:|--:|--:|--:|")
    failed = False
    for row in sorted((row for row in rows if row.get("later")), key=lambda row: -row["lines"]):
        parts = [seconds / row["first"] for seconds in row["later"]]
        median = statistics.median(parts)
        missed = row["lines"] >= LONG and median > MOST
        failed = failed or missed
        told = f"{median:.2f}{' MISSED' if missed else ''}"
        print(f"| {row['name']} | {row['lines']} | {row['first']:.2f} | {told} | {max(parts):.2f} |")
    for row in rows:
        if "problem" in row:
            print(f"{row['name']}: {row['problem']}")
    return int(failed)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=Path, metavar="TABLE.tsv")
    parser.add_argument("--checkouts", type=Path, metavar="DIR")
    parser.add_argument("--extracted", type=Path, metavar="DIR")
    parser.add_argument("--kinds", nargs="*", choices=sorted(KINDS), default=[], metavar="NAME")
    parser.add_argument("--lines", type=int, default=300)
    parser.add_argument("--changes", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--data", action="store_true")
    add_options(parser)
    asked = parser.parse_args(argv)
    load_stages()
    generated = {f"{kind}, generated": PublicProgram(kind, program_of(kind, LONG), (), None) for kind in asked.kinds}
    rows = sweep(list(generated), asked, lambda name: examined(name, generated[name], asked))
    if asked.programs is not None:
        with tempfile.TemporaryDirectory() as folder:
            repositories = Repositories(asked.checkouts, asked.extracted or Path(folder))

            def public(name: str) -> dict[str, Any]:
                try:
                    return examined(name, repositories.program(name), asked)
                except (FileNotFoundError, DiagnosticError) as error:
                    return {"lines": 0, "problem": f"not found: {error}"}

            with asked.programs.open(encoding="utf-8", newline="") as file:
                names = [row["program"] for row in csv.DictReader(file, delimiter="\t")]
            rows += sweep(names, asked, public)
    return report(rows)


if __name__ == "__main__":
    sys.exit(main())
