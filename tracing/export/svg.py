"""A trace as one SVG: no other file, no network, no program to lay it out. See `svg_layout` for what stands where.

Lines lead from values to what uses them, numbered by operand; jumps are dashed, calls dotted; what is NaN or infinite
is red. Boxes tell value, place and line of the source when pointed at, and link to it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING

from ulam.runtime.markup import markup
from ulam.tracing.export.graph import MAX_NODES, Gap, Picture, is_bad, source_line, written
from ulam.tracing.export.svg_layout import (
    CHARACTER,
    FONT,
    LABEL,
    LINE,
    PAD,
    Box,
    LaidOutFrame,
    Line,
    label_of,
    laid_out,
    shortened,
)
from ulam.tracing.listing import line_of
from ulam.tracing.node_kinds import TargetTerm
from ulam.tracing.nodes import ArgumentNode, ControlFlowNode, ItemNode, Node

if TYPE_CHECKING:
    from ulam.tracing.trace import Trace

MARGIN, TOP = 16, 46

LIGHT = {
    "page": "#ffffff", "ink": "#1d2530", "faint": "#5b6675", "line": "#7d8896", "box": "#ffffff", "argument": "#f1f3f6",
    "jump": "#e8f1fb", "term": "#eef6ea", "band": "#f8f9fb", "rule": "#d5dae1", "frame": "#7a4fb0", "dashed": "#2f6fb5",
    "bad": "#c62828", "bad_box": "#fdecea",
}  # fmt: skip
DARK = {
    "page": "#14181e", "ink": "#e6e9ee", "faint": "#9aa5b4", "line": "#8591a1", "box": "#1f252d", "argument": "#272e38",
    "jump": "#1b2c42", "term": "#203222", "band": "#191e25", "rule": "#343c47", "frame": "#b592e6", "dashed": "#6fa8e6",
    "bad": "#ff7b72", "bad_box": "#3d1f1f",
}  # fmt: skip
LANES = ("#7d8896", "#b3742d", "#3f8f6b", "#a35ba0", "#4b7fc4", "#9a8a2a")
"""Colours of long lines, by lane, so that they can be followed."""


def to_svg(
    what: Node | Trace,
    path: str | os.PathLike[str] | None = None,
    *,
    levels: int | None = None,
    max_nodes: int | None = MAX_NODES,
) -> str:
    """The picture; written to `path` if that is given.

    `levels`: of calls, as in `print_levels`. Of traces with more than `max_nodes` nodes (None: any number) the middle
    is left out.
    """
    picture = Picture(what, levels, max_nodes)
    return written("\n".join(_document(picture)) + "\n", path)


def _document(picture: Picture) -> Iterator[str]:
    node = picture.node
    frame = None if picture.top is None else laid_out(picture)
    title, told = _titles(picture)
    lines = label_of(node)
    width = 2 * PAD + CHARACTER * max(map(len, lines)) if frame is None else frame.width
    height = 2 * LINE + PAD if frame is None else frame.height
    width = max(width, CHARACTER * 1.25 * len(title), CHARACTER * len(told)) + 2 * MARGIN
    height += TOP + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-labelledby="trace-title trace-desc">'
    )
    yield f'<title id="trace-title">Trace of {markup(line_of(node, short=True))}</title>'
    yield f'<desc id="trace-desc">{markup(_described(picture))}</desc>'
    yield f"<style>{_style()}</style>"
    yield (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto"><path class="head" d="M0,0.8 L8,4 L0,7.2 z"/></marker></defs>'
    )
    yield f'<rect class="page" width="{width:.0f}" height="{height:.0f}"/>'
    yield f'<text class="title" x="{MARGIN}" y="22">{markup(title)}</text>'
    yield f'<text class="note" x="{MARGIN}" y="38">{markup(told)}</text>'
    if frame is None:
        box = Box(node, "root", lines, [], x=MARGIN, y=TOP)
        yield _box(picture, box, 0, 0)
    else:
        yield from _frames(picture, frame)
    yield "</svg>"


def _titles(picture: Picture) -> tuple[str, str]:
    node = picture.node
    shown = [not isinstance(m, Gap) for cluster in picture.clusters for m in cluster.members]
    count = f"{sum(shown):,} nodes" + (" shown" if not all(shown) else "")
    calls = len(picture.clusters)
    name = node.function if isinstance(node, ItemNode) else str(node)
    file = PurePath(node.trace.source.filename).name
    return shortened(f"{name} in {file}", 80), f"{count}, {calls:,} call{'s' if calls != 1 else ''}"


def _described(picture: Picture) -> str:
    """For those who do not see the picture: what it shows, and the nodes at the top."""
    parts = [
        "Boxes are operations with their values, from top to bottom as they ran; lines lead from values to their uses, "
        "dashed lines are jumps, dotted lines calls."
    ]
    if picture.top is not None:
        members = picture.top.members
        parts += [line_of(m, short=True) for m in members[:40] if not isinstance(m, Gap)]
    return "\n".join(parts)


def _frames(picture: Picture, top: LaidOutFrame) -> Iterator[str]:
    """Frames within frames, each below the lines and boxes of the one around."""
    work = [(top, float(MARGIN), float(TOP))]
    while work:
        frame, x, y = work.pop()
        yield from _frame(picture, frame, x, y)
        inner = frame.left + PAD + 18
        for number, layer in enumerate(frame.layers):
            if isinstance(layer, LaidOutFrame):
                work.append((layer, x + inner, y + frame.tops[number]))


def _frame(picture: Picture, frame: LaidOutFrame, x: float, y: float) -> Iterator[str]:
    call = frame.cluster.call
    title = shortened(line_of(call, short=True), max(8, int((frame.width - 2 * PAD) / CHARACTER)))
    yield f'<rect class="frame" x="{x:.1f}" y="{y:.1f}" width="{frame.width:.1f}" height="{frame.height:.1f}" rx="8"/>'
    yield _fitted("frame-title", x + PAD, y + LABEL - 6, title)
    for band in frame.bands:
        left, right = x + frame.left, x + frame.width - PAD
        yield (
            f'<rect class="band" x="{left:.1f}" y="{y + band.top:.1f}" width="{right - left:.1f}" '
            f'height="{band.bottom - band.top:.1f}" rx="5"/>'
        )
        if band.label:
            yield _fitted("note", left + 5, y + band.top + 14, band.label)
    yield from (_line(line, x, y) for line in frame.lines)
    yield from _steps(frame, x, y)
    for box in frame.boxes:
        yield _box(picture, box, x, y)


def _steps(frame: LaidOutFrame, x: float, y: float) -> Iterator[str]:
    """Jumps, from one band to the next; calls, from a box to the frame below."""
    for band, following in zip(frame.bands, frame.bands[1:], strict=False):
        layer = frame.layers[band.last]
        if isinstance(layer, LaidOutFrame) or not isinstance(layer[-1].member, ControlFlowNode):
            continue
        box = layer[-1]
        at = x + box.x + 10
        yield (
            f'<path class="dashed" d="M{at:.1f},{y + box.y + box.height:.1f} V{y + following.top:.1f}" '
            'marker-end="url(#arrow)"/>'
        )
    for number, layer in enumerate(frame.layers):
        if isinstance(layer, LaidOutFrame):
            above = frame.layers[number - 1]
            assert not isinstance(above, LaidOutFrame)
            box = above[-1]
            at = x + box.x + 20
            yield (
                f'<path class="dotted" d="M{at:.1f},{y + box.y + box.height:.1f} V{y + frame.tops[number]:.1f}" '
                'marker-end="url(#arrow)"/>'
            )


def _line(line: Line, x: float, y: float) -> str:
    points = [(x + px, y + py) for px, py in line.points]
    (ex, ey) = points[-1]
    if line.lane < 0:
        (bx, by) = points[0]
        bend = (ey - by) / 2
        path = f"M{bx:.1f},{by:.1f} C{bx:.1f},{by + bend:.1f} {ex:.1f},{ey - bend:.1f} {ex:.1f},{ey:.1f}"
    else:
        path = _rounded(points)
    lane = f" l{line.lane % len(LANES)}" if line.lane >= 0 else ""
    told = f"{line.user.name} uses {line.used.name} ({'condition' if line.number == 0 else f'operand {line.number}'})"
    number = ""
    if len(line.user.operands) > 1:
        number = f'<text class="number" x="{ex + 3:.1f}" y="{ey - 3:.1f}">{line.number}</text>'
    return f'<g class="edge{lane}"><title>{markup(told)}</title><path d="{path}" marker-end="url(#arrow)"/>{number}</g>'


def _rounded(points: list[tuple[float, float]], radius: float = 4) -> str:
    """Straight lines with round corners."""
    parts = [f"M{points[0][0]:.1f},{points[0][1]:.1f}"]
    for (ax, ay), (bx, by), (cx, cy) in zip(points, points[1:], points[2:], strict=False):
        before, after = abs(bx - ax) + abs(by - ay), abs(cx - bx) + abs(cy - by)
        r = min(radius, before / 2, after / 2)
        px, py = (bx + (ax - bx) * r / before, by + (ay - by) * r / before) if before else (bx, by)
        qx, qy = (bx + (cx - bx) * r / after, by + (cy - by) * r / after) if after else (bx, by)
        parts.append(f"L{px:.1f},{py:.1f} Q{bx:.1f},{by:.1f} {qx:.1f},{qy:.1f}")
    parts.append(f"L{points[-1][0]:.1f},{points[-1][1]:.1f}")
    return " ".join(parts)


def _box(picture: Picture, box: Box, x: float, y: float) -> str:
    left, top = x + box.x, y + box.y
    member = box.member
    if isinstance(member, Gap):
        return _fitted("gap", left + PAD, top + LINE + 1, box.lines[0])
    told = line_of(member)
    span = picture.spans.of(member)
    if span is not None:
        told += f"\n{span.file}:{span.line}: {source_line(member.trace, span)}"
    parts = [f"<title>{markup(told)}</title>"]
    parts.append(f'<rect x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"/>')
    for n, line in enumerate(box.lines):
        kind = "value" if line.startswith("= ") or (n and isinstance(member, ArgumentNode)) else "what"
        parts.append(_fitted(kind, left + PAD, top + LINE * (n + 1), line))
    inner = "".join(parts)
    if span is not None:
        inner = f'<a href="{markup(f"{span.file}#L{span.line}")}">{inner}</a>'
    return f'<g class="node {_class(member)}">{inner}</g>'


def _class(node: Node) -> str:
    kind = "box"
    if isinstance(node, ControlFlowNode):
        kind = "jump"
    elif isinstance(node, ArgumentNode):
        kind = "argument"
    elif isinstance(node, TargetTerm):
        kind = "term"
    threw = isinstance(node, ItemNode) and not node.is_root and node.threw
    return f"{kind} bad" if threw or is_bad(node) else kind


def _fitted(kind: str, x: float, y: float, text: str) -> str:
    """Text that is as wide as the layout thinks, whatever the font."""
    width = len(text) * CHARACTER
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" textLength="{width:.1f}" '
        f'lengthAdjust="spacingAndGlyphs">{markup(text)}</text>'
    )


def _style() -> str:
    fixed = f"""
text {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {FONT}px }}
.title {{ font-size: 15px; font-weight: 600 }}
.value {{ font-weight: 600 }}
.number {{ font-size: 8.5px }}
.node rect, .band, .frame {{ stroke-width: 1 }}
.node:hover rect {{ stroke-width: 2 }}
.frame {{ fill-opacity: 0.35 }}
.edge path, .dashed, .dotted {{ fill: none; stroke-width: 1.2 }}
.edge:hover path {{ stroke-width: 2.6 }}
.dashed {{ stroke-dasharray: 5 3 }}
.dotted {{ stroke-dasharray: 1.5 3 }}
a {{ cursor: pointer; text-decoration: none }}
"""
    lanes = "\n".join(f".l{n} path {{ stroke: {colour} }}" for n, colour in enumerate(LANES))
    return f"{fixed}{_colours(LIGHT)}{lanes}\n@media (prefers-color-scheme: dark) {{{_colours(DARK)}{lanes}\n}}\n"


def _colours(palette: Mapping[str, str]) -> str:
    return """
.page {{ fill: {page} }}
text {{ fill: {ink} }}
.note, .gap, .number {{ fill: {faint} }}
.frame {{ fill: {page}; stroke: {frame} }}
.frame-title {{ fill: {frame} }}
.band {{ fill: {band}; stroke: {rule} }}
.node rect {{ fill: {box}; stroke: {line} }}
.node.argument rect {{ fill: {argument} }}
.node.jump rect {{ fill: {jump}; stroke: {dashed} }}
.node.term rect {{ fill: {term} }}
.node.bad rect {{ fill: {bad_box}; stroke: {bad} }}
.node.bad .value {{ fill: {bad} }}
.edge path {{ stroke: {line} }}
.dashed {{ stroke: {dashed} }}
.dotted {{ stroke: {frame} }}
.head {{ fill: {faint} }}
""".format_map(palette)
