"""Compiles stanc3's good programs to machine code; lists what fails or takes long.

    python benchmarks/stanc3_programs.py --stanc3 CHECKOUT [--folder good] [--levels 0 3] [--seconds 60]
        [--units setup gradient_propto constrain] [--only TEXT ...] [--shard 1/4] [--results FILE]

CHECKOUT is a checkout of stan-dev/stanc3, or a bare repository. Each program is compiled in a process of its own, at
each level, the shortest first, and may take so many seconds of CPU time. Its module is verified after the level's
passes. Level 4 has no data here. A file of functions (`.stanfunctions`) is included in a program that is empty but for
it.
"""

from __future__ import annotations

import argparse
import io
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sweeps import add_options, in_child, sweep

from ulam.frontend.diagnostics import DiagnosticError
from ulam.passes import verify_dominance
from ulam.passes.errors import NotSupportedError
from ulam.passes.units import UNITS
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler, load_stages
from ulam.runtime.interpreter_settings import compiling

SUITE = Path("test/integration")
SUFFIXES = (".stan", ".stanfunctions")
SLOWEST = 10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stanc3", type=Path, required=True, metavar="CHECKOUT", help="where stanc3 is")
    parser.add_argument("--folder", default="good", help=f"a folder of {SUITE}")
    parser.add_argument("--levels", nargs="+", type=int, default=[0, 3])
    parser.add_argument("--units", nargs="+", choices=UNITS, default=["setup", "gradient_propto", "constrain"])
    parser.add_argument("--seconds", type=float, default=60, help="CPU time that a program may take at a level")
    add_options(parser)
    options = parser.parse_args(argv)
    load_stages()
    with tempfile.TemporaryDirectory() as temporary:
        suite = programs_of(options.stanc3, Path(temporary)) / SUITE
        folder = suite / options.folder
        paths = sorted(
            (path for path in folder.rglob("*") if path.suffix in SUFFIXES),
            key=lambda path: (path.stat().st_size, path),
        )
        names = [str(path.relative_to(folder)) for path in paths]
        rows = sweep(names, options, lambda name: examined(folder / name, suite / "included", options))
    return report(rows, options.levels)


def programs_of(stanc3: Path, temporary: Path) -> Path:
    """The checkout itself, or the tests of a bare repository in a temporary folder."""
    for root in (stanc3, stanc3 / "src"):
        if (root / SUITE).is_dir():
            return root
    command = ["git", f"--git-dir={stanc3}", "archive", "HEAD", str(SUITE)]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(temporary, filter="data")
    return temporary


def examined(path: Path, included: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Per level: what is wrong with a program, if anything, and the CPU time it took."""
    problems, seconds = {}, {}
    for level in options.levels:
        outcome = in_child(lambda level=level: problem_of(path, included, level, options.units), options.seconds)
        problems[str(level)] = outcome.problem or outcome.answer
        seconds[str(level)] = round(outcome.seconds, 2)
    return {"problems": problems, "seconds": seconds}


def problem_of(path: Path, included: Path, level: int, units: Sequence[str]) -> str:
    """What is wrong with a program, empty if it can be compiled."""
    options = CompileOptions(level, (str(path.parent), str(included)))
    compiler = Compiler(text_of(path), path.name, options)
    try:
        with compiling():
            compiler.module.verify()
            verify_dominance.run_on(compiler.module)
        for unit in units:
            compiler.unit(unit)
    except (NotSupportedError, DiagnosticError) as error:
        return f"refused: {first_message(error)}"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    return ""


def text_of(path: Path) -> str:
    """The program; of a file of functions one that includes it."""
    if path.suffix == ".stanfunctions":
        return f"functions {{\n#include {path.name}\n}}\n"
    return path.read_text(encoding="utf-8")


def first_message(error: NotSupportedError | DiagnosticError) -> str:
    """The first of what is wrong, without the lines of the program."""
    if isinstance(error, DiagnosticError):
        return error.diagnostics[0].message
    return str(error).partition("\n")[0]


def report(rows: Sequence[dict[str, Any]], levels: Sequence[int]) -> int:
    """Prints what was found; 1 if a program could not be compiled."""
    failed = [row for row in rows if any(row["problems"].values())]
    print(f"{len(rows)} programs, {len(rows) - len(failed)} compiled at level {', '.join(map(str, levels))}")
    for row in failed:
        for level, problem in row["problems"].items():
            if problem:
                print(f"  {row['name']}, level {level}: {problem}")
    for level in map(str, levels):
        seconds = sorted(((row["seconds"][level], row["name"]) for row in rows), reverse=True)
        if seconds:
            median = statistics.median(second for second, _ in seconds)
            print(f"level {level}: median {median:.2f} s of CPU time, the longest:")
        for second, name in seconds[:SLOWEST]:
            print(f"  {second:6.2f}  {name}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
