"""`profile.csv`: a row for each name and thread. Written in two forms, and both are read.

The header of the design document of Stan's profiling, and the one that CmdStan came to write (CmdStan guide,
"Profiling"), which has other names and the last two columns the other way round.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ulam.runtime.errors import ArgumentError, DataError
from ulam.runtime.output_files import writing
from ulam.runtime.profiling.records import ProfileRow

if TYPE_CHECKING:
    from ulam.runtime.profiling.profiler import Profiler

COLUMNS: dict[str, dict[str, str]] = {
    "design": {
        "name": "name",
        "thread_id": "thread_id",
        "time_total": "total_time",
        "forward_time": "forward_time",
        "reverse_time": "reverse_time",
        "chain_stack_total": "kept_values",
        "nochain_stack_total": "other_values",
        "no_autodiff_passes": "passes",
        "autodiff_passes": "gradient_passes",
    },
    "cmdstan": {
        "name": "name",
        "thread_id": "thread_id",
        "total_time": "total_time",
        "forward_time": "forward_time",
        "reverse_time": "reverse_time",
        "chain_stack": "kept_values",
        "no_chain_stack": "other_values",
        "autodiff_calls": "gradient_passes",
        "no_autodiff_calls": "passes",
    },
}
"""Names of columns, in order, and the attribute of `ProfileRow` that each holds. Times are in seconds."""


def column_names(columns: str) -> dict[str, str]:
    """A row of `COLUMNS`. Raises ArgumentError for an unknown name."""
    if columns not in COLUMNS:
        raise ArgumentError(f"columns must be {' or '.join(map(repr, COLUMNS))}, found {columns!r}")
    return COLUMNS[columns]


def profile_csv(rows: Sequence[ProfileRow], columns: str = "design") -> str:
    """The text of the file. Times have all their digits; names are quoted where they must be."""
    names = column_names(columns)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow(getattr(row, attribute) for attribute in names.values())
    return text.getvalue()


def write_profile_csv(
    profiler: Profiler, path: str | os.PathLike[str] = "profile.csv", *, columns: str = "design"
) -> Path:
    """Writes the rows of a profiler in one piece, and returns the path written: see `Profiler.to_csv`."""
    text = profile_csv(profiler.rows(), columns)
    chosen = Path(path)

    def place() -> str:
        nonlocal chosen
        chosen = next(name for name in _numbered(Path(path)) if _may_replace(name, profiler))
        return str(chosen.resolve())

    with _alone_in(chosen.parent), writing(path, place) as file:
        file.write(text)
    if chosen.is_file():
        profiler.written[chosen.resolve()] = chosen.stat().st_mtime_ns
    return chosen


def _numbered(path: Path) -> Iterator[Path]:
    """`profile.csv`, `profile_2.csv`, `profile_3.csv`, ..."""
    yield path
    number = 2
    while True:
        yield path.with_name(f"{path.stem}_{number}{path.suffix}")
        number += 1


def _may_replace(path: Path, profiler: Profiler) -> bool:
    """Whether a file is not there, is this profiler's, or was there before its model: of an earlier run."""
    try:
        changed = path.stat().st_mtime_ns
    except FileNotFoundError:
        return True
    return changed < profiler.created or profiler.written.get(path.resolve()) == changed


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps chains in other processes from choosing the same name at the same time."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:  # writing will say so
        yield
        return
    try:
        with suppress(OSError):  # a file system without them
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


# ---------------------------------------------------------------- reading


def read_profile_csv(path: str | os.PathLike[str]) -> list[ProfileRow]:
    """The rows of a file in either form; `phase` is empty, as the file does not have it.

    Names that hold commas without being quoted, as CmdStan writes them, are put together again. Raises DataError, with
    the line, for what is not such a file, and OSError if it cannot be read.
    """
    with open(path, encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        try:
            header = next(reader, [])
            names = next((names for names in COLUMNS.values() if list(names) == header), None)
            if names is None:
                known = " or ".join(f"'{','.join(names)}'" for names in COLUMNS.values())
                raise DataError([f"{os.fspath(path)}: not a profile: the header must be {known}"])
            return [_row(fields, names, f"{os.fspath(path)}:{reader.line_num}") for fields in reader if fields]
        except csv.Error as error:
            raise DataError([f"{os.fspath(path)}:{reader.line_num}: {error}"]) from None


def _row(fields: Sequence[str], names: dict[str, str], place: str) -> ProfileRow:
    excess = len(fields) - len(names)
    if excess < 0:
        raise DataError([f"{place}: {len(names)} columns are needed, found {len(fields)}"])
    row = ProfileRow(",".join(fields[: excess + 1]), 0, "")
    for (column, attribute), text in list(zip(names.items(), fields[excess:], strict=True))[1:]:
        if attribute == "total_time":  # the sum of the next two
            continue
        kind = float if attribute.endswith("_time") else int
        try:
            setattr(row, attribute, kind(text))
        except ValueError:
            raise DataError([f"{place}: {column} must be {_KINDS[kind]}, found '{text}'"]) from None
    return row


_KINDS = {float: "a number", int: "a whole number"}
