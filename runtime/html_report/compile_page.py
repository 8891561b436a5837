"""The page of `ulam explain-compile`: a program beside its IR after each pass, and its assembly.

What does not change is markup, and reads without a script: the program with its remarks, the passes with their times.
Listings are data that the script shows: those of all passes together would be most of the page, and nobody reads all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING

from ulam.runtime.compile_record import PHASES, CompileRecord, PassRun
from ulam.runtime.html_report.compile_listings import Listings
from ulam.runtime.html_report.document import document
from ulam.runtime.html_report.tables import coloured_line
from ulam.runtime.markup import markup

if TYPE_CHECKING:
    from ulam.passes.remarks import Remark
    from ulam.runtime.profiling.line_profile import LineProfile

MOST_LONE_REMARKS = 200


def compile_page(
    record: CompileRecord,
    remarks: Sequence[Remark],
    costs: LineProfile | str,
    facts: Sequence[tuple[str, str]],
    title: str = "",
) -> str:
    """The page. `remarks` are those of the record that are to be shown; `costs` are those of lines, or why there are
    none; `facts` are what the head tells besides."""
    title = title or f"{PurePath(record.name).name}: how it was compiled"
    shares = {} if isinstance(costs, str) else {(row.file, row.line): row.share for row in costs.rows}
    listings = Listings(record, shares)
    body = "\n".join(
        [
            '<div class="explorer">',
            _panel("passes", "Passes", _passes(record, listings)),
            _panel("source", "Program", _source(record, remarks, _about(costs), shares)),
            _panel("view", "IR", _VIEW),
            "</div>",
        ]
    )
    head = _head(record, facts, title)
    return document(
        title, head, body, written_by="ulam explain-compile", styles=("page.css", "compile.css"), script="compile.js",
        data=listings.data(),
    )  # fmt: skip


def _panel(name: str, heading: str, content: str) -> str:
    return (
        f'<section id="{name}" class="panel" aria-labelledby="{name}-heading">\n'
        f'<h2 id="{name}-heading">{heading}</h2>\n{content}\n</section>'
    )


_TABS = (("stage", "After a pass"), ("line", "A line through all passes"), ("loops", "Hot loops"))
_VIEW = (
    '<div class="tabs" role="tablist" aria-label="What is shown">'
    + "".join(
        f'<button type="button" role="tab" id="tab-{name}" aria-controls="shown" aria-selected="false" '
        f'tabindex="-1">{words}</button>'
        for name, words in _TABS
    )
    + '</div>\n<div class="bar-of-view"><p id="told" role="status"></p><span class="choices" id="choices">'
    '<label><input type="checkbox" id="only"> only this line</label>'
    '<label><input type="checkbox" id="gone"> what went</label></span></div>\n'
    '<div id="shown" role="tabpanel" tabindex="0" aria-labelledby="tab-stage">'
    "<noscript><p>The IR after each pass and the assembly are shown by a script, which does not run here.</p>"
    "</noscript></div>"
)


# ---------------------------------------------------------------- the head


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f} ms" if seconds < 10 else f"{seconds:,.1f} s"


def _head(record: CompileRecord, facts: Sequence[tuple[str, str]], title: str) -> str:
    passes = [run for run in record.runs if not run.has_steps]
    did = sum(run.changed is not False for run in passes)
    rows = [
        *facts,
        ("unit", record.unit),
        ("time", f"{_milliseconds(record.seconds)} of the processor"),
        ("passes", f"{len(passes)} runs, of which {did} changed something"),
    ]
    shown = "".join(f"<div><dt>{markup(name)}</dt><dd>{markup(value)}</dd></div>" for name, value in rows)
    phases = _phase_seconds(record)
    total = sum(phases.values()) or 1.0
    bars = "".join(
        f'<span class="p{number}" style="flex-grow: {max(1, round(1000 * seconds / total))}" '
        f'title="{markup(PHASES[phase])}: {_milliseconds(seconds)}"></span>'
        for number, (phase, seconds) in enumerate(phases.items())
    )
    keys = "".join(
        f'<li class="p{number}">{markup(PHASES[phase])} <b>{_milliseconds(seconds)}</b></li>'
        for number, (phase, seconds) in enumerate(phases.items())
    )
    return (
        f'<h1>{markup(title)}</h1>\n<dl class="facts">{shown}</dl>\n<div class="times" aria-hidden="true">{bars}</div>'
        f'<ul class="keys" aria-label="Times of the phases">{keys}</ul>\n'
    )


def _phase_seconds(record: CompileRecord) -> dict[str, float]:
    """The CPU time of each phase."""
    found = dict.fromkeys(PHASES, 0.0)
    for run in record.runs:
        if run.depth == 0:
            found[run.phase] += run.seconds
    return found


# ---------------------------------------------------------------- passes


def _passes(record: CompileRecord, listings: Listings) -> str:
    most = max((run.seconds for run in record.runs), default=0.0)
    parts: list[str] = []
    for number, (phase, words) in enumerate(PHASES.items()):
        runs = [(place, run) for place, run in enumerate(record.runs) if run.phase == phase]
        if runs:
            rows = "".join(_items(runs, 0, most, listings))
            parts.append(f'<h3 class="p{number}">{markup(words)}</h3><ol class="runs">{rows}</ol>')
    note = f'<p class="told">{markup(listings.note)}</p>' if listings.note else ""
    key = '<p class="told key-of-line" id="touched-key" hidden><span>●</span> did something to the line</p>'
    return "\n".join([key, note, *parts])


_Runs = Sequence[tuple[int, PassRun]]


def _items(runs: _Runs, depth: int, most: float, listings: Listings) -> Iterator[str]:
    """The runs of one depth with their steps; those that changed nothing, in a row, folded."""
    starts = [k for k, (_, run) in enumerate(runs) if run.depth == depth]
    groups = [runs[start:end] for start, end in zip(starts, [*starts[1:], len(runs)], strict=True)]
    idle: list[_Runs] = []
    for group in groups:
        if group[0][1].changed is False:
            idle.append(group)
            continue
        yield from _folded(idle, most)
        idle = []
        yield _item(group, depth, most, listings)
    yield from _folded(idle, most)


def _item(group: _Runs, depth: int, most: float, listings: Listings) -> str:
    place, run = group[0]
    steps = "".join(_items(group[1:], depth + 1, most, listings)) if len(group) > 1 else ""
    inner = f'<ol class="runs">{steps}</ol>' if steps else ""
    name = f'<span class="name">{markup(run.name)}</span>'
    if listings.has(place):
        name = f'<button type="button" class="name" data-stage="{place}">{markup(run.name)}</button>'
    elif not steps:
        name = f'<span class="name" title="Its IR was left out">{markup(run.name)}</span>'
    return f'<li>{_row(run, name, most)}{inner}</li>'


def _row(run: PassRun, name: str, most: float) -> str:
    width = 100 * run.seconds / most if most else 0.0
    ops = ""
    if run.ops:
        kinds = ", ".join(f"{count} {dialect}" for dialect, count in sorted(run.ops.items()))
        change = f"{run.before}\u2009→\u2009{run.after}" if run.before and run.before != run.after else f"{run.after}"
        ops = f'<span class="ops" title="ops: {markup(kinds)}">{change} ops</span>'
    elif run.listing:
        ops = f'<span class="ops">{len(run.listing)} lines</span>'
    return (
        f'<div class="run">{name}<span class="ms">{_milliseconds(run.seconds)}</span>{ops}'
        f'<span class="barcell" aria-hidden="true"><span class="bar" style="width: {width:.1f}%"></span></span></div>'
    )


def _folded(idle: list[_Runs], most: float) -> Iterator[str]:
    """Passes that changed nothing."""
    if not idle:
        return
    seconds = sum(group[0][1].seconds for group in idle)
    leaves = Counter(run.name for group in idle for _, run in group if not run.has_steps)
    count = leaves.total()
    words = f"{count} runs changed nothing" if count > 1 else f"{next(iter(leaves))} changed nothing"
    rows = "".join(
        f'<li class="idle" style="margin-left: {0.9 * (run.depth - group[0][1].depth):.1f}em">'
        f'{_row(run, f"<span class=name>{markup(run.name)}</span>", most)}</li>'
        for group in idle
        for _, run in group
    )
    yield (
        f'<li class="fold"><details><summary>{markup(words)} <span class="ms">{_milliseconds(seconds)}</span>'
        f'</summary><ol class="runs">{rows}</ol></details></li>'
    )


# ---------------------------------------------------------------- the program


def _source(
    record: CompileRecord, remarks: Sequence[Remark], about: str, shares: dict[tuple[str, int], float]
) -> str:
    by_line: dict[tuple[str, int], list[Remark]] = {}
    lone: list[Remark] = []
    for remark in remarks:
        place = remark.place
        known = place is not None and place[0] in record.sources
        (by_line.setdefault(place[:2], []) if place is not None and known else lone).append(remark)
    most = max(shares.values(), default=0.0)
    parts = [f'<p class="told">{markup(about)}</p>']
    count = sum(map(len, by_line.values()))
    if count:
        parts.append(
            f'<label class="told"><input type="checkbox" id="all-remarks"> all {count} remarks</label>'
        )
    for number, (file, text) in enumerate(record.sources.items()):
        if len(record.sources) > 1:
            parts.append(f'<p class="file">{markup(file)}</p>')
        rows = "\n".join(_lines(number, file, text, by_line, shares, most))
        parts.append(
            f'<div class="lines card" role="listbox" tabindex="0" aria-label="Lines of {markup(file)}">{rows}</div>'
        )
    if lone:
        items = "".join(map(_remark, lone[:MOST_LONE_REMARKS]))
        parts.append(f'<h3>Without a line</h3><ul class="remarks lone">{items}</ul>')
    return "\n".join(parts)


def _about(costs: LineProfile | str) -> str:
    measured = costs if isinstance(costs, str) else f"Shares are of the time of a gradient, of {costs.total:,} samples."
    return f"Choose a line to see what became of it. {measured}"


def _lines(
    number: int,
    file: str,
    text: str,
    remarks: dict[tuple[str, int], list[Remark]],
    shares: dict[tuple[str, int], float],
    most: float,
) -> Iterator[str]:
    is_comment = False
    for line, content in enumerate(text.splitlines(), 1):
        shown, is_comment = coloured_line(content, is_comment)
        told = remarks.get((file, line), [])
        badge = f'<span class="badge" title="{len(told)} remarks">{len(told)}</span>' if told else ""
        share = shares.get((file, line), 0.0)
        cost = f'<span class="share">{100 * share:.0f}%</span>' if share >= 0.005 else ""
        heat = f' style="--share: {share / most:.2f}"' if cost and most else ""
        listed = f'<ul class="remarks">{"".join(map(_remark, told))}</ul>' if told else ""
        yield (
            f'<div class="line{" hot" if heat else ""}" role="option" aria-selected="false" id="s{number}-{line}" '
            f'data-file="{number}" data-line="{line}"{heat}><span class="number">{line}</span>'
            f'<code>{shown}</code><span class="side">{badge}{cost}</span>{listed}</div>'
        )


def _remark(remark: Remark) -> str:
    kind, sign, word = ("done", "✓", "done") if remark.done else ("kept", "–", "not done")
    return (
        f'<li class="{kind}"><span role="img" aria-label="{word}">{sign}</span> <b>{markup(remark.pass_name)}</b> '
        f"{markup(remark.subject)}: {markup(remark.message)}</li>"
    )
