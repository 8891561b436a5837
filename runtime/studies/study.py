"""`Study`: what many fits of one program came to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ulam.runtime.errors import UlamError
from ulam.runtime.studies.folder import StudyFolder
from ulam.runtime.studies.records import FitRecord

if TYPE_CHECKING:
    from ulam.runtime.model import Recipe
    from ulam.runtime.studies.data_sets import DataSets

SHOWN_ERRORS = 10


class StudyError(UlamError):
    """A data set has no fit. `index` is its place, from 0."""

    def __init__(self, text: str, index: int = -1) -> None:
        self.index = index
        super().__init__(text)

    def __reduce__(self) -> tuple[type[StudyError], tuple[str, int]]:
        return (type(self), (str(self), self.index))


@dataclass
class Study:
    """The fits of many data sets: `study[3]` is the record of data set 3, counted from 0.

    Iterating gives the records that there are, by index. `errors` has what was wrong with a data set, by index;
    `missing` are those that were not fitted, if the study ended before: `ended` says why, "interrupt" or "time limit",
    else it is "". `notes` say what else there is to know. With `keep=False` records are read from the folder
    each time.
    """

    method: str
    size: int
    errors: dict[int, str] = field(default_factory=dict[int, str])
    notes: list[str] = field(default_factory=list[str])
    ended: str = ""
    seconds: float = 0.0
    seed: int = 1
    recipe: Recipe | None = field(default=None, repr=False)
    sets: DataSets | None = field(default=None, repr=False)
    folder: StudyFolder | None = field(default=None, repr=False)
    records: dict[int, FitRecord] = field(default_factory=dict[int, FitRecord], repr=False)
    finished: set[int] = field(default_factory=set[int], repr=False)

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> FitRecord:
        if not -self.size <= index < self.size:
            raise IndexError(f"data set {index}; the study has {self.size}")
        index %= self.size
        record = self.records.get(index)
        if record is None and index in self.finished and self.folder is not None:
            record = self.folder.get(index)
        if record is None:
            raise StudyError(self._why_absent(index), index)
        if record.recipe is None:
            record.recipe = self._recipe_maker(index)
        return record

    def _why_absent(self, index: int) -> str:
        reason = self.errors.get(index, "the study ended before its turn")
        return f"{self._described(index)} has no fit: {reason}"

    def _described(self, index: int) -> str:
        return f"data set {index}" if self.sets is None else self.sets.described(index)

    def _recipe_maker(self, index: int) -> Any:
        recipe, sets = self.recipe, self.sets
        if recipe is None or sets is None:
            return None
        return lambda: replace(recipe, values=sets.values(index), seed=sets.fit_seed(index))

    def __iter__(self) -> Iterator[FitRecord]:
        return (self[index] for index in sorted(self.finished))

    @property
    def missing(self) -> list[int]:
        """Data sets that were neither fitted nor failed."""
        return [index for index in range(self.size) if index not in self.finished and index not in self.errors]

    def raise_errors(self) -> None:
        """Raises StudyError if a data set failed: the first one, and how many others."""
        if self.errors:
            first = min(self.errors)
            more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
            raise StudyError(f"{self._why_absent(first)}{more}", first)

    # ------------------------------------------------------------ output

    def __str__(self) -> str:
        from ulam.runtime.results import seconds_text

        many = f"{self.size} data set{'' if self.size == 1 else 's'}"
        lines = [f"{many}, {self.method}: {len(self.finished)} fitted, {len(self.errors)} failed"]
        if self.missing:
            why = "interrupted" if self.ended == "interrupt" else "the time limit was reached"
            lines[0] += f", {len(self.missing)} not begun or not finished ({why})"
        lines.append(f"run time {seconds_text(self.seconds)}")
        if self.folder is not None:
            lines.append(f"folder {self.folder.path}")
        shown = sorted(self.errors)[:SHOWN_ERRORS]
        lines += [f"{self._described(index)}: {self.errors[index]}" for index in shown]
        if len(self.errors) > len(shown):
            lines.append(f"... and {len(self.errors) - len(shown)} more that failed")
        return "\n".join([*lines, *self.notes])


def load_study(path: str | os.PathLike[str]) -> Study:
    """A study from its folder, finished or not. Records are read when they are asked for.

    Raises DataError for a folder that is none of a study.
    """
    folder = StudyFolder(path)
    manifest: Mapping[str, Any] = folder.manifest
    finished = set(folder.finished(checked=False))
    errors = {index: error for index, error in folder.errors().items() if index not in finished}
    names: Sequence[str] | None = manifest["names"]
    study = Study(manifest["method"], len(manifest["datasets"]), errors, folder=folder, seed=manifest["seed"])
    study.finished = finished
    if names is not None:
        study.notes.append(
            f"data sets: {', '.join(names[:SHOWN_ERRORS])}{', ...' if len(names) > SHOWN_ERRORS else ''}"
        )
    return study
