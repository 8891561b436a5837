"""Writes the report on a fit: `SampleFit.report` and `ulam report`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ulam.runtime.html_report.line_costs import line_costs
from ulam.runtime.html_report.page import page, title_of
from ulam.runtime.interrupts import stoppable
from ulam.runtime.output_files import write_text

if TYPE_CHECKING:
    from ulam.runtime.sampling.fit import SampleFit

ROWS = 2000
"""Of the summary, if no number is given."""

NOT_ASKED_FOR = "What the lines cost was not measured."


def write_report(
    fit: SampleFit,
    path: str | os.PathLike[str] | None,
    *,
    title: str | None = None,
    rows: int | None = ROWS,
    costs: bool = True,
    time_limit: float | None = None,
) -> str:
    """What `SampleFit.report` does; the text of the page."""

    def work() -> str:
        measured = line_costs(fit) if costs else NOT_ASKED_FOR
        return page(fit, measured, title=title or title_of(fit), rows=rows)

    text = stoppable(work, time_limit)
    if path is not None:
        write_text(path, text)
    return text
