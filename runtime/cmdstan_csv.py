"""CmdStan's CSV files: settings as comments, a header, rows of numbers. Written for results, read for modes.

The comments have CmdStan's nested form `#     key = value (Default)` (CmdStan guide, "Stan CSV file format"), which
cmdstanpy, cmdstanr and ArviZ parse. Numbers have all their digits.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.frontend.encoding import read_text
from ulam.runtime.c_library import library
from ulam.runtime.errors import DataError
from ulam.runtime.named_text import NamedText
from ulam.runtime.optimizers.algorithms import ALGORITHMS
from ulam.runtime.output_files import writing
from ulam.runtime.terminal import escaped
from ulam.runtime.versions import STAN_PATCH, STAN_VERSION

if TYPE_CHECKING:
    from ulam.runtime.model import StanModel
    from ulam.runtime.optimizers.laplace import LaplaceResult
    from ulam.runtime.optimizers.line_search import Vector
    from ulam.runtime.optimizers.result import OptimizationResult
    from ulam.runtime.sampling.pathfinder import PathfinderResult

Path = str | os.PathLike[str]
Setting = tuple[int, str, Any, Any]
"""Depth, name, value and default of a setting; a value of None makes a group's heading."""

_ROWS = 1000
"""Rows that are written at a time."""

_NUMBER_LENGTH = 25
"""Of a number and a comma, at most: as in c/sampling/decimal.h."""


def csv_number(value: float) -> str:
    """The shortest text that reads back to the same number; `inf`, `-inf` and `nan` as CmdStan writes them."""
    return repr(float(value)).removesuffix(".0")


def setting_text(value: Any) -> str:
    """A setting's value as CmdStan writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    return csv_number(value) if isinstance(value, float) else str(value)


def comment(setting: Setting) -> str:
    """A setting as a line of the file."""
    depth, name, value, default = setting
    text = name if value is None else f"{name} = {escaped(setting_text(value))}"
    mark = " (Default)" if value is not None and value == default else ""
    return f"# {'  ' * depth}{text}{mark}\n"


@dataclass(frozen=True)
class CsvForm:
    """What a file says before its header, and how many digits its numbers have: None, all that they need.

    Columns of the names `without` are left out.
    """

    settings: Sequence[Setting]
    digits: int | None = None
    without: tuple[str, ...] = ()

    def head(self, columns: Iterable[str]) -> bytes:
        """Settings, and the header if there are columns."""
        header = ",".join(columns)
        text = "".join(map(comment, self.settings)) + (f"{header}\n" if header else "")
        return text.encode("utf-8", "backslashreplace")

    def rows(self, table: Vector) -> bytes:
        """Rows of numbers."""
        return rows_text(table, self.digits)


def rows_text(table: Vector, digits: int | None = None) -> bytes:
    """Rows of numbers as text. All digits that a number needs to be read as the same one, or so many."""
    if not len(table):
        return b""
    if digits is not None:
        line = ",".join([f"%.{digits}g"] * table.shape[1]) + "\n"
        return "".join(line % tuple(row) for row in table.tolist()).encode()
    rows = np.ascontiguousarray(table, dtype=np.float64)
    text = np.empty(_NUMBER_LENGTH * rows.size, dtype=np.uint8)
    return text[: library().ulam_csv_rows(rows.ctypes.data, *rows.shape, text.ctypes.data)].tobytes()


def _lines(remarks: Iterable[str]) -> Iterator[str]:
    return (line for remark in remarks for line in remark.splitlines() or [""])


def remark_text(remarks: Iterable[str]) -> bytes:
    """Remarks as comments, a line each of their lines."""
    lines = [f"# {escaped(line)}\n" for line in _lines(remarks)]
    return "".join(lines).encode("utf-8", "backslashreplace")


def preamble(model_name: str) -> Iterator[Setting]:
    """What all files begin with."""
    major, minor, *_ = STAN_VERSION.split(".")
    yield 0, "stan_version_major", major, None
    yield 0, "stan_version_minor", minor, None
    yield 0, "stan_version_patch", STAN_PATCH, None
    yield 0, "model", model_name, None


def ending(init: str, seed: int, path: Path, chain: int = 1) -> Iterator[Setting]:
    """The settings that all methods have."""
    yield 0, "id", chain, 1
    yield 0, "init", init, "2"
    yield 0, "random", None, None
    yield 1, "seed", seed, None
    yield 0, "output", None, None
    yield 1, "file", os.fspath(path), None


def _optimize_settings(result: OptimizationResult) -> Iterator[Setting]:
    yield 0, "method", "optimize", "sample"
    yield 1, "optimize", None, None
    yield 2, "algorithm", result.algorithm, "lbfgs"
    yield 3, result.algorithm, None, None
    options = [
        (option.name, result.options.get(option.name, option.default), option.default)
        for option in fields(ALGORITHMS[result.algorithm].options)
    ]
    for option in options:
        if option[0] != "iter":
            yield 4, *option
    yield 2, "jacobian", result.jacobian, False
    for option in options:
        if option[0] == "iter":
            yield 2, *option
    yield 2, "save_iterations", bool(result.trajectory), False


def _laplace_settings(result: LaplaceResult) -> Iterator[Setting]:
    yield 0, "method", "laplace", "sample"
    yield 1, "laplace", None, None
    yield 2, "mode", result.mode_source, None
    yield 2, "jacobian", result.jacobian, True
    yield 2, "draws", len(result), 1000
    yield 2, "calculate_lp", result.calculate_lp, True


def _pathfinder_settings(result: PathfinderResult) -> Iterator[Setting]:
    yield 0, "method", "pathfinder", "sample"
    yield 1, "pathfinder", None, None
    for option in fields(result.settings):
        yield 2, option.name, getattr(result.settings, option.name), option.default


# ---------------------------------------------------------------- writing


def write_optimization(result: OptimizationResult, path: Path, form: CsvForm | None = None) -> None:
    """`iteration_columns` and `iterations` of the result: one row, or one for each iteration that was saved."""
    settings = (*preamble(result.model.name()), *_optimize_settings(result), *ending(result.init, result.seed, path))
    rows = result.iterations  # first: computing the values may add a note
    remarks = [
        f"{result.n_iterations} iterations, {result.n_gradients} gradient evaluations",
        *result.notes,
        result.message,
    ]
    if form is not None:  # clients of CmdStan take the last line for the estimate
        said: list[Setting] = [(0, escaped(line), None, None) for line in _lines(remarks)]
        form, remarks = replace(form, settings=(*form.settings, *said)), []
    write_table(path, form or CsvForm(settings), result.iteration_columns, [rows], remarks)


def write_laplace(result: LaplaceResult, path: Path, form: CsvForm | None = None) -> None:
    """`log_p__,log_q__,<names>`, one row per draw."""
    settings = (*preamble(result.model.name()), *_laplace_settings(result), *ending("2", result.seed, path))
    columns = ["log_p__", "log_q__", *result.names]
    parts = parts_of([result.log_p, result.log_q], result.constrained_draws)
    write_table(path, form or CsvForm(settings), columns, parts, result.notes)


def write_pathfinder(result: PathfinderResult, path: Path, form: CsvForm | None = None) -> None:
    """`lp_approx__,lp__,path__,<names>`, one row per draw; of a single path without `path__`."""
    settings = (*preamble(result.model.name()), *_pathfinder_settings(result), *ending(result.init, result.seed, path))
    header, columns = ["lp_approx__", "lp__"], [result.log_q, result.log_p]
    if len(result.paths) > 1:
        header, columns = [*header, "path__"], [*columns, result.path]
    remarks = [f"Pareto k = {csv_number(result.khat)}", *result.notes]
    parts = parts_of(columns, result.constrained_draws)
    write_table(path, form or CsvForm(settings), [*header, *result.names], parts, remarks)


def parts_of(columns: Sequence[Any], values: Vector) -> Iterator[Vector]:
    """Columns before rows of values as tables of so many rows as are written at a time."""
    for begin in range(0, len(values), _ROWS):
        part = slice(begin, begin + _ROWS)
        before = [np.asarray(column[part], dtype=np.float64)[:, None] for column in columns]
        yield np.concatenate([*before, values[part]], axis=1)


def write_table(
    path: Path, form: CsvForm, columns: Iterable[str], parts: Iterable[Vector], remarks: Iterable[str] = ()
) -> None:
    """A whole file: settings, header, tables of rows one below the other, remarks."""
    names = list(columns)
    kept = [k for k, name in enumerate(names) if name not in form.without]
    with writing(path, binary=True) as file:
        file.write(form.head(names[k] for k in kept))
        for part in parts:
            file.write(form.rows(part if len(kept) == len(names) else part[:, kept]))
        file.write(remark_text(remarks))


# ---------------------------------------------------------------- reading


@dataclass(frozen=True)
class CsvFile:
    """Settings by name (the last of a name counts), column names, and the rows, (rows, columns)."""

    settings: dict[str, str]
    names: list[str]
    rows: Vector


def read(path: Path | NamedText) -> CsvFile:
    """A file of CmdStan's or of ours. Raises DataError if it is not one, FileNotFoundError if it is not there."""
    name = str(path)
    settings: dict[str, str] = {}
    table: list[list[str]] = []
    with StringIO(path.text if isinstance(path, NamedText) else read_text(path)) as file:
        for line in file:
            if line.startswith("#"):
                key, equals, value = line.lstrip("# ").partition(" = ")
                if equals:
                    settings[key.strip()] = value.replace("(Default)", "").strip()
            elif line.strip():
                table.append(_cells(line.strip(), name))
    if len(table) < 2:
        raise DataError([f"{name}: not a CSV file of CmdStan's form: there is no row of numbers"])
    header, *rows = table
    try:
        numbers = np.array(rows, dtype=np.float64)
    except ValueError:
        numbers = np.empty((0, 0))
    if numbers.shape[1:] != (len(header),):
        raise DataError([f"{name}: not a CSV file of CmdStan's form: a row is not {len(header)} numbers"])
    return CsvFile(settings, header, numbers)


def _cells(line: str, name: str) -> list[str]:
    try:
        return next(csv.reader([line]))
    except csv.Error as error:
        raise DataError([f"{name}: not a CSV file of CmdStan's form: {error}"]) from None


def read_parameters(model: StanModel, path: Path | NamedText) -> tuple[Vector, bool | None]:
    """The constrained parameters of the last row, and the setting `jacobian` if the file says it."""
    content = read(path)
    columns = {column: k for k, column in enumerate(content.names)}
    wanted = model.param_names()
    missing = [entry for entry in wanted if entry not in columns]
    if missing:
        shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        raise DataError([f"{path}: no column for parameter {shown}"])
    values = content.rows[-1, [columns[entry] for entry in wanted]]
    setting = content.settings.get("jacobian")
    return values, None if setting is None else setting in ("1", "true")
