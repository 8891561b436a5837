"""What an explanation of a log density says, as data. `str()` of it is plain text, `to_json` JSON."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ulam.runtime.json_text import json_page, plain
from ulam.runtime.output_files import write_text
from ulam.tracing.explain.parts import Cause, Parameter, Term, Tries
from ulam.tracing.explain.text import plain_text

SCHEMA_VERSION = 1
"""Version of the entries of `to_dict`. Goes up when an entry changes its meaning or disappears."""


@dataclass
class Explanation:
    """Why the log density of a model at a point is what it is.

    `outcome`: "finite" (with a finite gradient); "nan", "+inf", "-inf", the log density; "rejected", a check refused
    the point; "failed", an error ended the run (an index out of range, `fatal_error`); "gradient", which is not finite
    where the value is. `log_density` is None if the run was rejected. `causes` has one entry for each statement that is
    to blame, in the order in which they ran; `terms` are ranked: those that are not finite first, in order of
    occurrence, then by size. `gradient`: None if it was not computed. `notes`: what could not be found out.
    """

    model: str
    outcome: str
    log_density: float | None
    propto: bool
    jacobian: bool
    parameters: list[Parameter]
    terms: list[Term] = field(default_factory=list[Term])
    causes: list[Cause] = field(default_factory=list[Cause])
    gradient: list[float] | None = None
    tries: Tries | None = None
    notes: list[str] = field(default_factory=list[str])
    printed: str = ""

    @property
    def ok(self) -> bool:
        """Whether all is well: of several points, at all of them."""
        return self.outcome == "finite" and (self.tries is None or self.tries.failed == 0)

    @property
    def culprit(self) -> Cause | None:
        """The first cause."""
        return self.causes[0] if self.causes else None

    def __str__(self) -> str:
        return plain_text(self)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """All of it as dictionaries, lists, strings and numbers; numbers that are not finite are strings.

        They are "NaN", "Infinity" and "-Infinity".
        """
        return {"schema_version": SCHEMA_VERSION, "ok": self.ok, **plain(self)}

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The same as JSON text, which is also written to `path` if that is given."""
        text = json_page(self.to_dict())
        if path is not None:
            write_text(path, text)
        return text
