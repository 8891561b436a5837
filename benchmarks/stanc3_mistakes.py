"""stanc3's bad programs: is each refused, and on the line that stanc names.

    python benchmarks/stanc3_mistakes.py --stanc3 CHECKOUT [--table FILE.tsv] [--only TEXT ...] [--shard 1/4]
        [--results FILE]

CHECKOUT is a checkout of stan-dev/stanc3, or a bare repository. Where that version of stanc finds the first mistake is
in its `stanc.expected` files; another release's lines may be given instead, as a table with the columns `file` (below
`test/integration`) and `line`. The exit status is 1 if a program is accepted or ends in another way than with its
mistakes, or if fewer than 97% of the lines are stanc's. ulam names all mistakes of a program; only the first counts.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stanc3_programs import SUFFIXES, SUITE, programs_of, text_of
from sweeps import add_options, in_child, sweep

from ulam.frontend.diagnostics import DiagnosticError, Severity
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler, load_stages

SECONDS = 30
SAME_LINES = 0.97
PLACE = re.compile(r"error in '(?P<file>[^']*)', line (?P<line>\d+), column")


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stanc3", type=Path, required=True, metavar="CHECKOUT", help="where stanc3 is")
    parser.add_argument("--table", type=Path, metavar="FILE.tsv", help="where stanc finds the mistakes")
    add_options(parser)
    options = parser.parse_args(argv)
    load_stages()
    with tempfile.TemporaryDirectory() as temporary:
        suite = programs_of(options.stanc3, Path(temporary)) / SUITE
        paths = sorted(p for p in (suite / "bad").rglob("*") if p.suffix in SUFFIXES)
        names = [str(path.relative_to(suite)) for path in paths]
        lines = expected_lines(suite) if options.table is None else tabled_lines(options.table)
        rows = sweep(names, options, lambda name: examined(suite, name))
    return report(rows, lines)


def tabled_lines(table: Path) -> dict[str, int]:
    """The lines of a table; not those of mistakes that have no place."""
    with table.open(encoding="utf-8", newline="") as file:
        return {row["file"]: int(row["line"]) for row in csv.DictReader(file, delimiter="\t") if row["line"]}


def expected_lines(suite: Path) -> dict[str, int]:
    """The first line of each program that the checkout's files of expected output name, if it is in that program."""
    lines = {}
    for path in (suite / "bad").rglob("*.expected"):
        for run in path.read_text(encoding="utf-8", errors="replace").split("$ stanc ")[1:]:
            name = run.partition("\n")[0].split()[-1]
            place = PLACE.search(run)
            if place is not None and Path(place["file"]).name == Path(name).name:
                lines[str((path.parent / name).relative_to(suite))] = int(place["line"])
    return lines


def examined(suite: Path, name: str) -> dict[str, Any]:
    """The lines and the first message of what is wrong with a program, or what became of it instead."""
    outcome = in_child(lambda: mistakes(suite / name, suite / "included"), SECONDS)
    return outcome.answer or {"lines": [], "message": outcome.problem}


def mistakes(path: Path, included: Path) -> dict[str, Any]:
    options = CompileOptions(0, (str(path.parent), str(included)))
    compiler = Compiler(text_of(path), path.name, options)
    try:
        compiler.module.verify()
    except DiagnosticError as error:
        found = [d for d in error.diagnostics if d.code != "not-supported" and d.severity is Severity.ERROR]
        lines = [d.as_dict()["line"] for d in found]
        return {"lines": lines, "message": (found or error.diagnostics)[0].message}
    except Exception as error:
        return {"lines": [], "message": f"{type(error).__name__}: {str(error)[:300]}"}
    return {"lines": [], "message": "accepted"}


def report(rows: Sequence[dict[str, Any]], expected: dict[str, int]) -> int:
    """Prints what was found; 1 if it is less than it should be."""
    accepted = [row for row in rows if not row["lines"]]
    listed = [row for row in rows if row["name"] in expected]
    elsewhere = [row for row in listed if row["lines"][:1] != [expected[row["name"]]]]
    print(f"{len(rows)} programs, {len(rows) - len(accepted)} refused")
    for row in accepted:
        print(f"  {row['name']}: {row['message']}")
    if not listed:
        return 1 if accepted else 0
    share = 1 - len(elsewhere) / len(listed)
    print(f"{share:.1%} of {len(listed)} on stanc's line; not these (stanc's line, ours):")
    for row in elsewhere:
        print(f"  {row['name']}: {expected[row['name']]}, {row['lines']}: {row['message']}")
    return 1 if accepted or share < SAME_LINES else 0


if __name__ == "__main__":
    sys.exit(main())
