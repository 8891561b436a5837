"""The page: the sections of the report as HTML, in one file with its style and a script that is not needed.

Nothing of it is fetched: there are no fonts, images or scripts of elsewhere, and the page forbids them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from ulam.runtime.html_report import figures
from ulam.runtime.html_report.document import document
from ulam.runtime.html_report.selection import Quantity, Shown
from ulam.runtime.html_report.tables import (
    chain_table,
    fact_table,
    setting_rows,
    source_table,
    summary_section,
    version_rows,
)
from ulam.runtime.html_report.verdict import BAD, CARE, GOOD, NONE, CheckRow, checks, level_of, verdict
from ulam.runtime.markup import markup
from ulam.runtime.names import bracket_name
from ulam.runtime.results import number_text
from ulam.runtime.sampling.diagnose import LEAST_BFMI
from ulam.runtime.sampling.draw_statistics import bfmi
from ulam.runtime.sampling.report import facts

if TYPE_CHECKING:
    from ulam.runtime.profiling.line_profile import LineProfile
    from ulam.runtime.sampling.fit import SampleFit

SIGNS = {GOOD: ("✓", "passed"), CARE: ("!", "with care"), BAD: ("✕", "failed"), NONE: ("–", "unknown")}
"""Of a verdict, for those who do not see colours, and in words for those who do not see."""

NAMED_ELEMENTS = 20
"""Elements that a problem lists."""

Section = tuple[str, str, str]
"""The id of a section, its heading, its contents."""


def page(fit: SampleFit, costs: LineProfile | str, *, title: str, rows: int | None) -> str:
    """The report. `costs` are those of the lines, or why there are none; `rows` the most of the summary."""
    selection = Shown(fit)
    sections = list(_sections(fit, selection, costs, rows))
    links = "".join(f'<a href="#{name}">{markup(heading)}</a>' for name, heading, _ in sections)
    body = "\n".join(
        f'<section id="{name}" aria-labelledby="{name}-heading">\n<h2 id="{name}-heading">{markup(heading)}</h2>\n'
        f"{content}\n</section>"
        for name, heading, content in sections
    )
    head = f'{_head(fit, title)}<nav class="parts" aria-label="Parts of the report">{links}</nav>\n'
    return document(title, head, body, written_by="ulam report", styles=("page.css",), script="page.js")


# ---------------------------------------------------------------- the headline


def _head(fit: SampleFit, title: str) -> str:
    found = verdict(fit)
    first = f'<p class="first"><b>First:</b> {markup(found.first)}</p>' if found.first else ""
    ended = f"; it ended early, by {'an' if fit.ended[0] in 'aeiou' else 'the'} {fit.ended}" if fit.ended else ""
    chains = f"{fit.n_chains} chain{'s' if fit.n_chains != 1 else ''} of {fit.n_draws:,} draws{ended}"
    sign = f'<span class="sign" aria-hidden="true">{SIGNS[found.level][0]}</span>'
    return (
        f'<h1>{markup(title)}</h1>\n<p class="sub">{markup(chains)}, {len(fit.names):,} values in each</p>\n'
        f'<div class="verdict {found.level}" role="note">{sign}'
        f'<p class="sentence">{markup(found.sentence)}</p>{first}</div>\n{_tiles(fit)}'
    )


def _tiles(fit: SampleFit) -> str:
    items = "".join(map(_tile, checks(fit)))
    return f'<ul class="tiles" aria-label="What was checked">{items}</ul>\n' if items else ""


def _sign(level: str) -> str:
    """The sign of a check, with its word."""
    sign, word = SIGNS[level]
    return f'<span class="tone {level}" role="img" aria-label="{word}">{sign}</span>'


def _tile(row: CheckRow) -> str:
    return (
        f'<li><span class="what">{_sign(row.level)} {markup(row.title)}</span>'
        f'<span class="much">{markup(row.value)}</span>'
        f'<span class="where">{markup(row.where or f"should be {row.wanted}")}</span></li>'
    )


# ---------------------------------------------------------------- sections


def _sections(
    fit: SampleFit, selection: Shown, costs: LineProfile | str, rows: int | None
) -> Iterator[Section]:
    yield "diagnostics", "Diagnostics", _diagnostics(fit)
    if fit.n_draws:
        yield "summary", "Summary", summary_section(fit, selection, rows)
    if selection.draws.n_draws:
        yield "traces", "Traces and ranks" if not selection.is_warmup else "Traces of the warmup", _traces(selection)
    if fit.n_draws:
        yield "energy", "Energy", _energy(fit, selection)
        yield "pairs", "Pairs of the parameters that mix worst", _pairs(selection)
    yield "program", "Program and what its lines cost", source_table(fit, costs)
    settings = fact_table(setting_rows(fit), "Settings", ("setting", "value"))
    how = fact_table([(name, value, False) for name, value in facts(fit)], "The run", ("", ""))
    yield "settings", "Sampler", f'<div class="two">{how}{settings}</div>\n{chain_table(fit)}'
    versions = fact_table([(name, value, False) for name, value in version_rows(fit)], "", ("", ""))
    yield "versions", "Versions", f'<div class="two">{versions}</div>'


def _diagnostics(fit: SampleFit) -> str:
    diagnosis = fit.diagnose()
    items = []
    for problem in diagnosis.problems:
        names = problem.elements[:NAMED_ELEMENTS]
        more = len(problem.elements) - len(names)
        listed = ", ".join(map(bracket_name, names)) + (f" and {more:,} more" if more else "")
        elements = f'<p class="told">{markup(listed)}</p>' if len(problem.elements) > 5 else ""
        items.append(
            f'<li class="{level_of(problem)}"><p>{markup(problem.found)}</p>'
            f"<p><b>What to do:</b> {markup(problem.advice)}</p>{elements}</li>"
        )
    parts = [f'<ul class="problems">{"".join(items)}</ul>'] if items else []
    parts += [f"<p>{markup(str(diagnosis))}</p>"] if not items else []
    parts += [f'<p class="told">{markup(note)}</p>' for note in fit.notes]
    table = "".join(
        f'<tr><td class="l">{_sign(row.level)}</td><th class="l" scope="row">'
        f'{markup(row.title)}</th><td>{markup(row.value)}</td><td class="l">{markup(row.where)}</td>'
        f'<td class="l">{markup(row.wanted)}</td></tr>'
        for row in checks(fit)
    )
    if table:
        head = '<td></td><th class="l" scope="col">check</th><th scope="col">found</th><td></td>'
        head += '<th class="l" scope="col">should be</th>'
        body = f"<thead><tr>{head}</tr></thead><tbody>{table}</tbody>"
        parts.append(f'<div class="card scroll"><table class="full">{body}</table></div>')
    return "\n".join(parts)


def _key(kind: str, d: str, words: str) -> str:
    """An entry of a legend."""
    picture = f'<svg viewBox="0 0 22 12" aria-hidden="true"><path class="{kind}" d="{d}"/></svg>'
    return f"<li>{picture}{markup(words)}</li>"


def _legend(selection: Shown) -> str:
    keys = [
        _key(f"curve {figures.colour(position)}", "M1 6h20", f"chain {chain + 1}")
        for position, chain in enumerate(selection.chains)
    ]
    if selection.divergent.any():
        keys.append(_key("mark", "M11 1v10", "divergence"))
    return f'<ul class="legend">{"".join(keys)}</ul>'


def _traces(selection: Shown) -> str:
    quantities = selection.quantities
    said = [_what_is_drawn(selection)]
    if not selection.is_warmup:
        said.append(
            "The draws one after the other, which should look like noise with the chains on top of each other; their "
            "distribution in each chain; and how often the draws of each chain have which rank among those of all: "
            "bars should end within the grey band around the line."
        )
    if selection.draws.n_draws > figures.TRACE_POINTS:
        said.append("Of many draws in a row the smallest and the largest are drawn.")
    cards = "\n".join(_plot(selection, quantity) for quantity in quantities)
    text = "".join(f'<p class="told">{markup(each)}</p>' for each in said if each)
    return f'{text}{_legend(selection)}<div class="plots">\n{cards}\n</div>'


def _what_is_drawn(selection: Shown) -> str:
    total, count = len(selection.fit.names), len(selection.quantities) - 1
    parts: list[str] = []
    if count < total:
        worst = sum(quantity.is_worst for quantity in selection.quantities)
        what = f"the {worst} that mix worst and the first {count - worst}" if worst else f"the first {count}"
        parts.append(f"Of {total:,} values {what} are drawn, after the log density.")
    chains = selection.draws.n_chains
    if len(selection.chains) < chains:
        shown = len(selection.chains)
        parts.append(f"Of {chains:,} chains the {shown} are drawn that are farthest from the others.")
    return " ".join(parts)


def _plot(selection: Shown, quantity: Quantity) -> str:
    chains, words = selection.chains, figures.described(quantity)
    spread = quantity.statistics.get("r_hat", np.nan)
    facts = [f"R-hat {spread:.3f}" if spread < 100 else "R-hat above 100"] if not np.isnan(spread) else []
    facts += [
        f"{kind} ESS {quantity.statistics[f'ess_{kind}']:,.0f}"
        for kind in ("bulk", "tail")
        if np.isfinite(quantity.statistics.get(f"ess_{kind}", np.nan))
    ]
    if quantity.is_constant:
        facts = [f"always {number_text(float(quantity.draws[np.isfinite(quantity.draws)][0]))}"]
    missing = int(np.count_nonzero(~np.isfinite(quantity.draws)))
    facts += [f"{missing:,} draws are not finite"] if missing else []
    told = "".join(f"<span>{markup(fact)}</span>" for fact in facts)
    pictures = [figures.trace(quantity, chains, selection.divergent, f"Trace of {words}")]
    pictures.append(figures.density(quantity, chains, f"Distribution of {quantity.name} in each chain"))
    if not selection.is_warmup and not quantity.is_constant and np.isfinite(quantity.draws).any():
        size = quantity.statistics.get("ess_bulk", np.nan)
        label = f"Ranks of {quantity.name} in each chain"
        pictures.append(figures.ranks(quantity, chains, size, label))
    row = "".join(pictures)
    return (
        f'<article class="card plot"><div class="head"><h3>{markup(quantity.name)}</h3>{told}</div>'
        f'<div class="row">{row}</div></article>'
    )


def _energy(fit: SampleFit, selection: Shown) -> str:
    if "energy" not in fit.stats or fit.is_fixed:
        return '<p class="told">The sampler has no energy.</p>'
    energies = np.asarray(fit.stats["energy"], dtype=np.float64)
    found = bfmi(energies)
    said = (
        "How the energies of the draws spread (filled), and by how much they change from a draw to the next (line). If "
        "the line is much narrower, the chain moves slowly from one level of energy to another: E-BFMI, the ratio of "
        f"their variances, should be at least {LEAST_BFMI}."
    )
    panels = "".join(_energy_panel(energies[chain], chain, float(found[chain])) for chain in selection.chains)
    kinds = (("marginal", "M1 1h20v10h-20z", "energy, about its mean"),
             ("transition", "M1 11v-9h20v9", "change from draw to draw"))  # fmt: skip
    legend = "".join(_key(kind, d, words) for kind, d, words in kinds)
    return f'<p class="told">{said}</p><ul class="legend">{legend}</ul><div class="panels energies">{panels}</div>'


def _energy_panel(energies: np.ndarray, chain: int, value: float) -> str:
    shown = f"E-BFMI {value:.2f}" if np.isfinite(value) else "E-BFMI unknown"
    low = ' <span class="tone bad">▲ low</span>' if value < LEAST_BFMI else ""
    picture = figures.energy(energies, f"Energies of chain {chain + 1}: {shown}")
    return f'<figure class="card"><figcaption><b>chain {chain + 1}</b>, {shown}{low}</figcaption>{picture}</figure>'


def _pairs(selection: Shown) -> str:
    if not selection.pairs:
        return '<p class="told">There are no two parameters to show: they do not vary, or there are none.</p>'
    count = int(np.count_nonzero(selection.divergent))
    total = selection.divergent.size
    shown = min(total - count, figures.PAIR_DOTS)
    said = [f"Points are {shown:,} of the {total:,} draws." if shown < total - count else "Points are draws."]
    if count:
        drawn = "" if count <= figures.PAIR_CROSSES else f", of which {figures.PAIR_CROSSES} are drawn"
        said.append(
            f"Crosses are the {count:,} that ended with a divergence{drawn}: where they gather, often in the narrow "
            "part of a funnel, the sampler cannot follow the posterior."
        )
    else:
        said.append("No draw ended with a divergence.")
    panels = "".join(_pair_panel(selection, one, other) for one, other in selection.pairs)
    return f'<p class="told">{" ".join(said)}</p><div class="panels pairs">{panels}</div>'


def _pair_panel(selection: Shown, one: Quantity, other: Quantity) -> str:
    label = f"Draws of {one.name} and {other.name}"
    return f'<figure class="card">{figures.pair(one, other, selection.divergent, label)}</figure>'


def title_of(fit: SampleFit) -> str:
    """What a report is called that was given no title."""
    name = PurePath(fit.about.recipe.filename).name
    return name or fit.about.name


