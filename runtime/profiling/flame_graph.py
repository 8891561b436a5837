"""A flame graph as one SVG, or a page with it and the table: no other file, no network.

Phases are on top, regions below those they are nested in; widths are times. A line at the lower edge of a box is the
share of the reverse sweep. A click on a box makes it as wide as the picture, a click elsewhere or Escape shows all.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ulam.runtime.markup import markup
from ulam.runtime.output_files import write_text
from ulam.runtime.profiling.records import ProfileNode
from ulam.runtime.profiling.report import merged, region_table, time_text
from ulam.runtime.results import html_table

if TYPE_CHECKING:
    from ulam.runtime.profiling.profiler import Profiler

WIDTH, MARGIN, TOP, ROW, FONT = 1200, 12, 58, 26, 12
CHARACTER = 0.605 * FONT
"""Width of a character of a monospaced font."""

STYLE = f"""
text {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: {FONT}px; fill: #1d2530 }}
.title {{ font-size: 17px; font-weight: 600 }}
.note {{ fill: #5b6675 }}
.box {{ cursor: pointer }}
.box rect {{ stroke: #fff; stroke-width: 1 }}
.box .reverse {{ stroke: none }}
.box text {{ pointer-events: none }}
.box:hover .body {{ stroke: #1d2530 }}
"""

# No characters that XML or HTML would want escaped, so that it can stand in both as it is.
SCRIPT = f"""
(function () {{
  var svg = document.getElementById("flame-graph");
  var boxes = Array.prototype.slice.call(svg.querySelectorAll(".box"));
  var width = {WIDTH - 2 * MARGIN}, margin = {MARGIN}, character = {CHARACTER:.3f};
  function value(box, name) {{ return Number(box.getAttribute("data-" + name)); }}
  function label(box, room) {{
    var name = box.getAttribute("data-name"), share = box.getAttribute("data-share");
    var fits = Math.floor((room - 10) / character);
    if (fits >= name.length + share.length + 2) return name + "  " + share;
    if (fits >= name.length) return name;
    return fits >= 3 ? name.slice(0, fits - 1) + "\\u2026" : "";
  }}
  function show(from, size) {{
    boxes.forEach(function (box) {{
      var left = Math.max(0, (value(box, "from") - from) / size);
      var right = Math.min(1, (value(box, "from") + value(box, "size") - from) / size);
      var seen = right - left > 1e-9;
      box.style.display = seen ? "" : "none";
      if (!seen) return;
      var x = margin + left * width, room = (right - left) * width;
      var body = box.querySelector(".body"), line = box.querySelector(".reverse"), text = box.querySelector("text");
      body.setAttribute("x", x);
      body.setAttribute("width", room);
      line.setAttribute("x", x);
      line.setAttribute("width", room * value(box, "reverse"));
      text.setAttribute("x", x + 5);
      text.textContent = label(box, room);
    }});
  }}
  boxes.forEach(function (box) {{
    box.addEventListener("click", function (event) {{
      event.stopPropagation();
      show(value(box, "from"), value(box, "size"));
    }});
  }});
  svg.addEventListener("click", function () {{ show(0, 1); }});
  document.addEventListener("keydown", function (event) {{ if (event.key === "Escape") show(0, 1); }});
}})();
"""


@dataclass(frozen=True)
class Rectangle:
    """A node in the picture: where it begins and how wide it is, as parts of the whole."""

    node: ProfileNode
    depth: int
    start: float
    size: float


def flame_graph(profiler: Profiler, path: str | os.PathLike[str] | None = None, *, title: str = "Profile") -> str:
    """The picture of all that was recorded; written to `path` if that is given, as a page if it ends in `.html`."""
    text = svg(profiler, title)
    if path is not None and Path(path).suffix.lower() in (".html", ".htm"):
        text = page(profiler, text, title)
    if path is not None:
        write_text(path, text)
    return text


def svg(profiler: Profiler, title: str) -> str:
    """The SVG, which is complete by itself."""
    boxes = list(_boxes(profiler))
    height = TOP + ROW * (1 + max((box.depth for box in boxes), default=0)) + MARGIN
    whole = boxes[0].node.total_time if boxes else 0.0
    told = (
        f"{time_text(whole)} in evaluations; widths are times, the line below a name is the share of the reverse sweep"
    )
    return "\n".join(
        [
            f'<svg id="flame-graph" xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
            f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{markup(title)}">',
            f"<style>{STYLE}</style>",
            f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
            f'<text class="title" x="{MARGIN}" y="24">{markup(title)}</text>',
            f'<text class="note" x="{MARGIN}" y="44">{markup(told)}</text>',
            *(_drawn(profiler, box, whole) for box in boxes),
            f"<script>{SCRIPT}</script>",
            "</svg>\n",
        ]
    )


def page(profiler: Profiler, picture: str, title: str) -> str:
    """A page with the picture and the table of names."""
    header, rows, _ = region_table(profiler)
    style = (
        "body { font-family: system-ui, sans-serif; margin: 24px; color: #1d2530 } "
        "svg { max-width: 100%; height: auto } table { border-collapse: collapse; margin-top: 16px } "
        "td, th { padding: 3px 12px; border-bottom: 1px solid #e3e7ec; font-variant-numeric: tabular-nums }"
    )
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{markup(title)}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n{picture}{html_table(header, rows)}\n</body>\n</html>\n"
    )


def _boxes(profiler: Profiler) -> Iterator[Rectangle]:
    """All nodes, parents first; several phases are put side by side below one box for all."""
    roots = [root for root in merged(profiler.evaluations()) if root.children]
    if not roots:
        return
    top = roots[0]
    if len(roots) > 1:
        top = replace(
            roots[0],
            name="all phases",
            forward_time=sum(root.total_time for root in roots),
            passes=sum(root.passes for root in roots),
            children=roots,
        )
    yield from _laid_out(top, 0, 0.0, 1.0)


def _laid_out(node: ProfileNode, depth: int, start: float, size: float) -> Iterator[Rectangle]:
    yield Rectangle(node, depth, start, size)
    inner = sum(child.total_time for child in node.children)
    whole = max(node.total_time, inner)  # the clock of a parent stops last, but by rounding
    for child in node.children:
        width = size * child.total_time / whole if whole else 0.0
        yield from _laid_out(child, depth + 1, start, width)
        start += width


def _drawn(profiler: Profiler, box: Rectangle, whole: float) -> str:
    node = box.node
    share = f"{100 * node.total_time / whole:.1f}%" if whole else ""
    reverse = node.reverse_time / node.total_time if node.region is not None and node.total_time else 0.0
    x, y = MARGIN + box.start * (WIDTH - 2 * MARGIN), TOP + box.depth * ROW
    room = box.size * (WIDTH - 2 * MARGIN)
    body, line = _colours(node)
    return (
        f'<g class="box" data-from="{box.start:.9g}" data-size="{box.size:.9g}" data-reverse="{reverse:.4g}" '
        f'data-name="{markup(node.name)}" data-share="{share}"><title>{markup(_told(profiler, node, share))}</title>'
        f'<rect class="body" x="{x:.2f}" y="{y}" width="{room:.2f}" height="{ROW - 2}" rx="2" fill="{body}"/>'
        f'<rect class="reverse" x="{x:.2f}" y="{y + ROW - 6}" width="{room * reverse:.2f}" height="3" fill="{line}"/>'
        f'<text x="{x + 5:.2f}" y="{y + 15}">{markup(label(node.name, share, room))}</text></g>'
    )


def label(name: str, share: str, room: float) -> str:
    """What fits into a box: name and share, the name, its beginning, or nothing. The script does the same."""
    fits = int((room - 10) / CHARACTER)
    if fits >= len(name) + len(share) + 2:
        return f"{name}  {share}"
    if fits >= len(name):
        return name
    return f"{name[: fits - 1]}…" if fits >= 3 else ""


def _colours(node: ProfileNode) -> tuple[str, str]:
    """Of a box and of its line. The hue follows from the name alone; phases are grey."""
    if node.region is None:
        return "hsl(214, 16%, 86%)", "hsl(214, 16%, 50%)"
    spread = hashlib.blake2b(node.name.encode("utf-8", "replace"), digest_size=3).digest()
    hue = round(360 * (256 * spread[0] + spread[1]) / 65536)
    light = 74 + spread[2] % 9
    return f"hsl({hue}, 62%, {light}%)", f"hsl({hue}, 55%, {light - 36}%)"


def _told(profiler: Profiler, node: ProfileNode, share: str) -> str:
    """The text that is shown beside the pointer."""
    lines = [node.name, f"{time_text(node.total_time)} ({share}), itself {time_text(max(0.0, node.self_time))}"]
    if node.region is not None:
        lines.append(f"forward {time_text(node.forward_time)}, reverse {time_text(node.reverse_time)}")
        lines.append(f"{node.gradient_passes} passes with gradient, {node.passes} without")
        lines += [text for text in (node.region.place, profiler.line_text(node.region)) if text]
    return "\n".join(lines)
