"""How compile time and memory grow with the length of a program, in CPU time, and where it goes.

    python benchmarks/compile_time.py [--json] [--kind NAME ...] [--lines N,N,...] [--profile MODEL.stan]
        [--posteriordb DIR]

Programs of each kind (`generated_programs.py`) in growing lengths, each compiled in a process of its own; twice the
length should cost at most 2.2 times, and LLVM alone at most 3 times in any step. Transformed data, gradient, and
what is computed for each draw are compiled. With --profile: the functions of the compiler that take most time on a
program. With --posteriordb: the programs of a checkout instead; median, 95th percentile and largest time.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from generated_programs import KINDS, program_of
from sweeps import in_child

from ulam.frontend.diagnostics import DiagnosticError
from ulam.passes.errors import NotSupportedError

LIMIT = 2.2
LLVM_LIMIT = 3.0
"""LLVM has other passes for what is long, which a step may bring."""
LENGTHS = (250, 500, 1000, 2000)
SECONDS = 600.0
"""That one program may take."""
SHORTEST = 0.2
"""Seconds below which a growth says nothing."""
SIDES = ("ours", "llvm")
COMPILED = ("setup", "gradient_propto", "constrain")

# ---------------------------------------------------------------- measuring


def compile_seconds(text: str, level: int = 3) -> tuple[float, float, int]:
    """CPU seconds of our own code and of LLVM, and the bytes of LLVM's input."""
    from ulam.emit import jit
    from ulam.passes.units import UNITS
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.compiler import Compiler, llvm_pipeline

    compiler = Compiler(text, options=CompileOptions(level))
    ours = llvm = 0.0
    size = 0
    for name in COMPILED:
        start = time.process_time()
        source = compiler.llvm_text(name)
        middle = time.process_time()
        jit.compile_object(source, llvm_pipeline(UNITS[name], level))
        ours += middle - start
        llvm += time.process_time() - middle
        size += len(source)
    return ours, llvm, size


def measure(kind: str, lengths: Sequence[int], repeat: int) -> Iterator[dict[str, Any]]:
    """A row for each length: seconds, and growth for a doubling of the length."""
    before: dict[str, Any] | None = None
    for length in lengths:
        text = program_of(kind, length)
        runs = [in_child(lambda text=text: compiled(text), SECONDS) for _ in range(repeat)]
        if any(run.answer is None for run in runs):
            yield {"kind": kind, "lines": text.count("\n"), "problem": runs[0].problem}
            return
        row: dict[str, Any] = min((run.answer for run in runs), key=lambda found: found["ours"] + found["llvm"])
        row |= {"kind": kind, "lines": text.count("\n")}
        if before is not None:
            for name in ("ours", "llvm"):
                if before[name] >= SHORTEST:
                    step = math.log(2) / math.log(row["lines"] / before["lines"])
                    row[f"growth_of_{name}"] = (row[name] / before[name]) ** step
        before = row
        yield row


def compiled(text: str) -> dict[str, float]:
    """What compiling takes, with the most memory of the process."""
    ours, llvm, size = compile_seconds(text)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"ours": ours, "llvm": llvm, "bytes": size, "MB": memory}


def is_above(row: dict[str, Any]) -> bool:
    """Whether a step costs more than its limit."""
    return row.get("growth_of_ours", 0) > LIMIT or row.get("growth_of_llvm", 0) > LLVM_LIMIT


def line(row: dict[str, Any]) -> str:
    if "problem" in row:
        return f"{row['kind']:14} {row['lines']:6} {row['problem']}"
    growth = " ".join(f"{row[f'growth_of_{name}']:6.2f}" if f"growth_of_{name}" in row else 6 * " " for name in SIDES)
    mark = "  ABOVE THE LIMIT" if is_above(row) else ""
    times = f"{1e3 * row['ours']:9.0f} {1e3 * row['llvm']:9.0f} {row['bytes'] / 1000:9.0f} {row['MB']:6.0f}"
    return f"{row['kind']:14} {row['lines']:6} {times} {growth}{mark}"


def profile(path: Path) -> None:
    import cProfile
    import pstats

    compile_seconds("parameters { real x; } model { x ~ std_normal(); }")  # imports
    text = path.read_text(encoding="utf-8")
    profiler = cProfile.Profile()
    profiler.runcall(compile_seconds, text)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(40)


def of_posteriordb(folder: Path, repeat: int) -> str:
    """How long the programs of a checkout take: those that cannot be compiled are left out."""
    found: list[tuple[float, str]] = []
    for path in sorted(folder.glob("**/models/stan/*.stan")):
        text = path.read_text(encoding="utf-8")
        try:
            found.append((min(sum(compile_seconds(text)[:2]) for _ in range(repeat)), path.stem))
        except (DiagnosticError, NotSupportedError) as error:
            print(f"{path.stem}: {str(error).splitlines()[0]}", file=sys.stderr)
    found.sort()
    parts = {"median": len(found) // 2, "95%": int(0.95 * len(found)), "largest": len(found) - 1}
    rows = [f"{name:8} {1e3 * found[k][0]:6.0f} ms  {found[k][1]}" for name, k in parts.items()]
    return "\n".join([f"{len(found)} programs, CPU time of setup and gradient_propto", *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", action="append", choices=list(KINDS))
    parser.add_argument("--lines", type=lambda text: [int(n) for n in text.split(",")], default=LENGTHS)
    parser.add_argument("--repeat", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", type=Path, metavar="MODEL.stan")
    parser.add_argument("--posteriordb", type=Path, metavar="DIR")
    arguments = parser.parse_args()
    if arguments.profile is not None:
        profile(arguments.profile)
        return 0
    compile_seconds("parameters { real x; } model { x ~ std_normal(); }")  # imports
    if arguments.posteriordb is not None:
        print(of_posteriordb(arguments.posteriordb, arguments.repeat))
        return 0
    results: list[dict[str, Any]] = []
    if not arguments.json:
        print(f"{'kind':14} {'lines':>6} {'ours, ms':>9} {'LLVM, ms':>9} {'kB':>9} {'MB':>6}   ours   LLVM")
    for kind in arguments.kind or KINDS:
        for row in measure(kind, arguments.lines, arguments.repeat):
            results.append(row)
            if not arguments.json:
                print(line(row), flush=True)
    if arguments.json:
        print(json.dumps(results))
    return int(any(is_above(row) or "problem" in row for row in results))


if __name__ == "__main__":
    sys.exit(main())
