"""What the optimization levels, and each of their passes alone, bring and cost.

    python benchmarks/levels.py [--posteriordb DIR] [--only NAME] [--level N]... [--pass NAME]... [--json FILE]
    python benchmarks/levels.py --posteriordb DIR --slower-than 1.05 [--level N] [--against N] [--repeats N]
    python benchmarks/levels.py --scale [--work] [--kind KIND] [--sizes N,N,...] [--pass NAME]... [--json FILE]

For each program, of `examples/` or of a posteriordb checkout, and each way to compile it: nanoseconds per gradient, how
many times faster than level 0 that is, ops of the `stan` dialect after the passes (the program's own functions and
blocks), ops of the lowered gradient, milliseconds of the passes and of compiling all that a first gradient needs. A
pass alone is compared with no passes, both with level 3's floating point.

All ways of a program are measured by turns in one process, in batches of at least 5 ms CPU time of the thread; a round
takes the best batch of each, a ratio is the median over the rounds. `--slower-than` compares two levels only, repeats
that in other processes until most of the repeats agree, and lists what is slower. `--scale`: see `pass_scale.py`.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from gradient_turns import CompiledSide, candidate_points, driver, time_sides
from pass_scale import scale_report
from posteriordb import Posterior, posteriors

EXAMPLES = Path(__file__).parent.parent / "examples"
LEVELS = (0, 1, 2, 3, 4)
BASELINE = "no passes"


@dataclass(frozen=True)
class Way:
    """A way to compile a program: a level, or level 3's floating point with one pass."""

    name: str
    opt_level: int
    pipeline: str | None = None


@dataclass
class Result:
    """What is known of one program compiled in one way."""

    way: str
    nanoseconds: float = math.nan
    ratio: float = math.nan
    """Times faster than level 0; of a pass alone, than without."""
    stan_ops: int = 0
    unit_ops: int = 0
    pass_ms: float = math.nan
    compile_ms: float = math.nan
    difference: float = math.nan
    """Largest difference of the gradient from that of the first way, against its largest entry."""
    problem: str = ""


@dataclass
class Report:
    """The results of one program."""

    program: str
    dim: int = 0
    results: list[Result] = field(default_factory=list)
    problem: str = ""

    def of(self, way: str) -> Result:
        return next(result for result in self.results if result.way == way)


def level_ways(levels: Sequence[int]) -> list[Way]:
    return [Way(f"-O{level}", level) for level in levels]


def pass_ways(names: Sequence[str]) -> list[Way]:
    """Each pass alone, after the baseline that it is compared with."""
    if not names:
        return []
    return [Way(BASELINE, 3, ""), *(Way(name, 3, name) for name in names)]


def level_passes() -> list[str]:
    """The passes of the levels by name: what the table of passes has in `optimize`, and can be run alone."""
    from ulam.passes.pipelines import PASSES

    return [name for name, place in PASSES.items() if place.startswith("ulam.passes.optimize.") and name != "repeat"]


# ---------------------------------------------------------------------- one program


class Side(CompiledSide):
    """A program compiled in one way, ready to be timed."""

    def __init__(self, library: Path, text: str, data: str, way: Way) -> None:
        from ulam.runtime.compile_options import CompileOptions
        from ulam.runtime.data import read_data
        from ulam.runtime.model import Recipe, model_of

        self.way = way
        self._text = text
        self._options = CompileOptions(way.opt_level, (), way.pipeline)
        start = time.process_time()
        model = model_of(Recipe(text, "model.stan", read_data(data), 1234, True, self._options, cache=False))
        super().__init__(library, model)  # compiles the gradient
        self.compile_ms = 1e3 * (time.process_time() - start)

    def count(self, result: Result) -> None:
        """Ops, and the time of the passes."""
        from ulam.dialects.walk import ops_within
        from ulam.passes.known_data import specializing_on
        from ulam.passes.lowering_pipeline import lower, to_value_form
        from ulam.passes.pipelines import run_pipeline
        from ulam.passes.units import UNITS
        from ulam.runtime.compile_options import CompileOptions
        from ulam.runtime.compiler import Compiler
        from ulam.runtime.interpreter_settings import compiling

        module = Compiler(self._text, options=CompileOptions(0)).module
        known = self.model._program.known_data() if self._options.wants_data else None
        with compiling(), specializing_on(known):
            start = time.process_time()
            run_pipeline(module, self._options.passes)
            result.pass_ms = 1e3 * (time.process_time() - start)
            result.stan_ops = stan_ops(module)
            unit = lower(to_value_form(module), UNITS["gradient_propto"], self._options.opt_level)
        result.unit_ops = sum(1 for _ in ops_within(unit.module))
        result.compile_ms = self.compile_ms


def stan_ops(module: Any) -> int:
    """Ops of the program's own functions and blocks."""
    from ulam.dialects.walk import ops_within

    program = module.body.block.first_op
    own = [op for op in program.regions[0].block.ops if "library" not in op.properties]
    return sum(1 for top in own for _ in ops_within(top))


def common_points(sides: Sequence[Side]) -> np.ndarray:
    """Points near each other where all sides have a finite gradient."""
    for points in candidate_points(sides[0].dim):
        if all(side.gradient(point) is not None for side in sides for point in points):
            return points
    raise ValueError("no points with finite gradients")


def measure(posterior: Posterior, ways: Sequence[Way], library: Path, rounds: int, batches: int) -> Report:
    """All ways of one program. One that cannot be compiled is reported and left out."""
    report = Report(posterior.name)
    data = posterior.data
    Side(library, posterior.code, data, ways[0])  # imports, and the machine's description, count for nobody
    sides: list[Side] = []
    for way in ways:
        result = Result(way.name)
        report.results.append(result)
        try:
            sides.append(Side(library, posterior.code, data, way))
            sides[-1].count(result)
        except Exception as problem:  # noqa: BLE001 - every failure is a line of the report
            result.problem = _first_line(problem)
            sides = [side for side in sides if side.way is not way]
    if not sides:
        raise ValueError(report.results[0].problem)
    report.dim = sides[0].dim
    points = common_points(sides)
    times = time_sides(sides, points, rounds, batches)
    names = [side.way.name for side in sides]
    expected = sides[0].gradient(points[0])
    for n, side in enumerate(sides):
        result = report.of(side.way.name)
        result.nanoseconds = min(best[n] for best in times)
        base = names.index(BASELINE) if side.way.pipeline is not None and BASELINE in names else 0
        result.ratio = statistics.median(best[base] / best[n] for best in times)
        actual = side.gradient(points[0])
        if expected is not None and actual is not None:
            scale = max(1.0, float(np.max(np.abs(expected), initial=0)))
            result.difference = float(np.max(np.abs(actual - expected), initial=0)) / scale
    return report


def _first_line(problem: Exception) -> str:
    return f"{type(problem).__name__}: {(str(problem).strip().splitlines() or [''])[0]}"


# ---------------------------------------------------------------------- many programs


@dataclass
class Benchmark:
    """Measures programs, each in a process of its own, so that none can stop the rest."""

    rounds: int
    batches: int
    timeout: float

    @cached_property
    def library(self) -> Path:
        """The timed loop, in a folder that lives as long as this process."""
        self._folder = tempfile.TemporaryDirectory()
        compiler = shutil.which("g++") or shutil.which("c++")
        if compiler is None:
            raise SystemExit("levels.py: a C++ compiler is needed for the timed loop")
        return driver(Path(self._folder.name), compiler)

    def report(self, posterior: Posterior, ways: Sequence[Way], rounds: int | None = None) -> Report:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe(duplex=False)
        job = (posterior, ways, self.library, rounds or self.rounds, self.batches)
        process = context.Process(target=_child, args=(there, job), daemon=True)
        process.start()
        there.close()
        try:
            if not here.poll(self.timeout):
                return Report(posterior.name, problem=f"more than {self.timeout:.0f} s")
            return here.recv()
        except EOFError:
            process.join()
            return Report(posterior.name, problem=f"process ended with {process.exitcode}")
        finally:
            process.kill()
            process.join()


def _child(pipe: Connection, job: tuple[Any, ...]) -> None:
    sys.stdout = open("/dev/null", "w")  # noqa: SIM115 - what models print
    try:
        report = measure(*job)
    except Exception as problem:  # noqa: BLE001
        report = Report(job[0].name, problem=_first_line(problem))
    pipe.send(report)


def examples() -> Iterator[Posterior]:
    for path in sorted(EXAMPLES.glob("*.stan")):
        data = path.with_suffix(".json")
        yield Posterior(path.stem, path, data.read_text(encoding="utf-8") if data.exists() else "{}")


# ---------------------------------------------------------------------- what is printed

COLUMNS = f"{'ops':>8} {'lowered':>8} {'passes, ms':>11} {'compile, ms':>12}"


def report_lines(report: Report) -> Iterator[str]:
    yield f"{report.program} ({report.dim} parameters)" + (f" FAILED {report.problem}" if report.problem else "")
    for result in report.results:
        if result.problem:
            yield f"  {result.way:28} FAILED {result.problem}"
            continue
        times = f"{result.pass_ms:11.1f} {result.compile_ms:12.0f}"
        ops = f"{result.stan_ops:8} {result.unit_ops:8}"
        yield (
            f"  {result.way:28} {result.nanoseconds:10.0f} {result.ratio:7.3f} {ops} {times} {result.difference:8.0e}"
        )


def summary_lines(reports: Sequence[Report]) -> Iterator[str]:
    """Per way: the geometric mean of the ratios, the least, and sums of ops and times."""
    names = list(dict.fromkeys(result.way for report in reports for result in report.results))
    yield f"{len(reports)} programs, {sum(bool(report.problem) for report in reports)} failed"
    yield f"{'':30} {'faster':>7} {'least':>7} {COLUMNS} failed"
    for name in names:
        found = [result for report in reports for result in report.results if result.way == name]
        fine = [result for result in found if not result.problem and result.ratio == result.ratio]
        if not fine:
            yield f"  {name:28} {'':58} {len(found)}"
            continue
        mean = statistics.geometric_mean(result.ratio for result in fine)
        ops, unit_ops = sum(r.stan_ops for r in fine), sum(r.unit_ops for r in fine)
        pass_ms, compile_ms = sum(r.pass_ms for r in fine), sum(r.compile_ms for r in fine)
        least = min(result.ratio for result in fine)
        yield (
            f"  {name:28} {mean:7.3f} {least:7.3f} {ops:8} {unit_ops:8} {pass_ms:11.0f} {compile_ms:12.0f} "
            f"{len(found) - len(fine)}"
        )


def slower(
    benchmark: Benchmark, chosen: Sequence[Posterior], limit: float, levels: tuple[int, int], repeats: int
) -> list[dict[str, Any]]:
    """Programs that the second of two levels slows down by more than `limit` in most repeats, a process for each."""
    ways = level_ways(levels)
    needed = repeats // 2 + 1
    found: list[dict[str, Any]] = []
    means: list[float] = []
    failed = 0
    for posterior in chosen:
        ratios: list[float] = []
        while max(_above(limit, ratios), len(ratios) - _above(limit, ratios)) < needed:
            report = benchmark.report(posterior, ways)
            problem = report.problem or next((r.problem for r in report.results if r.problem), "")
            if problem:
                failed += 1
                print(f"{posterior.name:62} FAILED {problem}", flush=True)
                break
            ratios.append(1 / report.of(ways[1].name).ratio)
            print(f"# {posterior.name}: {ratios[-1]:.3f}", file=sys.stderr, flush=True)
        if ratios:
            means.append(statistics.median(ratios))
        if _above(limit, ratios) >= needed:
            found.append({"program": posterior.name, "times_slower": statistics.median(ratios), "all": ratios})
            print(f"{posterior.name:62} {means[-1]:6.3f} times the time of {ways[0].name}", flush=True)
    mean = statistics.geometric_mean(means) if means else math.nan
    print(
        f"{len(chosen)} programs, {failed} failed, {len(found)} slower than {ways[0].name} by more than {limit:g}; "
        f"on the geometric mean {mean:.3f} times its time"
    )
    return found


def _above(limit: float, ratios: Sequence[float]) -> int:
    return sum(ratio > limit for ratio in ratios)


# ---------------------------------------------------------------------- command line


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--posteriordb", type=Path, help="checkout of posteriordb; without it the programs of examples/")
    add("--only", action="append", default=[], help="programs whose name contains this")
    add("--level", action="append", type=int, choices=LEVELS, help="only these levels, and level 0")
    add("--pass", dest="passes", action="append", help="only these passes alone; `none` for levels only")
    add("--rounds", type=int, default=5)
    add("--batches", type=int, default=4, help="batches of each way in a round")
    add("--timeout", type=float, default=300, help="seconds for one program")
    add("--json", type=Path, help="results as JSON")
    add("--slower-than", type=float, metavar="RATIO", help="list programs slower by more than this")
    add("--against", type=int, choices=LEVELS, default=0, help="with --slower-than: the level to compare with")
    add("--repeats", type=int, default=3, help="with --slower-than: most of so many decide")
    add("--scale", action="store_true", help="growth of pass times with the length of a program")
    add("--work", action="store_true", help="with --scale: of the lines of Python executed, not of time")
    add("--kind", action="append", help="with --scale: only these kinds of programs")
    add("--sizes", type=lambda text: [int(n) for n in text.split(",")], help="with --scale: lines of the programs")
    add("--profile", action="store_true", help="with --scale: functions that take most time at the largest size")
    return parser


def main() -> int:
    arguments = _parser().parse_args()
    passes = level_passes() if arguments.passes is None else [p for p in arguments.passes if p != "none"]
    levels = sorted({0, *arguments.level}) if arguments.level else list(LEVELS)
    if arguments.scale:
        only_passes = arguments.passes is not None and arguments.level is None
        rows = scale_report(
            [] if only_passes else levels, passes, arguments.kind, arguments.sizes, arguments.profile, arguments.work
        )
        _write(arguments.json, rows)
        return 0
    source = examples() if arguments.posteriordb is None else posteriors(arguments.posteriordb)
    chosen = [p for p in source if not arguments.only or any(text in p.name for text in arguments.only)]
    benchmark = Benchmark(arguments.rounds, arguments.batches, arguments.timeout)
    if arguments.slower_than is not None:
        compared = (arguments.against, max(arguments.level or [3]))
        _write(arguments.json, slower(benchmark, chosen, arguments.slower_than, compared, arguments.repeats))
        return 0
    ways = [*level_ways(levels), *pass_ways(passes)]
    reports: list[Report] = []
    print(f"{'':30} {'ns':>10} {'faster':>7} {COLUMNS} {'differs':>8}")
    for posterior in chosen:
        reports.append(benchmark.report(posterior, ways))
        print("\n".join(report_lines(reports[-1])), flush=True)
    print("\n".join(summary_lines(reports)))
    _write(arguments.json, [asdict(report) for report in reports])
    return 0


def _write(path: Path | None, results: Any) -> None:
    if path is not None:
        path.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
