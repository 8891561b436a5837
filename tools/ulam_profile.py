"""`ulam profile`: runs gradients or an optimisation, shows what the program's regions took, and what they cost.

Tables go to standard output, messages and what the program prints to standard error.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import nullcontext, redirect_stdout
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Event, Thread
from typing import TYPE_CHECKING, Any

from ulam.runtime import terminal
from ulam.runtime.comparison import Timing, Vector, first_points, gradient_timer, interleaved
from ulam.runtime.crew import Crew
from ulam.runtime.errors import ArgumentError, Rejection
from ulam.runtime.interrupts import current_limit, held, listen, raise_interrupted
from ulam.runtime.model import StanModel
from ulam.runtime.optimizers.termination import Termination
from ulam.runtime.parallel_jobs import LISTEN_SECONDS, job_seed
from ulam.runtime.profiling.check import RecordedGradient, recorded_gradient
from ulam.runtime.profiling.profiler import Profiler
from ulam.runtime.profiling.records import Overhead
from ulam.runtime.profiling.report import print_profile, profile_record, time_text
from ulam.runtime.results import SCHEMA_VERSION, facts_text, json_text, seconds_text
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import PointCommand
from ulam.tools.options import OPTIONS

if TYPE_CHECKING:
    from ulam.runtime.profiling.line_profile import LineProfile

AUTOMATIC = OPTIONS["auto"].choices
"""What `--auto` puts regions around."""

TRACED_PASSES = 100_000
"""How many of the last passes a trace has."""

CHUNK_SECONDS, LINE_SECONDS = 0.05, 1.0
"""How long a run stays away from Python, which could not be interrupted otherwise; how long lines are sampled."""


@dataclass(kw_only=True)
class ProfileCommand(PointCommand):
    """The arguments of the command."""

    gradients: int
    optimize: bool
    algorithm: str
    quantities: int
    threads: int
    auto: str | None
    output: Path
    no_output: bool
    columns: str
    trace: Path | None
    flame: Path | None
    speedscope: Path | None
    json: str | None
    by_phase: bool
    lines: bool
    notes: list[str] = field(default_factory=list[str])
    run_seconds: list[float] = field(default_factory=list[float])
    """What gradients of each thread took, of the processor."""

    def run(self) -> int:
        # What the program prints would stand between the tables, or spoil the JSON.
        with terminal.programs_print_to(sys.stderr):
            model = self._model(self.auto or True, TRACED_PASSES if self.trace else 0)
            profiler = model.profiler
            if profiler is None and not self.lines:
                raise ArgumentError(self._nothing_to_measure())
            plain = self._model(False)
            points = self._points(plain)
            # First, as it needs a package that may not be there.
            sampled = self._sampled_lines(points[0]) if self.lines else None
            record: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "method": "profile"}
            measured = None
            if profiler is not None:
                self._run_threads(model, points)
                overhead = profiler.overhead()
                record = profile_record(profiler, overhead)
                measured = profiler, overhead, self._write(profiler)
        with redirect_stdout(sys.stderr) if self._fills_standard_output() else nullcontext():
            if measured is not None:
                record |= self._report(model, plain, points[0], *measured)
            if sampled is not None:
                record["lines"] = sampled.to_dict()
                if not is_standard_output(self.json):
                    print(*([""] if profiler is not None else []), sampled, sep="\n")
        if self.json is not None:
            text = json_text(record, None if is_standard_output(self.json) else self.json)
            if is_standard_output(self.json):
                sys.stdout.write(text)
        for note in self.notes:
            tell("warning", note)
        return EXIT_OK

    def _fills_standard_output(self) -> bool:
        """Whether a file that is written is standard output: then tables are not."""
        files = (None if self.no_output else self.output, self.trace, self.flame, self.speedscope)
        return any(map(is_standard_output, files))

    # ------------------------------------------------------------ before the run

    def _model(self, profile: bool | str, events: int = 0, lines: bool = False) -> StanModel:
        return self.loaded(profile=profile, profile_events=events, lines=lines)

    def _nothing_to_measure(self) -> str:
        if self.auto is not None:
            return f"{self.model} has no {self.auto} to measure; there are also " + " and ".join(
                f"--auto={other}" for other in AUTOMATIC if other != self.auto
            )
        return (
            f'{self.model} has no profile statements; write profile("name") {{ ... }} around what is to be measured, '
            f"or let {', '.join(f'--auto={kind}' for kind in AUTOMATIC)} do so without a change of the program"
        )

    def _points(self, plain: StanModel) -> list[Vector]:
        """Where each thread begins: as starts of `ulam optimize --starts`. The search is not part of the profile."""
        init = self.initial()
        return [first_points([plain], init, job_seed(self.seed, k))[0] for k in range(1, self.threads + 1)]

    # ------------------------------------------------------------ the run

    def _run_threads(self, model: StanModel, points: list[Vector]) -> None:
        crew, limit = Crew(), current_limit()
        if len(points) == 1:
            self._run(model, points[0], 1, crew.stopped)
            return
        # Threads, not a pool: a thread of a pool may take the next job when it has done one.
        begin = Barrier(len(points))
        errors: list[BaseException] = []

        def run(point: Vector, number: int) -> None:
            try:
                crew.run(lambda: self._run(model, point, number, crew.stopped, begin), limit)
            except BrokenBarrierError:
                pass  # whose thread has broken it says why
            except BaseException as error:
                errors.append(error)
                crew.stop()
                begin.abort()

        threads = [Thread(target=run, args=(point, k)) for k, point in enumerate(points, 1)]

        def attend() -> None:
            for thread in threads:
                thread.start()
            try:
                for thread in threads:
                    while thread.is_alive():
                        thread.join(LISTEN_SECONDS)
                        listen()
            except BaseException:
                crew.stop()
                begin.abort()
                for thread in threads:
                    thread.join()
                raise

        held(attend)  # an interrupt amid the start or the wait may leave the locks of a thread broken
        if errors:
            raise errors[0]

    def _run(self, model: StanModel, point: Vector, number: int, stop: Event, begin: Barrier | None = None) -> None:
        """What one thread does: gradients or an optimisation, then generated quantities."""
        if begin is not None:
            begin.wait()
        if self.optimize:
            result = model.optimize(self.algorithm, init=point, seed=job_seed(self.seed, number))
            if result.termination is Termination.INTERRUPTED:
                raise_interrupted()
            if not result.converged:
                self.notes.append(f"start {number}: {result.message}")
            point = result.unconstrained
        else:
            self.run_seconds.append(repeat_gradients(model, point, self.gradients, stop))
        rng = model.new_rng(job_seed(self.seed, number))
        for _ in range(self.quantities):
            try:
                model.param_constrain(point, include_tp=True, include_gq=True, rng=rng)
            except Rejection as rejection:
                self.notes.append(f"generated quantities: {rejection}")
                return

    def _sampled_lines(self, point: Vector) -> LineProfile:
        """The lines of the program as it runs without regions, in gradients at a point."""
        from ulam.runtime.profiling.line_profile import sample_lines

        with open(os.devnull, "w") as sink, terminal.programs_print_to(sink):  # many times over
            return sample_lines(self._model(False, lines=True), point, seconds=LINE_SECONDS)

    # ------------------------------------------------------------ the report

    def _write(self, profiler: Profiler) -> list[Path]:
        """The files asked for; their names."""
        written: list[Path] = []
        if not self.no_output:
            written.append(profiler.to_csv(self.output, columns=self.columns))
        writers: list[tuple[Path | None, Callable[[Path], Any]]] = [
            (self.trace, profiler.to_chrome_trace),
            (self.flame, lambda path: profiler.to_flame_graph(path, title=str(self.model))),
            (self.speedscope, profiler.to_speedscope),
        ]
        for path, write in writers:
            if path is not None:
                write(path)
                written.append(path)
        return written

    def _report(
        self,
        model: StanModel,
        plain: StanModel,
        point: Vector,
        profiler: Profiler,
        overhead: Overhead,
        written: list[Path],
    ) -> dict[str, Any]:
        """Prints the tables and the facts; returns the facts that the record has besides."""
        if not is_standard_output(self.json):
            corrected = overhead if self.auto is not None else None
            print_profile(profiler, by_phase=self.by_phase, overhead=corrected)
        recorded = self._recorded(profiler)
        # This adds to the profile, which is read no more. What the program prints has been seen once.
        with open(os.devnull, "w") as sink, terminal.programs_print_to(sink):
            timing = interleaved(gradient_timer(plain, point), gradient_timer(model, point))
        files = [("written", escaped(str(path))) for path in written]
        choices = plain.layout_choices()
        if not is_standard_output(self.json):
            layouts = [("layout", escaped(str(choice))) for choice in choices]
            print(f"\n{facts_text([*self._facts(model, timing, overhead, recorded), *layouts, *files])}")
        elif files:
            print(facts_text(files), file=sys.stderr)
        without, regions = timing.medians
        return {
            "model": str(self.model),
            "regions": self.auto or "profile statements",
            "gradients": None if self.optimize else self.gradients,
            "threads": self.threads,
            "seed": self.seed,
            "seconds_per_gradient": {"with_regions": regions, "without_regions": without},
            "ratio": asdict(timing.ratio),
            "layouts": [choice.to_dict() for choice in choices],
            "recorded": None if recorded is None else {**asdict(recorded), "reason": recorded.reason(regions)},
        }

    def _recorded(self, profiler: Profiler) -> RecordedGradient | None:
        """What the profile has of a gradient; None of an optimization, which evaluates values, too."""
        if not self.run_seconds:
            return None
        run = sum(self.run_seconds) / (self.gradients * len(self.run_seconds))
        return recorded_gradient(profiler, run, len(self.run_seconds))

    def _facts(
        self, model: StanModel, timing: Timing, overhead: Overhead, recorded: RecordedGradient | None
    ) -> list[tuple[str, str]]:
        without, regions = timing.medians
        ratio = timing.ratio
        subtracted = "; subtracted above, but from 'raw'" if self.auto is not None else ""
        work = "optimization" if self.optimize else f"{self.gradients} gradients"
        return [
            ("run", work if self.threads == 1 else f"{work} in each of {self.threads} threads"),
            ("gradient", f"{time_text(regions)} with regions, {time_text(without)} without"),
            *(recorded.facts(regions) if recorded is not None else ()),
            ("cost of regions", f"{ratio} times as long; 95% interval, {ratio.rounds} rounds that take turns"),
            (
                "timers",
                f"{time_text(overhead.inside)} counted per pass and sweep, "
                f"{time_text(overhead.outside)} not counted{subtracted}",
            ),
            ("compile time", seconds_text(model.compile_seconds)),
        ]


def repeat_gradients(model: StanModel, point: Vector, count: int, stop: Event | None = None) -> float:
    """So many gradients at a point, in portions that leave room for interruptions; their seconds of the processor."""
    portion, seconds = 1, 0.0
    while count > 0 and not (stop is not None and stop.is_set()):
        portion = min(portion, count)
        took = model.time_gradients(point, portion)
        count -= portion
        seconds += took
        portion = 2 * portion if took < CHUNK_SECONDS / 2 else max(1, int(portion * CHUNK_SECONDS / took))
    return seconds
