"""The folder of a study: a manifest, and a file for each fit, so that what was interrupted goes on where it was.

    study.json                what the study is: program, method, options, seed, a digest of each data set
    fit-000012.ulam           the fit of data set 12, data only; of `sample` one that `ulam.load` reads
    error-000012.json         what became of it instead

Each file is in its place when it is whole. Those that are not what the manifest says are told, and made again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ulam.runtime.errors import ArgumentError, DataError
from ulam.runtime.json_text import json_page, plain
from ulam.runtime.output_files import write_text
from ulam.runtime.studies.data_sets import DataSets, digest_of
from ulam.runtime.studies.jobs import FitPlan, Outcome
from ulam.runtime.studies.records import OWN, FitRecord
from ulam.runtime.versions import ulam_version

MANIFEST = "study.json"
STUDY_FORMAT = "ulam study"
STUDY_SCHEMA = 1


def manifest_of(plan: FitPlan, sets: DataSets) -> dict[str, Any]:
    """What tells a study from others, and what it is made of."""
    recipe = plan.recipe
    options = plain(dict(plan.options))
    extract = plan.extract if plan.extract is None or not callable(plan.extract) else _function_name(plan.extract)
    return {
        "format": STUDY_FORMAT,
        "schema_version": STUDY_SCHEMA,
        "ulam_version": ulam_version(),
        "program": {"text": recipe.text, "filename": recipe.filename, "options": plain(asdict(recipe.options))},
        "method": plan.method if isinstance(plan.method, str) else _function_name(plan.method),
        "options": options,
        "options_digest": digest_of({name: _comparable(value) for name, value in plan.options.items()}),
        "extract": plain(extract),
        "seed": sets.seed,
        "names": sets.names,
        "datasets": [sets.digest(index) for index in range(len(sets))],
    }


def _function_name(function: Any) -> str:
    if hasattr(function, "__dataclass_fields__"):
        return repr(function)
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _comparable(value: Any) -> Any:
    """A fit that is an option, by its draws."""
    for name in ("unconstrained", "unconstrained_draws"):
        if hasattr(value, name):
            return {"fit": getattr(value, name)}
    return value


_SAID_OF = {
    "program": "the program or how it is compiled",
    "method": "the method",
    "options_digest": "the options of the method",
    "extract": "extract",
    "seed": "the seed",
    "names": "the names of the data sets",
}


def _own(path: Path) -> Path:
    """A place in the folder: a link there goes, and not what it leads to, which may be anywhere."""
    if path.is_symlink():
        path.unlink()
    return path


class StudyFolder:
    """A folder that one study writes to at a time. `damaged` are files that were there, and were no use."""

    def __init__(self, path: str | os.PathLike[str], manifest: Mapping[str, Any] | None = None) -> None:
        self.path = Path(path)
        self.damaged: list[str] = []
        self._lock = -1
        if manifest is None:
            self.manifest: Mapping[str, Any] = self._read_manifest()
            return
        self.path.mkdir(parents=True, exist_ok=True)
        self._take_lock()
        try:
            self.manifest = manifest
            self._begin(manifest)
        except BaseException:
            self.close()
            raise

    def _begin(self, manifest: Mapping[str, Any]) -> None:
        if not (self.path / MANIFEST).exists():
            if any(self.path.glob("fit-*.ulam")):
                raise ArgumentError(f"the folder '{self.path}' has fits in it and no {MANIFEST}: choose another one")
        else:
            self._check_same(self._read_manifest(), manifest)
        write_text(_own(self.path / MANIFEST), json_page(manifest))

    def _check_same(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
        """Raises ArgumentError if the folder is of another study.

        It is the same with more data sets behind the old ones, and with others in the place of those that failed.
        """
        differ = [said for name, said in _SAID_OF.items() if name != "names" and old.get(name) != plain(new[name])]
        before: Sequence[str] = old["datasets"]
        now: Sequence[str] = new["datasets"]
        pairs = enumerate(zip(before, now, strict=False))
        other = next((k for k, (a, b) in pairs if a and b and a != b and not self.error_path(k).exists()), None)
        if other is not None:
            differ.append(f"data set {other}")
        elif len(now) < len(before):
            differ.append(f"the number of data sets, {len(before)} there and {len(now)} here")
        if (
            old.get("names") is not None
            and new["names"] is not None
            and old["names"] != new["names"][: len(old["names"])]
        ):
            differ.append(_SAID_OF["names"])
        if differ:
            raise ArgumentError(
                f"the folder '{self.path}' is of another study: it differs in {', '.join(differ)}. Choose "
                "another folder, or remove this one"
            )

    def _read_manifest(self) -> Mapping[str, Any]:
        path = self.path / MANIFEST
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError([f"{self.path}: no folder of a study: it has no {MANIFEST}"]) from None
        except ValueError as error:
            raise DataError([f"{path}: the file is damaged: {error}"]) from None
        if not isinstance(found, dict) or found.get("format") != STUDY_FORMAT:
            raise DataError([f"{path}: not a file that a study wrote"])
        if found["schema_version"] > STUDY_SCHEMA:
            later = f"a later version of ulam wrote it, {found['ulam_version']}: this is {ulam_version()}"
            raise DataError([f"{path}: {later}"])
        return found

    def _take_lock(self) -> None:
        """Raises ArgumentError if another process writes to the folder."""
        try:
            import fcntl
        except ImportError:
            return
        self._lock = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise ArgumentError(f"the folder '{self.path}' is in use: another call writes this study") from None
        except OSError:  # file systems without locks
            self.close()

    def close(self) -> None:
        """Others may write."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    # ------------------------------------------------------------ fits

    def fit_path(self, index: int) -> Path:
        return self.path / f"fit-{index:06}.ulam"

    def error_path(self, index: int) -> Path:
        return self.path / f"error-{index:06}.json"

    def put(self, outcome: Outcome, name: str) -> None:
        """Writes what became of a data set."""
        if outcome.record is None:
            entry = {"index": outcome.index, "name": name, "error": outcome.error, "seconds": outcome.seconds}
            write_text(_own(self.error_path(outcome.index)), json_page(entry))
            return
        outcome.record.save(_own(self.fit_path(outcome.index)), {"data": self.manifest["datasets"][outcome.index]})
        with suppress(FileNotFoundError):
            self.error_path(outcome.index).unlink()

    def get(self, index: int) -> FitRecord:
        """The record of a data set. Raises OSError or DataError."""
        path = self.fit_path(index)
        record = FitRecord.load(path)
        own = record.header[OWN]
        if (own["index"], own["data"]) != (index, self.manifest["datasets"][index]):
            raise DataError([f"{path}: the fit of another data set"])
        return record

    def finished(self, checked: bool = True) -> list[int]:
        """The data sets whose fits are there and whole; of the others that have a file, `damaged` says why."""
        found: list[int] = []
        for index in range(len(self.manifest["datasets"])):
            if self.fit_path(index).exists():
                try:
                    if checked:
                        self.get(index)
                    found.append(index)
                except (DataError, OSError) as error:
                    self.damaged.append(str(error))
        return found

    def errors(self) -> dict[int, str]:
        """What was wrong with data sets, by index."""
        found: dict[int, str] = {}
        for path in sorted(self.path.glob("error-*.json")):
            with suppress(ValueError, KeyError, OSError):
                entry = json.loads(path.read_text(encoding="utf-8"))
                found[int(entry["index"])] = str(entry["error"])
        return found
