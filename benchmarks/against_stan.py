"""Time of a gradient: Stan (stanc --O1, Stan Math, g++ -O3 -march=native) against ulam, over a posteriordb checkout.

    python benchmarks/against_stan.py --posteriordb DIR --build-cache DIR [--httpstan DIR] [--only NAME]
        [--target x86-64-v3] [--table] [--results FILE] [--json FILE]
    python benchmarks/against_stan.py --rstanarm CHECKOUTS --build-cache DIR ...

One machine, one run: both sides by turns, as `gradient_turns.py` says. The log density is without constants and with
the Jacobian.

With `--rstanarm` the posteriors are large programs (`rstanarm.py`), from a bare repository
`CHECKOUTS/stan-dev+rstanarm/repo`.

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
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
import processor_levels
from gradient_turns import (
    SAME,
    CompiledSide,
    JobError,
    add_result,
    answer,
    answer_of,
    driver,
    earlier_results,
    find_points,
    names_of_table,
    time_sides,
)  # fmt: skip
from posteriordb import Posterior, posteriors
from public_sources import Repositories
from rstanarm import rstanarm_posteriors
from stan_reference import BuildError, ReferenceBuilder, find_httpstan

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


def measure(job: dict[str, Any]) -> dict[str, Any]:
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
    points, differences = find_points({"Stan": stan, "ulam": compiled})
    if not any(variable.constraint in OTHER_TRANSFORM for variable in compiled.model.parameter_variables()):
        result.difference = differences["ulam"]
    result.rounds = [(a, b) for a, b in time_sides((stan, compiled), points, job["rounds"], job["batches"])]
    result.stan_ns = min(a for a, _ in result.rounds)
    result.ulam_ns = min(b for _, b in result.rounds)
    return asdict(result)


# ---------------------------------------------------------------------- all of them


def measurement_of(values: dict[str, Any]) -> Measurement:
    """A measurement as it was written."""
    return Measurement(**{**values, "rounds": [tuple(pair) for pair in values["rounds"]]})


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
        job = {
            "name": posterior.name,
            "model": str(posterior.model),
            "library": str(library),
            "driver": str(driver(self.builder.cache, self.builder.compiler)),
            "opt_level": self.opt_level,
            "rounds": self.rounds,
            "batches": self.batches,
        }
        try:
            return measurement_of(answer_of(__file__, job, posterior.data, self.timeout, self.environment))
        except JobError as problem:
            return Measurement(posterior.name, problem=str(problem))

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


def all_posteriors(arguments: argparse.Namespace) -> Iterator[Posterior]:
    """Those of posteriordb, or of rstanarm."""
    if arguments.posteriordb is not None:
        return posteriors(arguments.posteriordb)
    folder = arguments.build_cache.resolve() / "rstanarm"
    return rstanarm_posteriors(Repositories(arguments.rstanarm, folder / "extracted"), folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--posteriordb", type=Path, help="checkout of posteriordb")
    source.add_argument("--rstanarm", type=Path, help="folder with a bare repository of rstanarm")
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
        for posterior in all_posteriors(arguments)
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
    known = {result["name"]: measurement_of(result) for result in earlier_results(arguments.results)}
    print(f"# Stan: {builder.description}")
    print(f"# {'posterior':60} {'dim':>5} {'Stan ns':>11} {'ulam ns':>11} {'ratio':>8} gradient difference")
    results: list[Measurement] = []
    for posterior in chosen:
        if posterior.name in known:
            results.append(known[posterior.name])
        else:
            results.append(benchmark.measurement(posterior))
            add_result(arguments.results, asdict(results[-1]))
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
    sys.exit(answer(sys.argv[2], measure) if sys.argv[1:2] == ["--child"] else main())
