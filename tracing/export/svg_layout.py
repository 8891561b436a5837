"""Where things are in a picture of a trace: layers of boxes, top to bottom, and lines between them.

Each run of a block is a band of layers: an op stands below those of its band that it uses, a jump at the end. The nodes
of a call that was entered are in a frame below it. A line between neighbouring layers is a curve; any other one runs
in a lane to the left of the bands, of which each value has one, so that no line crosses a box. Lanes are given as in
register allocation by linear scan (Poletto and Sarkar). All of it takes n log n.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ulam.tracing.export.graph import Cluster, Gap, Picture, numbered_operands
from ulam.tracing.listing import line_of
from ulam.tracing.node_kinds import TargetTerm
from ulam.tracing.nodes import ArgumentNode, ControlFlowNode, ItemNode, JumpNode, Node, Ref
from ulam.tracing.tape.values import Digest, value_text

# ---------------------------------------------------------------- the text of boxes


MAX_CHARACTERS = 46
MAX_ELEMENTS = 3


def label_of(node: Node, inside: Cluster | None = None) -> list[str]:
    """One or two lines."""
    lines = [shortened(line) for line in _lines(node)]
    if inside is not None and inside.hidden:
        lines.append(f"{inside.hidden:,} nodes inside")
    return lines


def _lines(node: Node) -> list[str]:
    head = "" if node.is_root else f"@{node.at} "
    if isinstance(node, ArgumentNode):
        if node.number == 1 and node.is_parameter:
            return [head.strip(), node.name]
        source = node.source if node.is_parameter else None
        passed = f" ← {source} of the caller" if isinstance(source, Ref) and not _at_top(node) else ""
        if (jump := node.jump) is not None:
            passed = f" ← @{jump.at}#{node.place_in_jump}"
        value = node.value
        told = _brief(value) if isinstance(value, np.ndarray | Digest) else value_text(value, node.type)
        return [f"{head}{node.name}{passed}", f"= {told}"]
    text = line_of(node, short=True).removeprefix(f"@{node.at}: ")
    if isinstance(node, JumpNode):
        target, _, reason = text.partition(" since ")
        return [head + target, *([f"since {reason}"] if reason else [])]
    if isinstance(node.value, np.ndarray | Digest) and " = ✗ " not in text:
        return [head + text.rpartition(" = ")[0], f"= {_brief(node.value)}"]
    what, equals, value = text.partition(" = ✗ ") if " = ✗ " in text else text.rpartition(" = ")
    if not equals:
        return [head + text]
    return [head + what, f"= {'✗ ' if '✗' in equals else ''}{value}"]


def _brief(value: np.ndarray[Any, Any] | Digest) -> str:
    """A container with six digits of its elements: there is no room for more."""
    if isinstance(value, Digest):
        return f"[{', '.join(f'{v:.6g}' for v in value.first)}, …] ({'×'.join(map(str, value.sizes))})"
    shown = [f"{v:.6g}" for v in value.ravel()[: MAX_ELEMENTS + 1].tolist()]
    if value.size <= MAX_ELEMENTS + 1 and value.ndim == 1:
        return f"[{', '.join(shown)}]"
    sizes = "×".join(map(str, value.shape))
    return f"[{', '.join([*shown[:MAX_ELEMENTS], *(['…'] if value.size > MAX_ELEMENTS else [])])}] ({sizes})"


def _at_top(node: Node) -> bool:
    parent = node.parent
    return parent is None or parent.is_root


def shortened(text: str, most: int = MAX_CHARACTERS) -> str:
    """Text with its middle left out."""
    if len(text) <= most:
        return text
    return f"{text[: most - most // 3 - 1]}…{text[-(most // 3) :]}"


FONT = 12
CHARACTER = 0.605 * FONT
"""Width of a character of a monospaced font."""
LINE = 15
MAX_WIDTH = 900
"""Of a layer; longer ones are broken."""
PAD, GAP, CHANNEL, TRACK, LANE, LABEL = 10, 14, 24, 6, 8, 22
"""Inside of a box; between boxes; between layers; between lines there; between lanes; height of a frame's title."""


@dataclass(eq=False)
class Box:
    """A node, or the mark for those left out: its lines of text, its layer, and its place within the frame."""

    member: Node | Gap
    name: str
    lines: list[str]
    operands: list[tuple[int, int]]
    """Number of the operand, and position of what is used, that is shown or left out."""
    layer: int = 0
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * CHARACTER + 2 * PAD

    @property
    def height(self) -> float:
        return LINE * len(self.lines) + 8

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass
class Band:
    """A run of a block: its layers, first and last, and its place. `label`: of the block."""

    label: str
    first: int
    last: int = 0
    top: float = 0
    bottom: float = 0


@dataclass
class Line:
    """An edge as it is drawn: from `used` to `user`, by way of points. `lane`: its number; -1 for a curve."""

    used: Box
    user: Box
    number: int
    port: float
    lane: int = -1
    points: list[tuple[float, float]] = field(default_factory=list[tuple[float, float]])


@dataclass(eq=False)
class LaidOutFrame:
    """A call: its boxes by layer, or the frame of a call inside; places are relative to its upper left corner."""

    cluster: Cluster
    layers: list[list[Box] | LaidOutFrame] = field(default_factory=list["list[Box] | LaidOutFrame"])
    bands: list[Band] = field(default_factory=list[Band])
    lines: list[Line] = field(default_factory=list[Line])
    lanes: int = 0
    tops: list[float] = field(default_factory=list[float])
    left: float = 0
    """Where the bands begin, right of the lanes."""
    width: float = 0
    height: float = 0

    @property
    def boxes(self) -> Iterator[Box]:
        for layer in self.layers:
            if not isinstance(layer, LaidOutFrame):
                yield from layer


def laid_out(picture: Picture) -> LaidOutFrame:
    """The frame of the call at the top, with all that is in it."""
    frames: dict[str, LaidOutFrame] = {}
    for cluster in reversed(picture.clusters):  # what is inside comes first
        frames[cluster.name] = _Layout(cluster, frames).frame
    return frames[""]


class _Layout:
    """Lays out one frame; those of calls inside are there already."""

    def __init__(self, cluster: Cluster, frames: dict[str, LaidOutFrame]) -> None:
        self.cluster = cluster
        self.frames = frames
        self.frame = LaidOutFrame(cluster)
        self.box_at: dict[int, Box] = {}
        self.gap: tuple[Gap, Box] | None = None
        self.make_layers()
        for number, layer in enumerate(self.frame.layers):
            if not isinstance(layer, LaidOutFrame):
                for box in layer:
                    box.layer = number
                _arrange(layer, {position: self.used(box, position) for box in layer for _, position in box.operands})
        self.make_lines()
        self.place()

    def used(self, box: Box, position: int) -> Box | None:
        """What an operand stands for, or the mark in its place."""
        found = self.box_at.get(position)
        if found is None and self.gap is not None and self.gap[0].first <= position <= self.gap[0].last:
            found = self.gap[1]
        return None if found is box else found

    # ------------------------------------------------------------ layers

    def make_layers(self) -> None:
        head = 1 + len(self.cluster.call.item.operands)
        band: list[Box] = []
        for box in self._boxes():
            if isinstance(box.member, Gap):
                self.close_band(band)
                self.close_band([box])
                band = []
                continue
            band.append(box)
            if isinstance(box.member, ControlFlowNode) or box.member.at == head:
                self.close_band(band)
                band = []
        self.close_band(band)

    def _boxes(self) -> Iterator[Box]:
        for member in self.cluster.members:
            if isinstance(member, Gap):
                box = Box(member, member.name, [member.text], [])
                self.gap = (member, box)
            else:
                operands = [(n, o.position) for n, o in numbered_operands(member) if isinstance(o, Ref)]
                inside = self.cluster.inside.get(member.at)
                box = Box(member, self.cluster.path(member.at), label_of(member, inside), operands)
                self.box_at[member.at] = box
            yield box

    def close_band(self, boxes: list[Box]) -> None:
        """Adds the layers of a run of a block."""
        if not boxes:
            return
        layers = self.frame.layers
        first = len(layers)
        level: dict[int, int] = {}
        barrier, terms = first, -1
        for box in boxes:
            member = box.member
            position = -1 if isinstance(member, Gap) else member.at
            at = max([barrier, *(level[p] + 1 for _, p in box.operands if p in level)])
            if isinstance(member, ItemNode) and member.function == "target" and not box.operands:
                at = max(at, terms + 1)
            inner = self.frames.get(box.name)
            if isinstance(member, ControlFlowNode) or inner is not None:
                at = len(layers)
            while at >= len(layers):
                layers.append([])
            layer = layers[at]
            assert not isinstance(layer, LaidOutFrame)
            layer.append(box)
            level[position] = at
            terms = max(terms, at if isinstance(member, TargetTerm) else 0)
            if inner is not None:
                layers.append(inner)
                barrier = len(layers)
        broken = [part for layer in layers[first:] for part in _broken(layer)]
        layers[first:] = broken
        self.frame.bands.append(Band(_band_label(boxes[0].member), first, len(layers) - 1))

    # ------------------------------------------------------------ lines

    def make_lines(self) -> None:
        """What is drawn between which boxes, and in which lane."""
        lines: dict[Box, list[Line]] = {}
        for user in self.box_at.values():
            drawn: dict[Box, Line] = {}
            for number, position in user.operands:
                used = self.used(user, position)
                if used is not None and (used not in drawn or not isinstance(used.member, Gap)):
                    drawn[used] = Line(used, user, number, 0)
                    lines.setdefault(used, []).append(drawn[used])
        self.frame.lines = [line for found in lines.values() for line in found]
        self._ports()
        spans = [
            (used.layer, max(line.user.layer for line in found), [line for line in found if not _is_near(line)])
            for used, found in lines.items()
            if any(not _is_near(line) for line in found)
        ]
        free: list[int] = []
        taken: list[tuple[int, int]] = []
        for first, last, found in sorted(spans, key=lambda span: span[0]):
            while taken and taken[0][0] <= first:
                heapq.heappush(free, heapq.heappop(taken)[1])
            lane = heapq.heappop(free) if free else len(taken)
            heapq.heappush(taken, (last, lane))
            self.frame.lanes = max(self.frame.lanes, lane + 1)
            for line in found:
                line.lane = lane

    def _ports(self) -> None:
        """Where lines end at the upper side of a box: those from lanes to the left, others by where they begin."""
        arriving: dict[Box, list[Line]] = {}
        for line in self.frame.lines:
            arriving.setdefault(line.user, []).append(line)
        for box, lines in arriving.items():
            lines.sort(key=lambda line: (line.used.middle if _is_near(line) else -1, line.number))
            for n, line in enumerate(lines, 1):
                line.port = box.width * n / (len(lines) + 1)

    # ------------------------------------------------------------ places

    def place(self) -> None:
        frame = self.frame
        pitch = LANE if frame.lanes <= 40 else 3
        frame.left = PAD + frame.lanes * pitch + (PAD if frame.lanes else 0)
        inner = frame.left + PAD + 18
        leaving, arriving = self._tracks()
        y = LABEL + PAD
        right = len(frame.cluster.call.item.name) * CHARACTER
        starts = {band.first: band for band in frame.bands}
        ends = {band.last: band for band in frame.bands}
        self.bottoms: list[float] = []
        for number, layer in enumerate(frame.layers):
            if number:
                y += CHANNEL + TRACK * (len(leaving.get(number - 1, ())) + len(arriving.get(number, ())))
            if number in starts:
                starts[number].top = y - 5
            frame.tops.append(y)
            if isinstance(layer, LaidOutFrame):
                right = max(right, layer.width)
                y += layer.height
            else:
                for box in layer:
                    box.x += inner
                    box.y = y
                    right = max(right, box.x - inner + box.width)
                y += max(box.height for box in layer)
            self.bottoms.append(y)
            if number in ends:
                ends[number].bottom = y + 5
        frame.width = inner + right + 2 * PAD
        frame.height = y + PAD + 6
        for line in frame.lines:
            self._route(line, leaving, arriving, pitch)
        self._join()

    def _tracks(self) -> tuple[dict[int, dict[Box, int]], dict[int, dict[Box, int]]]:
        """Lines between layers, by what they come from: those that leave the layer above, those that reach the next.

        Ordered so that the lines of neighbours do not cross: leaving, the left one is above; arriving, the right one.
        """
        leaving: dict[int, dict[Box, int]] = {}
        arriving: dict[int, dict[Box, int]] = {}
        far = [line for line in self.frame.lines if line.lane >= 0]
        for line in sorted(far, key=lambda line: line.used.x):
            found = leaving.setdefault(line.used.layer, {})
            found.setdefault(line.used, len(found))
        for line in sorted(far, key=lambda line: -line.user.x - line.port):
            found = arriving.setdefault(line.user.layer, {})
            found.setdefault(line.used, len(found))
        return leaving, arriving

    def _route(
        self, line: Line, leaving: dict[int, dict[Box, int]], arriving: dict[int, dict[Box, int]], pitch: float
    ) -> None:
        used, user = line.used, line.user
        begin, end = (used.middle, used.y + used.height), (user.x + line.port, user.y)
        if line.lane < 0:
            line.points = [begin, end]
            return
        lane = self.frame.left - PAD - line.lane * pitch
        down = self.bottoms[used.layer] + 9 + TRACK * leaving[used.layer][used]
        tracks = arriving[user.layer]
        up = self.frame.tops[user.layer] - 12 - TRACK * (len(tracks) - 1 - tracks[used])
        line.points = [begin, (begin[0], down), (lane, down), (lane, up), (end[0], up), end]

    def _join(self) -> None:
        """Lines of one value are one line with branches: each goes on where the one before has left the lane."""
        last: dict[Box, tuple[float, float]] = {}
        for line in sorted(self.frame.lines, key=lambda line: line.points[-1][1]):
            if line.lane >= 0:
                before = last.get(line.used)
                last[line.used] = line.points[3]
                if before is not None:
                    line.points = [before, *line.points[3:]]


def _is_near(line: Line) -> bool:
    return line.user.layer == line.used.layer + 1


def _band_label(member: Node | Gap) -> str:
    if isinstance(member, Gap) or member.at <= 1 + len(member.frame.graph.parameters):
        return ""
    return "" if member.location is None else f"§{member.location.block}"


def _broken(layer: list[Box] | LaidOutFrame) -> Iterable[list[Box] | LaidOutFrame]:
    """A layer that is too wide, as several."""
    if isinstance(layer, LaidOutFrame):
        return [layer]
    parts: list[list[Box] | LaidOutFrame] = []
    width = 0.0
    part: list[Box] = []
    for box in layer:
        if part and width + box.width > MAX_WIDTH:
            parts.append(part)
            part, width = [], 0.0
        part.append(box)
        width += box.width + GAP
    return [*parts, part]


def _arrange(layer: list[Box], used: dict[int, Box | None]) -> None:
    """Puts boxes below what they use, as far as there is room, and orders them so."""

    def wanted(box: Box) -> float | None:
        above = [found for _, p in box.operands if (found := used.get(p)) is not None]
        near = [found for found in above if found.layer == box.layer - 1]
        return None if not near else sum(found.middle for found in near) / len(near)

    wishes = {box: wanted(box) for box in layer}
    layer.sort(key=lambda box: -1.0 if (wish := wishes[box]) is None else wish)
    cursor = 0.0
    for box in layer:
        wish = wishes[box]
        box.x = cursor if wish is None else max(cursor, wish - box.width / 2)
        cursor = box.x + box.width + GAP
    limit = max(MAX_WIDTH, layer[-1].width)
    for box in reversed(layer):  # what has gone too far to the right comes back
        box.x = max(0.0, min(box.x, limit - box.width))
        limit = box.x - GAP
