"""Results as text: a table of estimates, CmdStan-style CSV, JSON.

Tables are drawn by rich on a terminal; elsewhere they are plain columns, the same words without lines and colours.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from ulam.runtime.optimizers.line_search import Vector
    from ulam.runtime.optimizers.quasi_newton import Iteration
    from ulam.runtime.optimizers.result import OptimizationResult

SHOWN_ROWS = 50

Row = Sequence[str]


def plain_table(header: Row, rows: Sequence[Row]) -> str:
    """Columns separated by two spaces; the first to the left, the others to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join(lines)


def print_table(header: Row, rows: Sequence[Row], file: TextIO | None = None) -> None:
    """The table, by rich if `file` is a terminal."""
    stream: TextIO = file or sys.stdout
    if not stream.isatty():
        print(plain_table(header, rows), file=stream)
        return
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD)
    for column, title in enumerate(header):
        table.add_column(title, justify="left" if column == 0 else "right")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=stream).print(table)


def number_text(value: float, digits: int = 6) -> str:
    """As in tables: six significant digits."""
    return f"{value:.{digits}g}"


def seconds_text(seconds: float) -> str:
    """A time with a unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


# ---------------------------------------------------------------- optimization


def estimate_rows(result: OptimizationResult, limit: int | None = SHOWN_ROWS) -> list[Row]:
    """Name and estimate of each element; beyond `limit` one row says how many more there are."""
    rows: list[Row] = [
        (bracket_name(name), number_text(float(value)))
        for name, value in zip(result.names, result.constrained, strict=True)
    ]
    if limit is not None and len(rows) > limit:
        rows[limit:] = [(f"... and {len(rows) - limit} more", "")]
    return rows


def bracket_name(name: str) -> str:
    """`theta[2,1]` for `theta.2.1`."""
    base, *indices = name.split(".")
    return f"{base}[{','.join(indices)}]" if indices else base


def summary_rows(result: OptimizationResult) -> list[Row]:
    kind = "MAP (density of unconstrained parameters)" if result.jacobian else "MLE (density of constrained parameters)"
    return [
        ("estimate", kind),
        ("status", f"{result.message} ({result.status})"),
        ("log density", f"{result.log_density:.8g}  (constants dropped)"),
        ("gradient norm", number_text(result.gradient_norm, 3)),
        ("iterations", str(result.n_iterations)),
        ("gradient evaluations", str(result.n_gradients)),
        ("compile time", seconds_text(result.model.compile_seconds)),
        ("run time", seconds_text(result.seconds)),
    ]


def optimization_summary(result: OptimizationResult) -> str:
    """The table of estimates and how they were found, as plain text."""
    width = max(len(name) for name, _ in summary_rows(result))
    facts = "\n".join(f"{name:<{width}}  {value}" for name, value in summary_rows(result))
    return f"{plain_table(('parameter', 'estimate'), estimate_rows(result))}\n\n{facts}"


def print_optimization(result: OptimizationResult, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
    file = file or sys.stdout
    print_table(("parameter", "estimate"), estimate_rows(result, limit), file)
    rows = summary_rows(result)
    width = max(len(name) for name, _ in rows)
    print(file=file)
    for name, value in rows:
        print(f"{name:<{width}}  {value}", file=file)


def write_optimization_csv(result: OptimizationResult, path: str | os.PathLike[str]) -> None:
    """CmdStan's format: settings as comments, `lp__,converged__,...`, one row, or one for each saved iteration."""
    settings = [
        f"model = {result.model.name()}",
        "method = optimize",
        f"algorithm = {result.algorithm}",
        f"jacobian = {int(result.jacobian)}",
        f"seed = {result.seed}",
        f"iterations = {result.n_iterations}",
        f"gradients = {result.n_gradients}",
    ]
    rows: list[tuple[float, int, Vector]] = [
        (log_density, 0, result.constrain(theta)) for log_density, theta in result.trajectory[:-1]
    ]
    rows.append((result.log_density, result.code, result.constrained))
    with open(path, "w", encoding="utf-8", newline="") as file:
        file.writelines(f"# {line}\n" for line in settings)
        file.write(",".join(["lp__", "converged__", *result.names]) + "\n")
        for log_density, code, values in rows:
            file.write(",".join([csv_number(log_density), str(code), *map(csv_number, values)]) + "\n")
        file.write(f"# {result.message}\n")


def csv_number(value: float) -> str:
    """The shortest text that reads back to the same number; `inf`, `-inf` and `nan` as CmdStan writes them."""
    return repr(float(value)).removesuffix(".0")


PROGRESS_HEADER = (
    f"{'Iter':>7} {'log prob':>12} {'||dx||':>12} {'||grad||':>12} {'alpha':>10} {'alpha0':>10} {'# evals':>8}  Notes"
)


def progress_line(iteration: Iteration, n_gradients: int) -> str:
    """A line of CmdStan's progress table."""
    norm = math.sqrt(float(iteration.point.gradient @ iteration.point.gradient))
    return (
        f"{iteration.number:>7} {-iteration.point.value:>12.6g} {iteration.step_norm:>12.6g} {norm:>12.6g} "
        f"{iteration.alpha:>10.4g} {iteration.alpha0:>10.4g} {n_gradients:>8}  {iteration.note}"
    ).rstrip()


# ---------------------------------------------------------------- log density


def log_density_json(log_density: float, gradient: Sequence[float]) -> str:
    """One line of JSON; numbers that JSON does not know are written NaN and Infinity, as in Stan's data files."""
    return json.dumps({"log_density": log_density, "gradient": list(gradient)})
