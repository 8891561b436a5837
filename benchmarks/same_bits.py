"""Two versions of ulam: do levels 0 to 2 keep every bit of values, gradients and draws, and of LLVM IR.

    python benchmarks/same_bits.py --old OLD/bin/python --new NEW/bin/python [--posteriordb DIR] [--only NAME ...]
        [--levels 0 1 2] [--tolerance 0] [--random 50] [--seed-base 0] [--everywhere] [--results FILE]

The programs are those of the tests (`.stan` files, programs for gradients, random programs) and of the examples, and
the posteriors of a posteriordb checkout. Each version works in a process of its own, from the interpreter of an
environment with it. For each program and level the LLVM IR of the gradient and of the constraining transform is
compared. Where data are known, values, gradients and generated quantities at four points are compared bit by bit, and
errors by their text: at every level whose IR has changed, and at one more, since C may have; `--everywhere` at all.

`--tolerance 1e-9 --levels 3 4` is for levels that may round otherwise: results may differ by that much, relative to
what is above 1, and what was a number must be one.

The exit status is 1 if results differ. Other IR with the same bits is counted and named, no more. With
`--results` a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests" / "oracles"))

from posteriordb import posteriors  # noqa: E402

WORKER = """
import contextlib, gc, hashlib, io, json, sys
import numpy as np
from ulam import StanModel, UlamError
from ulam.runtime.compiler import Compiler, CompileOptions

def emitted(request, level):
    compiler = Compiler(request["code"], request["name"], CompileOptions(opt_level=level))
    texts = [compiler.llvm_text(unit) for unit in ("gradient_propto", "constrain")]
    return [hashlib.sha256(text.encode()).hexdigest()[:16] for text in texts]

def attempted(call):
    sink = io.StringIO()
    with contextlib.redirect_stdout(sink), np.errstate(all="ignore"):
        try:
            result = call()
        except UlamError as error:
            result = f"{type(error).__name__}: {error}"
    return [result, sink.getvalue()]

def evaluated(request, level):
    made = []
    found = [attempted(lambda: made.append(StanModel(request["code"], request["data"], opt_level=level, cache=False)))]
    if not made:
        return found
    model = made[0]
    for number in range(4):
        theta = np.random.default_rng(number).uniform(-1, 1, model.param_unc_num()) * (1, 0.1, 2, 0.01)[number]
        def density():
            value, gradient = model.log_density_gradient(theta)
            return [float(value)], gradient.tolist()
        def quantities():
            return [model.param_constrain(theta, include_tp=True, include_gq=True, rng=model.new_rng(7)).tolist()]
        found += [attempted(density), attempted(quantities)]
    return found

for line in sys.stdin:
    request = json.loads(line)
    try:
        answer = (emitted if request["do"] == "emit" else evaluated)(request, request["level"])
    except Exception as error:
        answer = f"{type(error).__name__}: {error}"[:300]
    gc.collect()
    sys.__stdout__.write(json.dumps(answer) + "\\n")
    sys.__stdout__.flush()
"""


class Program(NamedTuple):
    """Data are JSON text or None if there are none to go with it."""

    name: str
    code: str
    data: str | None


class Version:
    """A process of one version."""

    def __init__(self, python: str) -> None:
        self._command = [python, "-c", WORKER]
        self._start()

    def _start(self) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(self._command, stdin=pipe, stdout=pipe, text=True, bufsize=1)

    def send(self, **request: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()

    def answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            status = self._process.wait()
            self._start()
            return f"the process ended with {status}"
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def programs(options: argparse.Namespace) -> Iterator[Program]:
    """All that are compared."""
    from gradient_programs import PROGRAMS
    from program_generator import DATA, generate
    from regression_programs import expectations

    for folder in ("examples", "tests"):
        for path in sorted((ROOT / folder).rglob("*.stan")):
            text = path.read_text(encoding="utf-8")
            data = expectations(text).get("data", "{}") if path.parent.name == "regressions" else None
            beside = path.with_suffix(".json")
            if beside.exists():
                data = beside.read_text(encoding="utf-8")
            yield Program(str(path.relative_to(ROOT)), text, data)
    import_all_gradient_programs()
    for name, (source, data) in PROGRAMS.items():
        yield Program(f"gradient program {name}", source, json.dumps(data))
    for seed in range(options.seed_base, options.seed_base + options.random):
        yield Program(f"random program {seed}", generate(seed), json.dumps(DATA))
    if options.posteriordb is not None:
        for posterior in posteriors(options.posteriordb):
            yield Program(posterior.name, posterior.code, posterior.data)


def import_all_gradient_programs() -> None:
    """The modules that add theirs to the table."""
    import gradient_programs_control  # noqa: F401
    import gradient_programs_library  # noqa: F401


def compare(pair: tuple[Version, Version], program: Program, options: argparse.Namespace) -> dict[str, Any]:
    """What differs: levels whose IR is another, and levels whose results are, with the first of them.

    `failed` is what stopped the evaluation on both sides.
    """

    def ask(do: str, level: int) -> tuple[Any, Any]:
        for version in pair:
            version.send(do=do, level=level, **program._asdict())
        return pair[0].answer(), pair[1].answer()

    emitted = {} if options.tolerance else {level: ask("emit", level) for level in options.levels}
    other_code = [level for level, (old, new) in emitted.items() if old != new]
    results: dict[int, str] = {}
    failed = ""
    if program.data is None:
        for level in other_code:
            old, new = emitted[level]
            if isinstance(old, str) or isinstance(new, str):
                results[level] = f"{old} / {new}"
    else:
        middle = options.levels[len(options.levels) // 2]
        everywhere = options.everywhere or options.tolerance
        for level in options.levels if everywhere else sorted({*other_code, middle}):
            old, new = ask("evaluate", level)
            if isinstance(old, str) and old == new:
                failed = old
            elif difference := first_difference(old, new, options.tolerance):
                results[level] = difference
    return {"name": program.name, "code": other_code, "results": results, "failed": failed}


def first_difference(old: Any, new: Any, tolerance: float) -> str:
    """Of two lists of results; empty if there is none."""
    if isinstance(old, str) or isinstance(new, str):
        return f"{old} / {new}"[:400]
    labels = ["data", *(f"{what} at point {number}" for number in range(4) for what in ("gradient", "quantities"))]
    for label, (a, printed), (b, printed_now) in zip(labels, old, new, strict=False):
        if printed != printed_now:
            return f"{label}: prints {printed!r} / {printed_now!r}"[:400]
        if not isinstance(a, list) or not isinstance(b, list):
            if a != b:
                return f"{label}: {a} / {b}"[:400]
            continue
        if not tolerance and json.dumps(a) != json.dumps(b):
            wrong = [(x, y) for x, y in zip(sum(a, []), sum(b, []), strict=True) if repr(x) != repr(y)]
            return f"{label}: {len(wrong)} numbers, the first {wrong[0][0]!r} / {wrong[0][1]!r}"
        for x, y in zip(a, b, strict=True):
            if tolerance and not (distance(x, y) <= tolerance):
                return f"{label}: relative difference {distance(x, y):.1e}"
    return "" if len(old) == len(new) else "one of them is refused"


def distance(old: list[float], new: list[float]) -> float:
    """The largest difference, relative to the largest number above 1; infinite if other numbers are not finite."""
    a, b = np.array(old), np.array(new)
    finite = np.isfinite(a)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True) or not np.isfinite(b[finite]).all():
        return math.inf
    scale = max(1.0, float(np.max(np.abs(a[finite]), initial=0)))
    return float(np.max(np.abs(a[finite] - b[finite]), initial=0)) / scale


def known(path: Path | None) -> dict[str, dict[str, Any]]:
    """What an earlier run has found."""
    if path is None or not path.exists():
        return {}
    return {row["name"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--old", required=True, help="interpreter of the old version's environment")
    parser.add_argument("--new", required=True, help="that of the new one")
    parser.add_argument("--posteriordb", type=Path, help="a checkout")
    parser.add_argument("--only", nargs="*", default=[], help="programs whose name contains this")
    parser.add_argument("--levels", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--tolerance", type=float, default=0.0, help="relative difference that results may have")
    parser.add_argument("--random", type=int, default=50, help="random programs")
    parser.add_argument("--seed-base", type=int, default=0, help="the first random program's seed")
    parser.add_argument("--everywhere", action="store_true", help="results at all levels, also where IR is the same")
    parser.add_argument("--results", type=Path, help="a file of what was found, which is continued")
    options = parser.parse_args()
    pair = (Version(options.old), Version(options.new))
    rows = known(options.results)
    for program in programs(options):
        if program.name in rows or (options.only and not any(text in program.name for text in options.only)):
            continue
        row = rows[program.name] = compare(pair, program, options)
        if options.results is not None:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        for level, text in row["results"].items():
            print(f"{program.name}, level {level}: OTHER RESULTS: {text}", flush=True)
        if row["code"] and not row["results"]:
            print(f"{program.name}: other IR at {', '.join(map(str, row['code']))}, the same bits", flush=True)
    for version in pair:
        version.close()
    other = sum(bool(row["results"]) for row in rows.values())
    code = sum(bool(row["code"]) for row in rows.values())
    failed = {row["name"]: row["failed"] for row in rows.values() if row["failed"]}
    print(f"{len(rows)} programs, {code} with other IR, {other} with other results, {len(failed)} evaluated by neither")
    for name, text in failed.items():
        print(f"  {name}: {text}")
    return 1 if other else 0


if __name__ == "__main__":
    sys.exit(main())
