"""Compiles stanc3's programs for its optimizer at every level; lists what fails, and what is not supported yet.

    python benchmarks/stanc3_programs.py --stanc3 CHECKOUT [--folder good/compiler-optimizations] [--levels 0,1,2,3,4]

CHECKOUT is a checkout of stan-dev/stanc3, or a bare repository. A program counts as compiled at a level when its module
verifies after the level's passes and every unit of it becomes LLVM IR that LLVM accepts. Level 4 has no data here.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ulam.emit import jit
from ulam.frontend.diagnostics import DiagnosticError
from ulam.passes import verify_dominance
from ulam.passes.errors import NotSupportedError
from ulam.runtime.compiler import CompileOptions, Compiler, compiling

SUITE = "test/integration"
UNITS = ("setup", "value_full", "gradient_propto", "gradient_full", "constrain", "unconstrain")
QUICK = jit.Pipeline(speed=0, vectorize=False)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--stanc3", type=Path, required=True, metavar="CHECKOUT", help="where stanc3 is")
    parser.add_argument("--folder", default="good/compiler-optimizations", help=f"a folder of {SUITE}")
    parser.add_argument("--levels", default="0,1,2,3,4")
    arguments = parser.parse_args(argv)
    levels = [int(level) for level in arguments.levels.split(",")]
    with tempfile.TemporaryDirectory() as temporary:
        root = programs_of(arguments.stanc3, Path(temporary))
        failed = run(root / SUITE / arguments.folder, root / SUITE / "included", levels)
    return 1 if failed else 0


def programs_of(stanc3: Path, temporary: Path) -> Path:
    """The checkout itself, or the tests of a bare repository in a temporary folder."""
    if (stanc3 / SUITE).is_dir():
        return stanc3
    command = ["git", f"--git-dir={stanc3}", "archive", "HEAD", SUITE]
    archive = subprocess.run(command, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(temporary, filter="data")
    return temporary


def run(folder: Path, included: Path, levels: Sequence[int]) -> int:
    """Compiles all programs of a folder; returns how many comparisons with level 0 failed."""
    paths = sorted(folder.rglob("*.stan"))
    unsupported: list[str] = []
    failures: list[str] = []
    seconds = dict.fromkeys(levels, 0.0)
    for path in paths:
        name = str(path.relative_to(folder))
        for level in levels:
            start = time.perf_counter()
            problem, is_excepted = compile_program(path, included, level)
            seconds[level] += time.perf_counter() - start
            if problem and is_excepted:
                unsupported.append(f"{name}: {problem}")
                break
            if problem:
                failures.append(f"{name} at level {level}: {problem}")
    print(f"{len(paths)} programs, {len(paths) - len(unsupported)} compiled, {len(unsupported)} not supported yet")
    for line in (*unsupported, f"{len(failures)} failures", *failures):
        print(f"  {line}")
    print("seconds: " + ", ".join(f"level {level} {time_:.1f}" for level, time_ in seconds.items()))
    return len(failures)


def compile_program(path: Path, included: Path, level: int) -> tuple[str, bool]:
    """What is wrong, if anything; and whether that is a part of the language that is not built yet."""
    options = CompileOptions(level, (str(path.parent), str(included)))
    compiler = Compiler(path.read_text(), path.name, options)
    try:
        with compiling():
            compiler.module.verify()
            verify_dominance.run_on(compiler.module)
        for unit in UNITS:
            jit.compile_object(compiler.llvm_text(unit), QUICK)
    except NotSupportedError as error:
        return str(error), True
    except DiagnosticError as error:
        codes = {diagnostic.code for diagnostic in error.diagnostics}
        return error.diagnostics[0].message, codes == {"not-supported"}
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}", False
    return "", False


if __name__ == "__main__":
    sys.exit(main())
