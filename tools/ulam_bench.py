"""`ulam bench`: two versions of a model timed against each other, and whether they are the same density.

The table goes to standard output, warnings to standard error; what the programs print is not shown.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ulam.runtime import terminal
from ulam.runtime.arguments import asked_level
from ulam.runtime.comparison import (
    Agreement,
    Timing,
    Vector,
    agreement,
    differing_parameters,
    first_points,
    gradient_timer,
    interleaved,
    parameter_order,
)
from ulam.runtime.model import StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.profiling.report import time_text
from ulam.runtime.results import SCHEMA_VERSION, facts_text, json_text, number_text, print_table, seconds_text
from ulam.tools.exits import EXIT_OK, UsageError
from ulam.tools.files import is_standard_output
from ulam.tools.messages import tell
from ulam.tools.model_command import PointCommand, Text

PLACEMENT = 0.03
"""How much faster one of two equal versions may be, by where its code and memory happen to be: 0.025 was seen."""

SHOWN_NAMES = 5
"""How many names of parameters a warning has."""


Way = tuple[int | str | None, str | None]
"""How a version is compiled: the level and the passes, one of which is given, or none."""


def _way_text(level: int | str | None, passes: str | None) -> str:
    from ulam.passes.pipelines import DEFAULT_LEVEL

    if passes is None:
        return f"-O{DEFAULT_LEVEL if level is None else level}"
    return f"--passes {passes if passes else repr(passes)}"


@dataclass(kw_only=True)
class BenchCommand(PointCommand):
    """The arguments of the command."""

    vs: Path | NamedText | None
    vs_data: Text | None
    vs_opt_level: str | None
    vs_passes: str | None
    gradients: int | None
    rounds: int
    json: str | None
    warnings: list[str] = field(default_factory=list[str])

    def run(self) -> int:
        if all(other is None for other in (self.vs, self.vs_data, self.vs_opt_level, self.vs_passes)):
            raise UsageError("give another version by --vs, --vs-data, --vs-opt-level or --vs-passes")
        with open(os.devnull, "w") as sink, terminal.programs_print_to(sink):  # many times over
            found: Agreement | None = None
            # Other copies of the models are asked for points, lest their units count in the compile times. The first
            # of them also loads the compiler.
            points = self._points()
            models = self._models()
            if len(points) == 2:
                self._warn_of_parameters(models)
            else:
                order = parameter_order(*models)
                assert order is not None
                found = agreement(*models, points[0], order)
                self._warn_of_difference(found)
                points.append(points[0][order])
            timers = [gradient_timer(model, point) for model, point in zip(models, points, strict=True)]
            timing = interleaved(*timers, rounds=self.rounds, count=self.gradients)
        record = self._record(models, timing, found)
        if is_standard_output(self.json):
            sys.stdout.write(json_text(record))
        else:
            self._print(models, timing, found)
            if self.json is not None:
                json_text(record, self.json)
        for warning in self.warnings:
            tell("warning", warning)
        return EXIT_OK

    def _models(self) -> tuple[StanModel, StanModel]:
        return (
            self._compiled(self.model, self.data, *self._ways()[0]),
            self._compiled(
                self.vs or self.model, self.data if self.vs_data is None else self.vs_data, *self._ways()[1]
            ),
        )

    def _points(self) -> list[Vector]:
        """An initial point of the first version, if both have the same parameters; else of each."""
        first, second = self._models()
        init = self.initial()
        points = first_points([first], init, self.seed)
        return (
            points if parameter_order(first, second) is not None else points + first_points([second], init, self.seed)
        )

    def _ways(self) -> tuple[Way, Way]:
        """Level and passes of both versions; the other's are those of the first unless one of the two is given."""
        first = asked_level(self.opt_level), self.passes
        if self.vs_opt_level is None and self.vs_passes is None:
            return first, first
        return first, (asked_level(self.vs_opt_level), self.vs_passes)

    def _compiled(
        self, source: Path | NamedText, data: Text | None, level: int | str | None, passes: str | None
    ) -> StanModel:
        """A version without profile statements, which would cost time; not from the cache, to time compiling."""
        return self.loaded(source=source, data=data, opt_level=level, passes=passes, profile=False)

    def _names(self) -> tuple[str, str]:
        """What tells the versions apart: files, data, levels, passes."""
        names = [str(self.model), str(self.vs or self.model)]
        ways = self._ways()
        if ways[0] != ways[1]:
            names = [f"{name} {_way_text(*way)}" for name, way in zip(names, ways, strict=True)]
        if names[0] == names[1]:
            names = [f"{names[0]} (1)", f"{names[1]} (2)"]
        return names[0], names[1]

    def _warn_of_parameters(self, models: tuple[StanModel, StanModel]) -> None:
        parts = [
            f"only {name} has {_shortened(only)}"
            for name, only in zip(self._names(), differing_parameters(*models), strict=True)
            if only
        ]
        self.warnings.append(
            f"the versions differ in their parameters: {'; '.join(parts) or 'some names are there twice'}. "
            "Each is timed at an initial point of its own, and their densities are not compared"
        )

    def _warn_of_difference(self, found: Agreement) -> None:
        if not found.same:
            self.warnings.append(
                "the versions are different densities: the difference of their log densities varies by "
                f"{number_text(found.spread, 2)} (relative), gradients differ by up to {number_text(found.gradient, 2)}"
            )

    # ------------------------------------------------------------ the report

    def _print(self, models: tuple[StanModel, StanModel], timing: Timing, found: Agreement | None) -> None:
        names, ratio = self._names(), timing.ratio
        rows = [
            (name, str(model.param_unc_num()), time_text(median), seconds_text(model.compile_seconds))
            for name, model, median in zip(names, models, timing.medians, strict=True)
        ]
        print_table(("version", "parameters", "per gradient", "compile time"), rows)
        counts = " and ".join(map(str, dict.fromkeys(timing.counts)))
        facts = [
            ("ratio", f"{ratio.value:.4g}; 95% interval {ratio.low:.4g} to {ratio.high:.4g}"),
            ("", f"{names[1]} {_verdict(ratio.low, ratio.high)} {names[0]}"),
            ("measured", f"{ratio.rounds} rounds that take turns, {counts} gradients in each"),
        ]
        if found is not None:
            facts += [
                ("log density", f"differs by {number_text(found.offset)}, the same at {found.points} points"),
                ("gradient", f"differs by {number_text(found.gradient, 2)} at most (relative)"),
            ]
            if not found.same:
                facts[-2] = (
                    "log density",
                    f"differs by {number_text(found.offset)} on average, by other amounts elsewhere",
                )
        print(f"\n{facts_text(facts)}")

    def _record(self, models: tuple[StanModel, StanModel], timing: Timing, found: Agreement | None) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "method": "bench",
            "versions": [
                {
                    "name": name,
                    "parameters": model.param_unc_num(),
                    "seconds_per_gradient": median,
                    "compile_seconds": model.compile_seconds,
                    "gradients_per_round": count,
                    "rounds": timing.seconds[:, which].tolist(),
                }
                for which, (name, model, median, count) in enumerate(
                    zip(self._names(), models, timing.medians, timing.counts, strict=True)
                )
            ],
            "ratio": {**asdict(timing.ratio), "interval": "percentile bootstrap of the median, 95%"},
            "agreement": None if found is None else {**asdict(found), "same": found.same},
            "warnings": self.warnings,
        }


def _verdict(low: float, high: float) -> str:
    """What the interval of the ratio says."""
    if low > 1 + PLACEMENT:
        return "is slower than"
    return "is faster than" if high < 1 / (1 + PLACEMENT) else "cannot be told apart in speed from"


def _shortened(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + more
