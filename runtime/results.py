"""Results as text: tables of estimates, JSON, HTML for notebooks. CmdStan's CSV is in `cmdstan_csv`.

Tables are drawn by rich on a terminal; elsewhere they are plain columns, the same words without lines and colours.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO, cast

from ulam.runtime.json_text import json_line, json_page
from ulam.runtime.markup import markup
from ulam.runtime.names import bracket_name
from ulam.runtime.output_files import write_text
from ulam.runtime.terminal import console, is_decorated

if TYPE_CHECKING:
    from ulam.runtime.named_draws import NamedDraws
    from ulam.runtime.optimizers.laplace import LaplaceResult
    from ulam.runtime.optimizers.multi_start import MultiStartResult
    from ulam.runtime.optimizers.result import OptimizationResult
    from ulam.runtime.sampling.pathfinder import PathfinderResult

SHOWN_ROWS, SHOWN_MODES = 50, 20
PATH_COLUMNS_LEFT = (0, 5)

SCHEMA_VERSION = 1
"""Version of the entries of `to_dict`. Goes up when an entry changes its meaning or disappears."""

Row = Sequence[str]


def plain_table(header: Row, rows: Sequence[Row], left: Collection[int] = (0,)) -> str:
    """Columns separated by two spaces; those numbered in `left` to the left, the others to the right."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
    return "\n".join(lines)


def print_table(
    header: Row,
    rows: Sequence[Row],
    file: TextIO | None = None,
    left: Collection[int] = (0,),
    spare: Sequence[int] = (),
) -> None:
    """The table, by rich if `file` is a terminal. If that is too narrow the columns of `spare` are left out, the first
    ones first, and a line says so.
    """
    stream: TextIO = file or sys.stdout
    if not is_decorated(stream):
        print(plain_table(header, rows, left), file=stream)
        return
    from rich.box import SIMPLE_HEAD
    from rich.measure import Measurement
    from rich.table import Table
    from rich.text import Text

    def drawn(columns: Sequence[int]) -> Table:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
        for column in columns:
            side = "left" if column in left else "right"
            table.add_column(header[column], justify=side, no_wrap=column not in left)
        for row in rows:
            table.add_row(*(Text(row[column]) for column in columns))
        return table

    shown, left_out = console(stream), list[int]()
    table = drawn(range(len(header)))
    unlimited = shown.options.update(max_width=10_000)
    while len(left_out) < len(spare) and Measurement.get(shown, unlimited, table).maximum > shown.width:
        left_out.append(spare[len(left_out)])
        table = drawn([column for column in range(len(header)) if column not in left_out])
    shown.print(table)
    if left_out:
        print(f"(not shown for want of width: {', '.join(header[column] for column in sorted(left_out))})", file=stream)


def html_table(header: Row, rows: Sequence[Row]) -> str:
    """The table for notebooks, digits of one width; the first column to the left, the others to the right, but to the
    left where there is no header: those are facts in words.
    """
    others = "right" if any(header) else "left"

    def line(cells: Row, tag: str) -> str:
        sides = ["left", *[others] * (len(cells) - 1)]
        inner = "".join(
            f'<{tag} style="text-align: {side}">{markup(cell)}</{tag}>' for side, cell in zip(sides, cells, strict=True)
        )
        return f"<tr>{inner}</tr>"

    body = "\n".join(line(row, "td") for row in rows)
    head = f"<thead>{line(header, 'th')}</thead>\n" if any(header) else ""
    table = f"<table>\n{head}<tbody>\n{body}\n</tbody>\n</table>"
    return f'<div style="font-variant-numeric: tabular-nums; overflow-x: auto">\n{table}\n</div>'


def number_text(value: float, digits: int = 6) -> str:
    """As in tables: six significant digits."""
    return f"{value:.{digits}g}"


def seconds_text(seconds: float) -> str:
    """A time with a unit that suits it."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.2f} s"


def shortened(rows: list[Row], limit: int | None) -> list[Row]:
    """The first `limit` rows; one row says how many more there are."""
    if limit is None or len(rows) <= limit:
        return rows
    empty = [""] * (len(rows[0]) - 1)
    return [*rows[:limit], (f"... and {len(rows) - limit} more", *empty)]


# ---------------------------------------------------------------- optimization


def estimate_table(result: OptimizationResult, limit: int | None = SHOWN_ROWS) -> tuple[Row, list[Row]]:
    """Header and rows: name and estimate of each element, with standard errors if they were computed."""
    errors = result.computed_standard_errors
    columns = [result.constrained] if errors is None else [result.constrained, errors]
    rows: list[Row] = [
        (bracket_name(name), *(number_text(float(value)) for value in values))
        for name, *values in zip(result.names, *columns, strict=True)
    ]
    header = ("parameter", "estimate") if errors is None else ("parameter", "estimate", "std. error")
    return header, shortened(rows, limit)


def modes_table(result: OptimizationResult, limit: int | None = SHOWN_MODES) -> tuple[Row, list[Row]] | None:
    """Header and rows: the modes that several starts found; None for a single run."""
    if not hasattr(result, "modes"):
        return None
    result = cast("MultiStartResult", result)
    rows: list[Row] = [
        (str(k), f"{mode.log_density:.8g}", str(len(mode.starts)), number_text(mode.distance, 3), mode.status)
        for k, mode in enumerate(result.modes, 1)
    ]
    failed = sum(start.result is None for start in result.starts)
    rows = shortened(rows, limit)
    if failed:
        rows.append(("none", "", str(failed), "", "failed"))
    return ("mode", "log density", "starts", "distance", "status"), rows


def summary_rows(result: OptimizationResult) -> list[tuple[str, str]]:
    """How the estimates were found: name and value of each fact. Notes come last."""
    kind = "MAP (density of unconstrained parameters)" if result.jacobian else "MLE (density of constrained parameters)"
    facts = [
        ("estimate", kind),
        ("status", f"{result.message} ({result.status})"),
        ("log density", f"{result.log_density:.8g}  (constants dropped)"),
        ("gradient norm", number_text(result.gradient_norm, 3)),
        ("iterations", str(result.n_iterations)),
        ("gradient evaluations", str(result.n_gradients)),
        ("compile time", seconds_text(result.model.compile_seconds)),
        ("run time", seconds_text(result.seconds)),
    ]
    facts[2:2] = [("note", note) for note in result.notes]
    return facts


def facts_text(facts: Sequence[tuple[str, str]]) -> str:
    """Names and values in two columns."""
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def optimization_summary(result: OptimizationResult) -> str:
    """The table of estimates and how they were found, as plain text."""
    modes = modes_table(result)
    parts = [plain_table(*estimate_table(result)), *([plain_table(*modes)] if modes else [])]
    return "\n\n".join([*parts, facts_text(summary_rows(result))])


def print_optimization(result: OptimizationResult, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
    """The same, by rich on a terminal; at most `limit` rows, all for None."""
    file = file or sys.stdout
    print_table(*estimate_table(result, limit), file)
    modes = modes_table(result)
    if modes is not None:
        print(file=file)
        print_table(*modes, file)
    print(f"\n{facts_text(summary_rows(result))}", file=file)


def optimization_html(result: OptimizationResult) -> str:
    modes = modes_table(result)
    tables = [estimate_table(result), *([modes] if modes else []), (("", ""), summary_rows(result))]
    return "\n".join(html_table(header, rows) for header, rows in tables)


def optimization_record(result: OptimizationResult) -> dict[str, Any]:
    """What `OptimizationResult.to_dict` returns."""
    errors = None if result.computed_standard_errors is None else plain_values(result.standard_errors())
    return {
        "schema_version": SCHEMA_VERSION,
        "method": "optimize",
        "model": result.model.name(),
        "algorithm": result.algorithm,
        "jacobian": result.jacobian,
        "seed": result.seed,
        "init": result.init,
        "options": dict(result.options),
        "status": result.status,
        "code": result.code,
        "message": result.message,
        "converged": result.converged,
        "log_density": result.log_density,
        "initial_log_density": result.initial_log_density,
        "gradient_norm": result.gradient_norm,
        "n_iterations": result.n_iterations,
        "n_gradients": result.n_gradients,
        "n_rejections": result.n_rejections,
        "seconds": result.seconds,
        "values": plain_values(result.values()),
        "standard_errors": errors,
        "unconstrained_names": result.model.param_unc_names(),
        "unconstrained": result.unconstrained.tolist(),
        "notes": list(result.notes),  # last: computing the values may add one
    }


# ---------------------------------------------------------------- draws


def draws_table(result: NamedDraws, limit: int | None = SHOWN_ROWS) -> tuple[Row, list[Row]]:
    """Header and rows: mean, standard deviation and quantiles of each element."""
    summary = result.summary()
    columns = list(next(iter(summary.values()), {}))
    rows: list[Row] = [
        (bracket_name(name), *(number_text(described[column]) for column in columns))
        for name, described in summary.items()
    ]
    return ("parameter", *columns), shortened(rows, limit)


# ---------------------------------------------------------------- Laplace approximation


def laplace_rows(result: LaplaceResult) -> list[tuple[str, str]]:
    """How the draws were made."""
    kind = "with" if result.jacobian else "without"
    return [
        ("approximation", f"normal at the mode, {kind} the change of variables"),
        *(("note", note) for note in result.notes),
        ("mode", result.mode_source),
        ("draws", str(len(result))),
        ("compile time", seconds_text(result.model.compile_seconds)),
        ("run time", seconds_text(result.seconds)),
    ]


def laplace_summary(result: LaplaceResult) -> str:
    """The table of draws and how they were made, as plain text."""
    return f"{plain_table(*draws_table(result))}\n\n{facts_text(laplace_rows(result))}"


def print_laplace(result: LaplaceResult, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
    """The same, by rich on a terminal; at most `limit` rows, all for None."""
    file = file or sys.stdout
    print_table(*draws_table(result, limit), file)
    print(f"\n{facts_text(laplace_rows(result))}", file=file)


def laplace_html(result: LaplaceResult) -> str:
    return f"{html_table(*draws_table(result))}\n{html_table(('', ''), laplace_rows(result))}"


# ---------------------------------------------------------------- Pathfinder


def paths_table(result: PathfinderResult, limit: int | None = SHOWN_MODES) -> tuple[Row, list[Row]]:
    """Header and rows: where each path found its normal density, and how many of the draws are from it."""
    rows: list[Row] = []
    for path in result.paths:
        failed = not path.n_draws
        chosen = str(int((result.path == path.number).sum()))
        elbo, best = ("", "") if failed else (number_text(path.elbo), str(path.best_iteration))
        status = "failed" if failed else path.status
        rows.append((str(path.number), elbo, best, str(path.n_iterations), chosen, status))
    return ("path", "ELBO", "iteration", "iterations", "draws", "optimization"), shortened(rows, limit)


def pathfinder_rows(result: PathfinderResult) -> list[tuple[str, str]]:
    """How the draws were made."""
    kind = "resampled by importance" if result.settings.psis_resample else "of all paths"
    return [
        ("approximation", f"normal along paths of L-BFGS, draws {kind}"),
        *(("note", note) for note in result.notes),
        ("k-hat", number_text(result.khat, 3)),
        ("gradient evaluations", str(sum(path.n_gradients for path in result.paths))),
        ("density evaluations", str(sum(path.n_densities for path in result.paths))),
        ("draws", str(len(result))),
        ("compile time", seconds_text(result.model.compile_seconds)),
        ("run time", seconds_text(result.seconds)),
    ]


def pathfinder_summary(result: PathfinderResult) -> str:
    """The table of draws, that of the paths, and how they were made, as plain text."""
    tables = [plain_table(*draws_table(result)), plain_table(*paths_table(result), PATH_COLUMNS_LEFT)]
    return "\n\n".join([*tables, facts_text(pathfinder_rows(result))])


def print_pathfinder(result: PathfinderResult, limit: int | None = SHOWN_ROWS, file: TextIO | None = None) -> None:
    """The same, by rich on a terminal; at most `limit` rows, all for None."""
    file = file or sys.stdout
    print_table(*draws_table(result, limit), file)
    print(file=file)
    print_table(*paths_table(result), file, PATH_COLUMNS_LEFT)
    print(f"\n{facts_text(pathfinder_rows(result))}", file=file)


def pathfinder_html(result: PathfinderResult) -> str:
    tables = [draws_table(result), paths_table(result), (("", ""), pathfinder_rows(result))]
    return "\n".join(html_table(header, rows) for header, rows in tables)


# ---------------------------------------------------------------- JSON


def plain_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays as nested lists, row-major, as in Stan's data files."""
    return {name: value if isinstance(value, float) else value.tolist() for name, value in values.items()}


def json_text(record: Mapping[str, Any], path: str | os.PathLike[str] | None = None) -> str:
    """The record as JSON, written to a file, too, if one is given."""
    text = json_page(record)
    if path is not None:
        write_text(path, text)
    return text


# ---------------------------------------------------------------- log density


def log_density_json(log_density: float, gradient: Any) -> str:
    """One line of JSON, without its end."""
    return json_line({"log_density": log_density, "gradient": gradient})
