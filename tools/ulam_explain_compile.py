"""`ulam explain-compile`: what each pass makes of a program, as a table or as a page.

The table goes to standard output, the page to the file of `--html`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ulam.passes.units import UNITS
from ulam.runtime.arguments import asked_level, chosen_level, read_source
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compile_record import PHASES, CompileRecord, record_compile
from ulam.runtime.output_files import write_text
from ulam.runtime.program import compile_errors
from ulam.runtime.results import facts_text
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK, UsageError
from ulam.tools.files import is_standard_output
from ulam.tools.model_command import ModelCommand, Vector
from ulam.tools.stan_opt_explain import layout_remarks, shown_remarks

if TYPE_CHECKING:
    from ulam.passes.remarks import Remark
    from ulam.runtime.model import StanModel
    from ulam.runtime.profiling.line_profile import LineProfile

SAMPLED_SECONDS = 0.5
"""How long gradients are sampled to see what lines cost."""

NOT_MEASURED = "What lines cost was not measured."
NO_DATA = "What lines cost is measured with --data."


@dataclass(kw_only=True)
class ExplainCompileCommand(ModelCommand):
    """The arguments of the command."""

    html: Path | None
    unit: str
    costs: bool
    title: str | None

    def run(self) -> int:
        if self.unit not in UNITS:
            raise UsageError(f"--unit: there is no unit '{self.unit}'; there are {', '.join(UNITS)}")
        if self.title is not None and self.html is None:
            raise UsageError("--title is for a page: give its file with --html")
        record = self._record()
        if self.html is None:
            if self.data is not None:
                self.loaded()  # tells what is wrong with them
            print("\n".join(table(record)))
            return EXIT_OK
        from ulam.runtime.html_report.compile_page import compile_page

        costs, layouts = self._measured()
        remarks = shown_remarks([*record.remarks, *layouts])
        text = compile_page(record, remarks, costs, self._facts(), self.title or "")
        write_text(self.html, text)
        if not is_standard_output(self.html):
            rows = [("passes", f"{sum(not run.has_steps for run in record.runs)} runs"), *self._written()]
            print(facts_text(rows))
        return EXIT_OK

    def _written(self) -> list[tuple[str, str]]:
        return [("written", escaped(str(self.html)))]

    def _options(self) -> CompileOptions:
        paths = tuple(map(os.fspath, self.include_path or ()))
        level = chosen_level(asked_level(self.opt_level), self.passes)
        return CompileOptions(include_paths=paths, lines=True, layouts=self.layouts, few_passes=False, **level)

    def _record(self) -> CompileRecord:
        from ulam.tools.stan_opt_data import known_data

        text, name = read_source(self.model)
        options = self._options()
        with compile_errors():
            known = known_data(text, name, self.data, options.include_paths) if options.wants_data else None
            return record_compile(text, name, options, self.unit, known)

    def _facts(self) -> list[tuple[str, str]]:
        from ulam.emit.jit import host

        kind, _, which = self._options().level_text.partition(" ")
        return [(kind if kind == "level" else "pipeline", which), ("processor", host().cpu)]

    def _measured(self) -> tuple[LineProfile | str, list[Remark]]:
        """What lines cost and what layouts the data have got; of a program that has none, or with `--data`."""
        if self.data is None:
            return NO_DATA, []
        model = self.loaded()
        layouts = layout_remarks(model.layout_choices())
        if not self.costs:
            return NOT_MEASURED, layouts
        from ulam.runtime.comparison import first_points
        from ulam.runtime.html_report.line_costs import sampled

        def point(model: StanModel) -> Vector:
            return first_points([model], None, self.seed)[0]

        return sampled(lambda: self.loaded(lines=True), point, SAMPLED_SECONDS), layouts


def table(record: CompileRecord) -> Iterator[str]:
    """The passes with their times, and how many ops there were before and behind each; steps are indented."""
    yield f"{'ms':>8} {'ops':>6} {'change':>7}  pass"
    phase = ""
    for run in record.runs:
        if run.phase != phase:
            phase = run.phase
            yield f"{'':24}{PHASES[phase]}"
        change = f"{run.after - run.before:+}" if run.before and run.after != run.before else ""
        change = change or ("" if run.changed is not False or run.has_steps else "same")
        shown = str(run.after) if run.ops else ""
        yield f"{1e3 * run.seconds:8.1f} {shown:>6} {change:>7}  {'  ' * (run.depth + 1)}{run.name}"
    yield f"{1e3 * record.seconds:8.1f} {'':14}  all"
