"""Fuzzes the type checker, the whole compiler and its way to LLVM, the reading of data, and of IR: nothing may come out
but our own errors. The two readers of data, in Python and in C, have to say the same, and pipelines of any passes have
to mean the same.

    python benchmarks/fuzz.py checker --count 50000 [--seed 0] [--corpus DIR ...] [--state FILE]
    python benchmarks/fuzz.py compile --count 2000  [the same]
    python benchmarks/fuzz.py lower   --count 2000  [the same]: random programs up to LLVM IR, which is verified
    python benchmarks/fuzz.py data    --count 5000  [--seed 0] [--state FILE]
    python benchmarks/fuzz.py readers --count 20000 [the same]: data read in Python and in C
    python benchmarks/fuzz.py modules --count 10000 [the same]: IR through stan-opt
    python benchmarks/fuzz.py models  --count 1000  [the same]: IR as models
    python benchmarks/fuzz.py pipelines --count 500 [the same]: any passes in any order, values compared with level 0

The programs that are mutated are those of this project and of the folders of --corpus, as checkouts of stan-dev/stanc3
and stan-dev/posteriordb. Cases run in processes of their own, some at a time: a crash is one failure. --state is a file
with the number of the next case: a run that was ended goes on there. Failures are printed with their number, and what a
time limit of ulam's ended, which may be an endless program, as slow; `--first N --count 1 --show` prints the program of
one.
"""

from __future__ import annotations

import argparse
import faulthandler
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent / "tests" / "oracles"))

IN_A_PROCESS = {
    "checker": 1000, "compile": 20, "lower": 50, "data": 500, "readers": 5000, "modules": 1000, "models": 200,
    "pipelines": 10,
}  # fmt: skip
SECONDS_A_CASE = {
    "checker": 5, "compile": 120, "lower": 60, "data": 10, "readers": 5, "modules": 10, "models": 60,
    "pipelines": 300,
}  # fmt: skip
MEMORY_GROWS = ("compile", "models", "pipelines")
"""What loads machine code, of which some is kept."""
HARD_LIMIT = 600
"""Seconds after which a case ends its process: its own limits have not ended it."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=IN_A_PROCESS)
    parser.add_argument("--count", type=int, default=1000, help="cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--corpus", type=Path, nargs="*", default=[], help="further folders with programs")
    parser.add_argument("--state", type=Path, help="file with the number of the next case; read and written")
    parser.add_argument("--show", action="store_true", help="print the programs")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker or arguments.show:
        return work(arguments)
    first, last = arguments.first, arguments.first + arguments.count
    if arguments.state and arguments.state.exists():
        first = max(first, int(arguments.state.read_text()))
    failures, begun = 0, time.monotonic()
    while first < last:
        count = min(IN_A_PROCESS[arguments.what], last - first)
        done, found = batch(arguments, first, count)
        failures += sum(line.startswith("failure ") for line in found)
        first += done
        for line in found:
            print(line, flush=True)
        if arguments.state:
            arguments.state.write_text(str(first))
        print(f"{first} of {last}, {failures} failures, {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    print(f"{arguments.what}: {arguments.count} cases, seed {arguments.seed}: {failures} failures")
    return 1 if failures else 0


def batch(arguments: argparse.Namespace, first: int, count: int) -> tuple[int, list[str]]:
    """Cases in a process of their own: how many were done, and the failures."""
    command = [sys.executable, str(HERE), arguments.what, "--worker", "--seed", str(arguments.seed)]
    command += ["--first", str(first), "--count", str(count), "--corpus", *map(str, arguments.corpus)]
    limit = 60 + count * SECONDS_A_CASE[arguments.what]
    try:
        finished = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=limit)
        output, status = finished.stdout, finished.returncode
        errors = finished.stderr.strip().splitlines()
        dumped = any(line.startswith(("Timeout (", "Fatal Python error")) for line in errors)
        trouble = (errors[:5] if dumped else errors[-1:]) if status else []
    except subprocess.TimeoutExpired as error:
        output, status, trouble = (error.stdout or b"").decode(errors="replace"), "time", [f"more than {limit} s"]
    lines = output.splitlines()
    begun = [int(line.split()[1]) for line in lines if line.startswith("case ")]
    found = [line for line in lines if line.startswith(("failure ", "slow "))]
    if status == 0:
        return count, found
    at = begun[-1] if begun else first
    return at - first + 1, [*found, f"failure {at}: the process ended with {status}: {' '.join(trouble)[:300]}"]


def work(arguments: argparse.Namespace) -> int:
    """The cases themselves."""
    from data_readers import reader_case
    from fuzzing import SLOW, check_mutant, compile_mutant, data_case
    from lowered_programs import lowered_program, lowering_case
    from mutated_modules import module_case, seeds
    from program_mutations import corpus_of, mutant, own_corpus
    from random_pipelines import model_case, model_seeds, pipeline_case, pipeline_of

    corpus = corpus_of([*own_corpus(), *arguments.corpus])
    folder = Path(tempfile.mkdtemp(prefix="fuzz"))
    modules = seeds(HERE.parent.parent) if arguments.what == "modules" else []
    models = model_seeds() if arguments.what == "models" else []
    cases: dict[str, Callable[[int], str | None]] = {
        "checker": lambda number: check_mutant(corpus, arguments.seed, number),
        "compile": lambda number: compile_mutant(corpus, arguments.seed, number),
        "lower": lambda number: lowering_case(corpus, arguments.seed, number),
        "data": lambda number: data_case(arguments.seed, number, folder),
        "readers": lambda number: reader_case(arguments.seed, number, folder / "data.json"),
        "modules": lambda number: module_case(modules, arguments.seed, number, folder),
        "models": lambda number: model_case(models, arguments.seed, number, folder),
        "pipelines": lambda number: pipeline_case(arguments.seed, number),
    }
    memory: list[int] = []
    for number in range(arguments.first, arguments.first + arguments.count):
        if arguments.show and arguments.what == "pipelines":
            print(*pipeline_of(arguments.seed, number), sep="\n")
        elif arguments.show and arguments.what in ("checker", "compile"):
            print(mutant(corpus, arguments.seed, number))
        elif arguments.show and arguments.what == "lower":
            print(lowered_program(corpus, arguments.seed, number))
        print(f"case {number}", flush=True)
        faulthandler.dump_traceback_later(HARD_LIMIT, exit=True)  # whatever holds it, native code too
        problem = cases[arguments.what](number)
        if problem is not None and problem.startswith(SLOW):
            print(f"slow {number}: {problem[len(SLOW) :]}", flush=True)
        elif problem is not None:
            print(f"failure {number}: {problem}".replace("\n", " | "), flush=True)
        memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
    if arguments.what not in MEMORY_GROWS and len(memory) >= 500 and memory[-1] > memory[len(memory) // 2] + 50_000:
        print(f"failure {arguments.first}: memory grew from {memory[len(memory) // 2]} to {memory[-1]} kB")
    faulthandler.cancel_dump_traceback_later()
    return 0


if __name__ == "__main__":
    sys.exit(main())
