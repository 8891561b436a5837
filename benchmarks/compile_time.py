"""How compile time grows with the length of a program, in CPU time, and where it goes.

    python benchmarks/compile_time.py [--json] [--sizes N,N,...] [--profile MODEL.stan] [--posteriordb DIR]

Generated models of each kind in growing lengths; twice the length should cost at most 2.2 times. `mixed` at 40 loops
has 300 lines. `setup` and `gradient_propto` are compiled, what a first gradient needs. With --profile: the functions
of the compiler that take most time on a program. With --posteriordb: the programs of a checkout instead; median, 95th
percentile and largest time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ulam.frontend.diagnostics import DiagnosticError
from ulam.passes.errors import NotSupportedError

LIMIT = 2.2
UNITS = ("setup", "gradient_propto")

# ---------------------------------------------------------------- models


def straight_line(n: int) -> str:
    """`n` assignments, each of values before it."""
    lines = ["parameters { vector[4] theta; }", "model {", "  real x0 = theta[1];"]
    for k in range(1, n + 1):
        lines.append(f"  real x{k} = x{k - 1} * theta[{k % 4 + 1}] + {k}.5 - exp(-square(x{max(0, k - 3)}));")
    return "\n".join([*lines, f"  target += x{n} - dot_self(theta);", "}\n"])


def loops(n: int) -> str:
    """`n` loops over data, every other one with a range of its own."""
    lines = ["data { int N; array[N] int M; vector[N] y; }", "parameters { vector[N] theta; real a; }", "model {"]
    for k in range(1, n + 1):
        upper = "N" if k % 2 else f"M[{k}]"
        lines.append(f"  for (i in 1:{upper}) {{")
        lines.append(f"    target += -square(y[i] - a * theta[i] - {k}.0);\n  }}")
    return "\n".join([*lines, "}\n"])


def densities(n: int) -> str:
    """`n` vectorised `~` statements of different families."""
    kinds = (
        "y{k} ~ normal(a * y1, s);", "y{k} ~ student_t(4, a, s);", "y{k} ~ cauchy(a, s);", "y{k} ~ logistic(a, s);",
        "y{k} ~ double_exponential(a, s);",
    )  # fmt: skip
    data = " ".join(f"vector[N] y{k};" for k in range(1, n + 1))
    lines = [f"data {{ int N; {data} }}", "parameters { real a; real<lower=0> s; }", "model {"]
    lines += ["  " + kinds[k % len(kinds)].format(k=k) for k in range(1, n + 1)]
    return "\n".join([*lines, "}\n"])


def functions(n: int) -> str:
    """`n` functions, each of which calls the one before it, once."""
    lines = ["functions {", "  real f0(real x) { return x; }"]
    for k in range(1, n + 1):
        lines.append(f"  real f{k}(real x) {{\n    real y = x * {k}.5;\n    return log1p_exp(f{k - 1}(y) + x);\n  }}")
    return "\n".join([*lines, "}", "parameters { real x; }", "model {", f"  target += -f{n}(x);", "}\n"])


def mixed(n: int) -> str:
    """`n` loops in 7.5 `n` lines: transformed parameters, containers written in loops, densities, branches."""
    lines = ["data { int N; vector[N] y; array[N] int<lower=1> g; }", "parameters { vector[N] b; real<lower=0> s; }"]
    lines += ["transformed parameters {", "  vector[N] m0 = b;"]
    half = n // 2
    for k in range(1, half + 1):
        lines += [f"  vector[N] m{k};", "  for (i in 1:N) {", f"    real z = m{k - 1}[i] * s;"]
        lines += [f"    z += {k}.0 * y[i];", f"    m{k}[i] = z / (1 + square(z));", "  }", ""]
    lines += ["}", "model {"]
    for k in range(half + 1, n + 1):
        lines += [
            "  for (i in 2:N) {",
            f"    if (g[i] > {k}) {{",
            f"      target += normal_lpdf(y[i] | m{half}[i], s);",
        ]
        lines += ["    } else {", f"      target += -square(b[i - 1] - m{min(k - half, half)}[i]);", "    }", "  }"]
        lines.append(f"  b ~ normal({k}, s);")
    return "\n".join([*lines, "}\n"])


MODELS: dict[str, tuple[Callable[[int], str], tuple[int, ...]]] = {
    "straight line": (straight_line, (25, 50, 100, 200)),
    "loops": (loops, (5, 10, 20, 40)),
    "densities": (densities, (5, 10, 20, 40)),
    "functions": (functions, (10, 20, 40, 80)),
    "mixed": (mixed, (5, 10, 20, 40)),
}


# ---------------------------------------------------------------- measuring


def compile_seconds(text: str) -> tuple[float, float, int]:
    """CPU seconds of our own code and of LLVM, and the bytes of LLVM's input."""
    from ulam.emit import jit
    from ulam.runtime.compiler import Compiler

    compiler = Compiler(text)
    ours = llvm = 0.0
    size = 0
    for name in UNITS:
        start = time.process_time()
        source = compiler.llvm_text(name)
        middle = time.process_time()
        jit.compile_object(source, jit.ONCE if name == "setup" else jit.HOT)
        ours += middle - start
        llvm += time.process_time() - middle
        size += len(source)
    return ours, llvm, size


def measure(kind: str, sizes: Sequence[int], repeat: int) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    for n in sizes:
        text = MODELS[kind][0](n)
        ours, llvm, size = min((compile_seconds(text) for _ in range(repeat)), key=lambda r: r[0] + r[1])
        row: dict[str, Any] = {
            "kind": kind,
            "n": n,
            "lines": text.count("\n"),
            "ours": ours,
            "llvm": llvm,
            "bytes": size,
        }
        if results and n == 2 * results[-1]["n"]:
            before = results[-1]
            row["growth"] = (ours + llvm) / (before["ours"] + before["llvm"])
            row["growth_of_ours"] = ours / before["ours"]
        results.append(row)
    return results


def line(row: dict[str, Any]) -> str:
    growth = f"{row['growth']:8.2f} {row['growth_of_ours']:8.2f}" if "growth" in row else ""
    mark = "  above the limit" if row.get("growth", 0) > LIMIT else ""
    times = f"{1e3 * row['ours']:9.0f} {1e3 * row['llvm']:9.0f} {row['bytes'] / 1000:9.0f}"
    return f"{row['kind']:14} {row['n']:5} {row['lines']:6} {times} {growth}{mark}"


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
    parser.add_argument("--kind", action="append", choices=list(MODELS))
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")])
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
        print(f"{'model':14} {'n':>5} {'lines':>6} {'ours, ms':>9} {'LLVM, ms':>9} {'kB':>9} {'growth':>8} {'ours':>8}")
    for kind in arguments.kind or MODELS:
        rows = measure(kind, arguments.sizes or MODELS[kind][1], arguments.repeat)
        results += rows
        if not arguments.json:
            print("\n".join(map(line, rows)), flush=True)
    if arguments.json:
        print(json.dumps(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
