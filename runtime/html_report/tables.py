"""The tables of the report: summary, program, settings, chains, versions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ulam.runtime.html_report.verdict import UNKNOWN
from ulam.runtime.markup import markup
from ulam.runtime.results import number_text, seconds_text
from ulam.runtime.sampling.aligned_numbers import aligned_rows
from ulam.runtime.sampling.diagnose import LARGEST_RHAT, LEAST_BFMI, LEAST_ESS_PER_CHAIN
from ulam.runtime.sampling.draw_statistics import bfmi
from ulam.runtime.sampling.settings import Adaptation, SamplingSettings
from ulam.runtime.sampling.summary import SummaryTable
from ulam.runtime.versions import version_lines

if TYPE_CHECKING:
    from ulam.runtime.html_report.selection import Shown
    from ulam.runtime.profiling.line_profile import LineProfile, LineRow
    from ulam.runtime.sampling.fit import SampleFit

TALL_ROWS = 30
"""Tables with more rows have a bar to scroll, on screens."""

FLAG = ' class="flag"'
"""Of numbers beyond their limit."""

_BLOCK = re.compile(
    r"^\s*(functions|data|transformed data|parameters|transformed parameters|model|generated quantities)\s*(?=\{)"
)

# ---------------------------------------------------------------- summary


def summary_section(fit: SampleFit, selection: Shown, limit: int | None) -> str:
    """The table of the fit, with marks where something is beyond its limit; of many rows the worst and the first."""
    whole = fit.summary()
    chosen = list(selection.listed(limit))
    table = SummaryTable([whole.names[k] for k in chosen], whole.columns, whole.table[chosen])
    header, rows = ("parameter", *table.columns), aligned_rows(table)
    said = f"Marked: R-hat above {LARGEST_RHAT}, effective sample sizes below {LEAST_ESS_PER_CHAIN} for each chain."
    if len(chosen) < len(whole.names):
        said += (
            f" Of {len(whole.names):,} rows {len(chosen):,} are shown, those that mix worst and the first ones: "
            "--rows 0 shows all."
        )
    head = "".join(_cell("th", name, "col", left=not k) for k, name in enumerate(header))
    body = "\n".join(
        _summary_row(row, numbers, table.columns, fit.n_chains)
        for row, numbers in zip(rows, table.table.tolist(), strict=True)
    )
    tall = " tall" if len(rows) > TALL_ROWS else ""
    return (
        f'<p class="told">{markup(said)}</p>\n<div class="tools" id="summary-tools" hidden><label>Show only '
        '<input id="summary-filter" type="search" placeholder="part of a name"></label>'
        '<span id="summary-told" class="told" role="status"></span></div>\n'
        f'<div class="card scroll{tall}" tabindex="0" role="region" aria-label="Summary table">'
        f'<table class="full" id="summary-table"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
        "</div>"
    )


def _summary_row(row: Sequence[str], numbers: Sequence[float], columns: Sequence[str], chains: int) -> str:
    cells = [_cell("th", row[0], "row", left=True)]
    for column, text, value in zip(columns, row[1:], numbers, strict=True):
        low = column.startswith("ess") and value < LEAST_ESS_PER_CHAIN * chains
        kind = FLAG if low or (column == "r_hat" and value > LARGEST_RHAT) else ""
        cells.append(f"<td{kind}>{markup(text)}</td>")
    return f"<tr>{''.join(cells)}</tr>"


def _cell(tag: str, text: str, scope: str = "", *, left: bool = False) -> str:
    kind = ' class="l"' if left else ""
    said = f' scope="{scope}"' if scope else ""
    return f"<{tag}{kind}{said}>{markup(text)}</{tag}>"


# ---------------------------------------------------------------- facts


def fact_table(rows: Sequence[tuple[str, str, bool]], caption: str, header: tuple[str, str]) -> str:
    """Names and values; those that differ from a default are marked."""
    head = "".join(_cell("th", name, "col", left=True) for name in header)
    kinds = {False: "l wrap", True: "l wrap changed"}
    body = "".join(
        f'<tr>{_cell("th", name, "row", left=True)}<td class="{kinds[changed]}">{markup(value)}</td></tr>'
        for name, value, changed in rows
    )
    shown = f"<h3>{markup(caption)}</h3>" if caption else ""
    top = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f'<div class="card scroll">{shown}<table class="full">{top}<tbody>{body}</tbody></table></div>'


def setting_rows(fit: SampleFit) -> list[tuple[str, str, bool]]:
    """The options of the run, whether given or not."""

    def rows(of: Any, kind: Any, prefix: str = "") -> Iterator[tuple[str, str, bool]]:
        for each in fields(kind):
            value = getattr(of, each.name)
            if each.name == "adapt":
                yield from rows(value, Adaptation, "adapt: ")
                continue
            default = each.default if each.default is not MISSING else None
            changed = value != default
            shown = "chosen by the sampler" if value is None else _setting_text(value)
            yield f"{prefix}{each.name}", shown + (f"  (default {_setting_text(default)})" if changed else ""), changed

    return list(rows(fit.settings, SamplingSettings))


def _setting_text(value: Any) -> str:
    if value is None:
        return "chosen by the sampler"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return number_text(value, 6) if isinstance(value, float) else str(value)


def chain_table(fit: SampleFit) -> str:
    """A row for each chain: what was adapted, how it went, what it took."""
    if not fit.n_chains:
        return ""
    columns: dict[str, list[str]] = {"step size": [number_text(float(size), 3) for size in fit.step_size]}
    flags: dict[str, list[bool]] = {}
    stats = {name: np.asarray(values, dtype=np.float64) for name, values in fit.stats.items()} if fit.n_draws else {}
    if "divergent" in stats:
        counts = np.count_nonzero(stats["divergent"], axis=1)
        columns["divergences"], flags["divergences"] = [f"{count:,}" for count in counts], (counts > 0).tolist()
    if "accept_stat" in stats:
        columns["mean acceptance"] = [f"{value:.2f}" for value in stats["accept_stat"].mean(axis=1)]
    if "treedepth" in stats:
        columns["mean tree depth"] = [f"{value:.1f}" for value in stats["treedepth"].mean(axis=1)]
    if "n_leapfrog" in stats:
        columns["gradients"] = [f"{value:,.0f}" for value in stats["n_leapfrog"].sum(axis=1)]
    if "energy" in stats:
        found = bfmi(stats["energy"])
        columns["E-BFMI"], flags["E-BFMI"] = [f"{value:.2f}" for value in found], (found < LEAST_BFMI).tolist()
    times = np.asarray(fit.seconds, dtype=np.float64).reshape(fit.n_chains, -1)
    for k, name in enumerate(("warmup", "draws")[: times.shape[1]]):
        columns[name] = [seconds_text(value) if np.isfinite(value) else UNKNOWN for value in times[:, k].tolist()]
    head = "".join(_cell("th", name, "col", left=not k) for k, name in enumerate(("chain", *columns)))
    body = "".join(
        f"<tr>{_cell('th', str(chain + 1), 'row', left=True)}"
        + "".join(
            f"<td{FLAG if name in flags and flags[name][chain] else ''}>{markup(cells[chain])}</td>"
            for name, cells in columns.items()
        )
        + "</tr>"
        for chain in range(fit.n_chains)
    )
    tall = " tall" if fit.n_chains > TALL_ROWS else ""
    return (
        f'<div class="card scroll{tall}" style="margin-top: 14px"><h3>Chains</h3><table class="full"><thead><tr>{head}'
        f"</tr></thead><tbody>{body}</tbody></table></div>"
    )


def version_rows(fit: SampleFit) -> list[tuple[str, str]]:
    """What the fit was made with, and the page."""
    lines = [(name, value) for name, _, value in (line.partition(": ") for line in version_lines())]
    return [("the fit", fit.about.written_by or UNKNOWN), ("this page", f"ulam {lines[0][1]}"), *lines[1:]]


# ---------------------------------------------------------------- program


def source_table(fit: SampleFit, costs: LineProfile | str) -> str:
    """The program line by line, with what each line costs of a gradient; or why that is not known."""
    recipe = fit.about.recipe
    if isinstance(costs, str):
        said = f'<p class="told">{markup(costs)}</p>'
        lines = [(recipe.filename, k, text, None) for k, text in enumerate(recipe.text.splitlines(), 1)]
        return f"{said}\n{_listing(lines, False)}" if lines else said
    lost = costs.unattributed / costs.total
    said = (
        f"Shares of the time of a gradient of the log density, measured for this report at a draw of the fit: "
        f"{costs.total:,} samples; {100 * lost:.1f}% belong to no line. Generated quantities are not part of it."
    )
    parts = [f'<p class="told">{markup(said)}</p>']
    lines = list(costs.listing())
    for file in costs.files:
        if len(costs.files) > 1:
            parts.append(f'<p class="file">{markup(file)}</p>')
        parts.append(_listing([line for line in lines if line[0] == file], True))
    return "\n".join(parts)


def _listing(lines: Sequence[tuple[str, int, str, LineRow | None]], has_costs: bool) -> str:
    most = max((row.share for *_, row in lines if row is not None), default=0.0)
    is_comment = False
    body: list[str] = []
    for _, number, text, row in lines:
        shown, is_comment = coloured_line(text, is_comment)
        cost = ""
        hot = ""
        if has_costs:
            share = 0.0 if row is None else row.share
            told = "" if row is None else f"{100 * share:.1f}%"
            width = 100 * share / most if most else 0.0
            bar = f'<span class="bar" style="width: {width:.0f}%"></span>' if width >= 0.5 else ""
            cost = f'<td>{told}</td><td class="barcell" aria-hidden="true">{bar}</td>'
            hot = f' class="hot" style="--share: {share / most:.2f}"' if width >= 2 else ""
        body.append(f'<tr{hot}>{cost}<th scope="row">{number}</th><td class="text">{shown}</td></tr>')
    names = ("cost", "", "line", "program") if has_costs else ("line", "program")
    head = "".join(_cell("th", name, "col", left=name in ("", "program")) for name in names)
    return (
        f'<div class="card scroll"><table class="code"><thead><tr>{head}</tr></thead>\n<tbody>'
        + "\n".join(body)
        + "</tbody></table></div>"
    )


def coloured_line(text: str, is_comment: bool) -> tuple[str, bool]:
    """A line with its comments faint and the names of blocks strong; whether a comment goes on in the next one."""
    parts: list[str] = []
    if not is_comment and (block := _BLOCK.match(text)):
        parts.append(f'<span class="block">{markup(block[0])}</span>')
        text = text[block.end() :]
    while text:
        if is_comment:
            end = text.find("*/")
            cut = len(text) if end < 0 else end + 2
            parts.append(f'<span class="comment">{markup(text[:cut])}</span>')
            text, is_comment = text[cut:], end < 0
            continue
        begins = [place for place in (text.find("//"), text.find("/*")) if place >= 0]
        begin = min(begins, default=len(text))
        parts.append(markup(text[:begin]))
        text = text[begin:]
        if text.startswith("//"):
            parts.append(f'<span class="comment">{markup(text)}</span>')
            break
        is_comment = bool(text)
    return "".join(parts), is_comment
