"""`ulam report`: a fit as an HTML page, one file that needs no other.

What the fit says in short goes to standard output, warnings to standard error.
"""

from __future__ import annotations

import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ulam.runtime.html_report.verdict import verdict
from ulam.runtime.named_text import NamedText
from ulam.runtime.results import facts_text
from ulam.runtime.sampling.chain_files import fit_of_files
from ulam.runtime.sampling.loading import load
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK, UsageError
from ulam.tools.files import is_standard_output

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.sampling.fit import SampleFit


@dataclass(kw_only=True)
class ReportCommand:
    """The arguments of the command."""

    fits: list[Path | NamedText]
    output: Path
    program: Path | NamedText | None
    data: str | NamedText | None
    costs: bool
    title: str | None
    rows: int
    include_path: list[Path] | None

    def run(self) -> int:
        fit = self._fit()
        fit.report(self.output, title=self.title, rows=self.rows or None, costs=self.costs)
        told = sys.stderr if is_standard_output(self.output) else sys.stdout
        found = verdict(fit)
        rows = [("verdict", found.sentence), *([("first", found.first)] if found.first else [])]
        if not is_standard_output(self.output):
            rows.append(("written", escaped(str(self.output))))
        print(facts_text(rows), file=told)
        return EXIT_OK

    def _fit(self) -> SampleFit:
        saved = [path for path in self.fits if isinstance(path, Path) and zipfile.is_zipfile(path)]
        if not saved:
            return fit_of_files(self.fits, self._model())
        if len(self.fits) > 1:
            raise UsageError(f"FITS: {saved[0]} is a whole fit; give it alone, or the CSV files of one run")
        if self.program is not None or self.data is not None:
            raise UsageError("--program and --data are for CSV files: a saved fit has its own")
        return load(saved[0])

    def _model(self) -> StanModel | None:
        if self.program is None:
            if self.data is not None:
                raise UsageError("--data: give the program, too, with --program")
            return None
        from ulam.runtime.model import StanModel

        return StanModel(self.program, self.data, include_paths=tuple(self.include_path or ()))
