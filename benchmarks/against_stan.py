"""Time of a gradient: Stan (stanc --O1, Stan Math, g++ -O3 -march=native) against ulam, over a posteriordb checkout.

    python benchmarks/against_stan.py --posteriordb DIR --build-cache DIR [--httpstan DIR] [--only NAME]
        [--target x86-64-v3] [--table] [--results FILE] [--json FILE]

One machine, one run: both sides by turns in one thread, the order swapped from round to round, CPU time of the thread,
batches of at least 5 ms, the best batch counts, and the point changes from call to call. The log density is without
constants and with the Jacobian. Each posterior is measured in a process of its own, so that none can stop the rest.

`--target x86-64-v3` is as on a processor with AVX2 and without AVX-512, on both sides: g++ has it as `-march`, ulam in
`ULAM_TARGET_CPU`. With `--results` a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
import processor_levels
from posteriordb import Posterior, posteriors
from stan_reference import HERE, BuildError, ReferenceBuilder, find_httpstan, run

POINTS = 8
SCALES = (0.5, 0.1, 0.02, 2.0)
PHASES = 6
BATCH_SECONDS = 5e-3
SAME = 1e-8
NAMED_BELOW = 1.3
TARGETS = ("x86-64-v2", "x86-64-v3", "x86-64-v4")

# Stan's transform of these is another one since 2.37: values at an unconstrained point cannot be compared.
OTHER_TRANSFORM = frozenset({"simplex", "column_stochastic_matrix", "row_stochastic_matrix"})


@dataclass
class Measurement:
    """What is known of one posterior. `problem` is empty if all went well."""

    name: str
    dim: int = 0
    stan_ns: float = math.nan
    ulam_ns: float = math.nan
    difference: float = math.nan
    problem: str = ""
    rounds: list[tuple[float, float]] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """How many times faster than Stan."""
        return self.stan_ns / self.ulam_ns

    def line(self) -> str:
        """The line of the report."""
        if self.problem:
            return f"{self.name:62} FAILED {self.problem}"
        difference = "not comparable" if math.isnan(self.difference) else f"{self.difference:.1e}"
        note = "  DIFFERENT" if self.difference > SAME else ""
        times = f"{self.stan_ns:11.0f} {self.ulam_ns:11.0f} {self.ratio:8.2f}"
        return f"{self.name:62} {self.dim:5} {times} {difference}{note}"


# ---------------------------------------------------------------------- one posterior, in its own process


class ReferenceSide:
    """A reference model with data, in this process."""

    def __init__(self, library: Path, data: Path) -> None:
        loaded = ctypes.CDLL(str(library))
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        loaded.reference_new.restype = pointer
        loaded.reference_new.argtypes = [ctypes.c_char_p, ctypes.c_char_p, i64]
        loaded.reference_dim.restype = i64
        loaded.reference_dim.argtypes = [pointer]
        loaded.reference_gradient.argtypes = [pointer] * 4
        self._time = loaded.reference_time
        self._time.restype = ctypes.c_double
        self._time.argtypes = [pointer, pointer, i64, i64, i64]
        self._gradient = loaded.reference_gradient
        message = ctypes.create_string_buffer(400)
        self._model = loaded.reference_new(str(data).encode(), message, len(message))
        if not self._model:
            raise ValueError(f"Stan refuses the data: {message.value.decode(errors='replace')}")
        self.dim: int = loaded.reference_dim(self._model)

    def gradient(self, theta: np.ndarray) -> np.ndarray | None:
        """None if it is refused there, or not finite."""
        out = np.empty(self.dim)
        value = ctypes.c_double()
        status = self._gradient(self._model, theta.ctypes.data, out.ctypes.data, ctypes.addressof(value))
        return out if status == 0 and math.isfinite(value.value) and np.isfinite(out).all() else None

    def seconds(self, points: np.ndarray, calls: int) -> float:
        return self._time(self._model, points.ctypes.data, len(points), self.dim, calls)


class CompiledSide:
    """The same of ulam: a `StanModel`."""

    def __init__(self, driver: Path, model: Any) -> None:
        from ulam.runtime.c_library import library
        from ulam.runtime.native import Context

        self.model = model
        self.dim = self.model.param_unc_num()
        self._unit = self.model._program.unit("gradient_propto")
        self._context = Context()
        self._run = ctypes.cast(library().ulam_run_gradient, ctypes.c_void_p)
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        self._time = ctypes.CDLL(str(driver)).compiled_time
        self._time.restype = ctypes.c_double
        self._time.argtypes = [pointer] * 5 + [i64] * 3

    def gradient(self, theta: np.ndarray) -> np.ndarray | None:
        import ulam

        try:
            value, out = self.model.log_density_gradient(theta)
        except ulam.UlamError:
            return None
        return out if math.isfinite(value) and np.isfinite(out).all() else None

    def seconds(self, points: np.ndarray, calls: int) -> float:
        context, unit = self._context, self._unit
        return self._time(
            self._run, context.address, unit.entry, unit.bound, points.ctypes.data, len(points), self.dim, calls
        )


Side = ReferenceSide | CompiledSide


def candidate_points(dim: int) -> Iterator[np.ndarray]:
    """Groups of points near each other, the first ones away from the origin; a model may refuse the most of them."""
    index = np.arange(dim)
    offsets = np.array([np.sin(1.3 * index + 0.9 * k) for k in range(POINTS)]).reshape(POINTS, dim)
    for scale in SCALES:
        for phase in range(PHASES):
            yield scale * (np.sin(1.7 * index + 0.4 + 2.4 * phase) + 0.1 * offsets)


def find_points(sides: tuple[Side, Side]) -> tuple[np.ndarray, float]:
    """Points where both sides have a finite gradient, and the largest difference of the gradients there."""
    refused: set[str] = set()
    for points in candidate_points(sides[0].dim):
        found = [[side.gradient(point) for side in sides] for point in points]
        missing = {name for pair in found for name, g in zip(("Stan", "ulam"), pair, strict=True) if g is None}
        if not missing:
            stan, compiled = np.array(found, dtype=float).swapaxes(0, 1)
            return points, float(np.max(np.abs(stan - compiled) / np.maximum(1, np.abs(stan)), initial=0))
        refused |= missing
    raise ValueError(f"no points with finite gradients on both sides (refused by {' and '.join(sorted(refused))})")


def calls_per_batch(side: Side, points: np.ndarray, batch_seconds: float) -> int:
    calls = 1
    while (seconds := side.seconds(points, calls)) < batch_seconds:
        if seconds < 0:
            raise ValueError("an evaluation fails now that did not before")
        calls = max(2 * calls, min(100 * calls, int(1.2 * calls * batch_seconds / max(seconds, 1e-9))))
    return calls


def measure(job: dict[str, Any]) -> Measurement:
    """The work of a process."""
    import ulam

    result = Measurement(job["name"])
    model, data = Path(job["model"]), Path(job["data"])
    stan = ReferenceSide(Path(job["library"]), data)
    text = data.read_text(encoding="utf-8")
    compiled = CompiledSide(Path(job["driver"]), ulam.StanModel(model, data=text, opt_level=job["opt_level"]))
    result.dim = compiled.dim
    if stan.dim != compiled.dim:
        raise ValueError(f"{stan.dim} unconstrained parameters in Stan, {compiled.dim} in ulam")
    points, difference = find_points((stan, compiled))
    if not any(variable.constraint in OTHER_TRANSFORM for variable in compiled.model.parameter_variables()):
        result.difference = difference
    sides: list[Side] = [stan, compiled]
    calls = {id(side): calls_per_batch(side, points, BATCH_SECONDS) for side in sides}
    for _ in range(job["rounds"]):
        best = {id(side): math.inf for side in sides}
        for _ in range(job["batches"]):
            for side in sides:
                best[id(side)] = min(best[id(side)], side.seconds(points, calls[id(side)]) / calls[id(side)] * 1e9)
        sides.reverse()
        result.rounds.append((best[id(stan)], best[id(compiled)]))
    result.stan_ns = min(a for a, _ in result.rounds)
    result.ulam_ns = min(b for _, b in result.rounds)
    return result


def child(job_file: str) -> int:
    """Measures the job of a file and writes the result beside it. Text printed by models stays apart from it."""
    path = Path(job_file)
    job = json.loads(path.read_text(encoding="utf-8"))
    try:
        result = measure(job)
    except Exception as problem:  # noqa: BLE001 - every failure is a line of the report
        text = (str(problem).strip().splitlines() or [""])[0]
        result = Measurement(job["name"], problem=f"{type(problem).__name__}: {text}")
    path.with_suffix(".result").write_text(json.dumps(asdict(result)), encoding="utf-8")
    return 0


# ---------------------------------------------------------------------- all of them


def measurement_of(values: dict[str, Any]) -> Measurement:
    """A measurement as it was written."""
    return Measurement(**{**values, "rounds": [tuple(pair) for pair in values["rounds"]]})


def earlier_results(path: Path | None) -> list[Measurement]:
    """What a run that was stopped has measured."""
    if path is None or not path.exists():
        return []
    return [measurement_of(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def names_of_table() -> frozenset[str]:
    """The posteriors of the table in docs/performance.md."""
    text = (HERE.parent / "docs" / "performance.md").read_text(encoding="utf-8")
    rows = text.partition("| posterior | dim |")[2].partition("\n\n")[0].splitlines()[2:]
    return frozenset(row.split("|")[1].strip() for row in rows)


def driver(folder: Path, compiler: str) -> Path:
    """The loop that calls ulam's entries, built into `folder`."""
    sources = [HERE / "compiled_gradient.cpp", HERE / "gradient_loop.hpp"]
    library = folder / "compiled_gradient.so"
    if not library.exists() or library.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        run([compiler, "-O2", "-shared", "-fPIC", str(sources[0]), "-o", str(library)], HERE)
    return library


@dataclass
class Benchmark:
    """Builds, then measures."""

    builder: ReferenceBuilder
    opt_level: int
    rounds: int
    batches: int
    timeout: float
    environment: dict[str, str]

    def measured(self, posterior: Posterior, library: Path) -> Measurement:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "data.json").write_text(posterior.data, encoding="utf-8")
            job = {
                "name": posterior.name,
                "model": str(posterior.model),
                "data": str(folder / "data.json"),
                "library": str(library),
                "driver": str(driver(self.builder.cache, self.builder.compiler)),
                "opt_level": self.opt_level,
                "rounds": self.rounds,
                "batches": self.batches,
            }
            path = folder / "job.json"
            path.write_text(json.dumps(job), encoding="utf-8")
            command = [sys.executable, __file__, "--child", str(path)]
            try:
                done = subprocess.run(
                    command, capture_output=True, text=True, timeout=self.timeout, env=self.environment
                )
            except subprocess.TimeoutExpired:
                return Measurement(posterior.name, problem=f"more than {self.timeout:.0f} s")
            result = path.with_suffix(".result")
            if not result.exists():
                lines = done.stderr.strip().splitlines() or ["no message"]
                return Measurement(posterior.name, problem=f"process ended with {done.returncode}: {lines[-1]}")
            return measurement_of(json.loads(result.read_text(encoding="utf-8")))

    def measurement(self, posterior: Posterior) -> Measurement:
        try:
            return self.measured(posterior, self.builder.build(posterior.model))
        except BuildError as problem:
            return Measurement(posterior.name, problem=f"reference not built: {problem}")


def build_all(builder: ReferenceBuilder, models: list[Path], jobs: int) -> None:
    """Fills the cache; what fails is reported with its posteriors."""

    def build(model: Path) -> None:
        try:
            builder.build(model)
        except BuildError as problem:
            print(f"{model.stem}: {problem}", file=sys.stderr, flush=True)

    missing = [model for model in models if not builder.library(model).exists()]
    if not missing:
        return
    print(f"# building {len(missing)} reference models", file=sys.stderr, flush=True)
    build(missing[0])  # makes the precompiled header, which all share
    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(build, missing[1:]))


def summary(results: list[Measurement]) -> str:
    """Geometric mean, median and minimum of the ratios."""
    timed = [result for result in results if not result.problem]
    if not timed:
        return "no posterior could be measured"
    ratios = [result.ratio for result in timed]
    above = {bar: sum(ratio >= bar for ratio in ratios) for bar in (1, 3, 6)}
    slowest = min(timed, key=lambda result: result.ratio)
    wrong = sum(result.difference > SAME for result in timed)
    return (
        f"{len(timed)} posteriors, {len(results) - len(timed)} failed, {wrong} with other gradients: geometric mean "
        f"{statistics.geometric_mean(ratios):.2f}, median {statistics.median(ratios):.2f}, minimum {slowest.ratio:.2f} "
        f"({slowest.name}); " + ", ".join(f"{count} at least {bar} times as fast" for bar, count in above.items())
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, required=True, help="checkout of posteriordb")
    parser.add_argument("--httpstan", type=Path, help="folder of the package httpstan, or of an environment with it")
    parser.add_argument("--build-cache", type=Path, required=True, help="reference models are kept here")
    parser.add_argument("--only", action="append", default=[], help="posteriors whose name contains this")
    parser.add_argument("--built-only", action="store_true", help="only those whose reference model is built already")
    parser.add_argument("--build-only", action="store_true", help="fill the cache and measure nothing")
    parser.add_argument("--jobs", type=int, default=1, help="reference models that are built at a time")
    parser.add_argument("--target", choices=TARGETS, help="both sides as for this processor, not this machine's")
    parser.add_argument("--table", action="store_true", help="only the posteriors of the table of docs/performance.md")
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=6, help="batches of each side in a round")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one posterior")
    parser.add_argument("--results", type=Path, help="a file of results, which is continued")
    parser.add_argument("--json", type=Path, help="results as JSON")
    arguments = parser.parse_args()
    httpstan = find_httpstan(arguments.httpstan)
    if httpstan is None:
        print("skipped: no httpstan package with stanc (pip install httpstan, or --httpstan DIR)")
        return 0
    builder = ReferenceBuilder(httpstan, arguments.build_cache.resolve(), march=arguments.target or "native")
    table = names_of_table() if arguments.table else None
    chosen = [
        posterior
        for posterior in posteriors(arguments.posteriordb)
        if (not arguments.only or any(text in posterior.name for text in arguments.only))
        and (table is None or posterior.name in table)
    ]
    if arguments.built_only:
        chosen = [posterior for posterior in chosen if builder.library(posterior.model).exists()]
    build_all(builder, list(dict.fromkeys(posterior.model for posterior in chosen)), arguments.jobs)
    if arguments.build_only:
        return 0
    environment = processor_levels.surroundings(arguments.target[-2:]) if arguments.target else dict(os.environ)
    benchmark = Benchmark(
        builder, arguments.opt_level, arguments.rounds, arguments.batches, arguments.timeout, environment
    )
    known = {result.name: result for result in earlier_results(arguments.results)}
    print(f"# Stan: {builder.description}")
    print(f"# {'posterior':60} {'dim':>5} {'Stan ns':>11} {'ulam ns':>11} {'ratio':>8} gradient difference")
    results: list[Measurement] = []
    for posterior in chosen:
        if posterior.name in known:
            results.append(known[posterior.name])
        else:
            results.append(benchmark.measurement(posterior))
            if arguments.results is not None:
                with arguments.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(asdict(results[-1])) + "\n")
        print(results[-1].line(), flush=True)
    print(summary(results))
    if slow := [result for result in results if not result.problem and result.ratio < NAMED_BELOW]:
        print(f"below {NAMED_BELOW}: " + ", ".join(f"{result.name} {result.ratio:.2f}" for result in slow))
    if arguments.json is not None:
        measured = [asdict(result) for result in results]
        report = {"stan": builder.description, "opt_level": arguments.opt_level, "results": measured}
        arguments.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(child(sys.argv[2]) if sys.argv[1:2] == ["--child"] else main())
