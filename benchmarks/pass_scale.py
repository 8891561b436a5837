"""How the time of passes and levels grows with the length of a program: `levels.py --scale`.

Programs of each kind are generated in growing lengths, lowered once, and each pass alone, and each level, runs on a
copy; the least CPU time of some runs counts. Twice the length may cost at most 2.2 times. What looks worse is measured
again before it is called so. With `--work` what is measured is the number of lines of Python that are executed, which
depends neither on the machine nor on what else it does; its limit is `WORK_LIMIT`. Then, for a model of 300 lines: what
each level adds to compiling it.
"""

from __future__ import annotations

import gc
import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compile_time import compile_seconds
from generated_programs import KINDS, mixed, program_of

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from ulam.passes.known_data import KnownData

LIMIT = 2.2
WORK_LIMIT = 2.1
SIZES = (250, 500, 1000, 2000, 4000)
SHORTEST = 20e-3
"""Seconds below which a growth says nothing."""
LONGEST = 20.0
"""Seconds after which longer programs are left out."""
ADDED_LIMIT = 0.5
"""Seconds that level 3 may add for the 300 lines of `generated_programs.mixed(40)`."""


def lowered(text: str) -> ModuleOp:
    """The program in the `stan` dialect, before all passes."""
    from ulam.runtime.compile_options import CompileOptions
    from ulam.runtime.compiler import Compiler

    return Compiler(text, options=CompileOptions(0)).module


def plausible_data(module: ModuleOp) -> KnownData:
    """Data for `specialize-data`: sizes of 8, small numbers."""
    import numpy as np

    from ulam.dialects import stan
    from ulam.passes.known_data import KnownData

    values: dict[str, Any] = {}
    for block in module.body.block.ops.first.regions[0].block.ops:  # type: ignore[union-attr]
        if not isinstance(block, stan.BlockOp) or block.kind.data != "data":
            continue
        for op in block.body.block.ops:
            if isinstance(op, stan.DeclareOp):
                type_ = op.res.type.element
                shape = (8,) * stan.dimensions(type_)
                is_int = stan.scalar_of(type_) == stan.INT
                values[op.var_name.data] = np.full(shape, 8, np.int32) if is_int else np.full(shape, 0.5)
    return KnownData(values, {name: value.shape for name, value in values.items()})


# ---------------------------------------------------------------------- measuring


@dataclass
class Growth:
    """The times of one pass or level on programs of one kind."""

    kind: str
    what: str
    lines: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """Or millions of lines that were executed."""
    counted: bool = False
    problem: str = ""

    @property
    def limit(self) -> float:
        return WORK_LIMIT if self.counted else LIMIT

    @property
    def is_above(self) -> bool:
        return self.worst > self.limit

    @property
    def ratios(self) -> list[float]:
        """Growth per doubling of the length, for each step that is long enough to tell."""
        found: list[float] = []
        steps = zip(self.lines, self.lines[1:], self.seconds, self.seconds[1:], strict=False)
        for before, after, first, second in steps:
            if first >= SHORTEST:
                found.append((second / first) ** (math.log(2) / math.log(after / before)))
        return found

    @property
    def worst(self) -> float:
        return max(self.ratios, default=math.nan)

    def line(self) -> str:
        times = " ".join(f"{1e3 * seconds:8.1f}" for seconds in self.seconds)
        verdict = f"{self.worst:6.2f}" if self.ratios else "     -"
        mark = "  ABOVE THE LIMIT" if self.is_above else ""
        failure = f"  FAILED {self.problem}" if self.problem else ""
        return f"{self.kind:14} {self.what:30} {verdict}  {times}{mark}{failure}"


def pass_seconds(module: ModuleOp, pipeline: str, known: KnownData) -> float:
    """CPU seconds of a pipeline on a copy of the module."""
    from ulam.passes.known_data import specializing_on
    from ulam.passes.pipelines import run_pipeline
    from ulam.runtime.interpreter_settings import compiling

    with compiling(), specializing_on(known):
        copy = module.clone()
        start = time.process_time()
        run_pipeline(copy, pipeline)
        return time.process_time() - start


def least_seconds(module: ModuleOp, pipeline: str, known: KnownData, runs: int) -> float:
    best = math.inf
    for _ in range(runs):
        best = min(best, pass_seconds(module, pipeline, known))
        gc.collect()
        if best > 2:
            break
    return best


def lines_executed_by(module: ModuleOp, pipeline: str, known: KnownData) -> int:
    """Lines of Python that a pipeline executes on a copy of the module."""
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
    from work import lines_executed

    from ulam.passes.known_data import specializing_on
    from ulam.passes.pipelines import run_pipeline
    from ulam.runtime.interpreter_settings import compiling

    with compiling(), specializing_on(known):
        copy = module.clone()
        return lines_executed(lambda: run_pipeline(copy, pipeline))


def growth_of(
    kind: str, what: str, pipeline: str, modules: Sequence[tuple[int, ModuleOp, KnownData]], counted: bool
) -> Growth:
    growth = Growth(kind, what, counted=counted)
    try:
        if counted:  # what is imported or made at first use is not to be counted
            least_seconds(modules[0][1], pipeline, modules[0][2], 1)
        for lines, module, known in modules:
            growth.lines.append(lines)
            if counted:
                growth.seconds.append(lines_executed_by(module, pipeline, known) / 1e6)
                continue
            growth.seconds.append(least_seconds(module, pipeline, known, 2))
            if growth.seconds[-1] > LONGEST:
                break
        for _ in range(5):
            if counted or not growth.is_above:
                break
            for n, (_, module, known) in enumerate(modules[: len(growth.seconds)]):
                growth.seconds[n] = min(growth.seconds[n], least_seconds(module, pipeline, known, 2))
    except Exception as problem:  # noqa: BLE001 - every failure is a line of the report
        text = str(problem).strip().splitlines() or [""]
        growth.problem = f"{type(problem).__name__}: {text[0]}"
        del growth.lines[len(growth.seconds) :]
    return growth


def added_seconds(levels: Sequence[int]) -> Iterator[dict[str, Any]]:
    """What compiling 300 lines takes at each level: CPU seconds of the passes, and of all."""
    from ulam.passes.pipelines import level_pipeline

    text = mixed(40)
    module = lowered(text)
    known = plausible_data(module)
    for level in levels:
        passes = least_seconds(module, level_pipeline(level), known, 3)
        total = min(sum(compile_seconds(text, level)[:2]) for _ in range(2))
        yield {"level": level, "lines": text.count("\n"), "passes": passes, "compile": total}


def show_profile(pipeline: str, module: ModuleOp, known: KnownData) -> None:
    import cProfile
    import pstats

    profiler = cProfile.Profile()
    profiler.runcall(pass_seconds, module, pipeline, known)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(15)


def scale_report(
    levels: Sequence[int],
    passes: Sequence[str],
    kinds: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    profile: bool = False,
    counted: bool = False,
) -> list[dict[str, Any]]:
    """Prints the table, and returns its rows."""
    from ulam.passes.pipelines import level_pipeline

    work = [(name, name) for name in passes] + [(f"-O{n}", level_pipeline(n)) for n in levels if level_pipeline(n)]
    least_seconds(lowered("parameters { real x; } model { x ~ std_normal(); }"), "", plausible_data_of_none(), 1)
    rows: list[dict[str, Any]] = []
    above: list[Growth] = []
    what = "thousands of lines executed" if counted else "milliseconds"
    print(f"{'kind':14} {'pass or level':30} {'growth':>6}  {what} at {', '.join(map(str, sizes or SIZES))} lines")
    for kind in kinds or KINDS:
        modules: list[tuple[int, ModuleOp, KnownData]] = []
        for lines in sizes or SIZES:
            text = program_of(kind, lines)
            module = lowered(text)
            modules.append((text.count("\n"), module, plausible_data(module)))
        for what, pipeline in work:
            growth = growth_of(kind, what, pipeline, modules, counted)
            print(growth.line(), flush=True)
            rows.append({**asdict(growth), "growth": growth.worst})
            if growth.is_above:
                above.append(growth)
            if profile:
                show_profile(pipeline, *modules[-1][1:])
    print(f"{len(rows)} rows, {len(above)} grow by more than {WORK_LIMIT if counted else LIMIT} per doubling")
    if levels and not counted:
        base = None
        for row in added_seconds(levels):
            base = row["compile"] if base is None else base
            row["added"] = row["compile"] - base
            mark = "  ABOVE THE LIMIT" if row["passes"] > ADDED_LIMIT else ""
            print(
                f"-O{row['level']} on {row['lines']} lines: passes {row['passes']:.3f} s, all of compiling "
                f"{row['compile']:.3f} s, {row['added']:+.3f} s against -O{levels[0]}{mark}"
            )
            rows.append(row)
    return rows


def plausible_data_of_none() -> KnownData:
    from ulam.passes.known_data import KnownData

    return KnownData({}, {})
