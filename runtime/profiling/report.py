"""What a profiler recorded, for people: the table of names, the tree of regions; and the same as a record.

Times are shown with three digits and a unit. On a terminal tables are drawn by rich, elsewhere they are plain columns.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO

from ulam.runtime.profiling.records import PHASES, Overhead, ProfileNode, ProfileRow
from ulam.runtime.results import SCHEMA_VERSION, Row, print_table
from ulam.runtime.terminal import is_decorated

if TYPE_CHECKING:
    from ulam.runtime.profiling.profiler import Profiler

LONGEST_LINE, SHORTEST_LINE = 48, 16
"""Most characters that are shown of a line of the program, and how many are wanted at least."""

DISPENSABLE = ("kept", "others", "place", "raw", "wall", "forward", "reverse", "program")
"""Columns that a narrow terminal does without, in this order."""

_UNITS = ((1e-6, 1e9, "ns"), (1e-3, 1e6, "µs"), (1.0, 1e3, "ms"), (float("inf"), 1.0, "s"))


def time_text(seconds: float) -> str:
    """A time with three digits and a unit, from nanoseconds to seconds."""
    if seconds == 0:
        return "0"
    for limit, factor, unit in _UNITS:
        if seconds * (1 + 5e-4) < limit:
            scaled = seconds * factor
            return f"{scaled:.{0 if scaled >= 99.95 else 1 if scaled >= 9.995 else 2}f} {unit}"
    raise AssertionError("unreachable: the last unit has no limit")


def merged(roots: Sequence[ProfileNode]) -> list[ProfileNode]:
    """Trees added up over threads: one for each phase, in the order of `PHASES`."""
    added = _merged_siblings(roots)
    return sorted(added, key=lambda root: PHASES.index(root.phase))


def _merged_siblings(nodes: Sequence[ProfileNode]) -> list[ProfileNode]:
    groups: dict[tuple[str, Any], list[ProfileNode]] = {}
    for node in nodes:
        groups.setdefault((node.phase, node.region), []).append(node)
    result: list[ProfileNode] = []
    for same in groups.values():
        node = replace(same[0], thread_id=same[0].thread_id if len(same) == 1 else 0)
        for other in same[1:]:
            node.add(other)
        node.children = _merged_siblings([child for other in same for child in other.children])
        result.append(node)
    return result


def places(profiler: Profiler, name: str) -> str:
    """Where the statements of a name are: line and column of the first, and how many more there are.

    With the file's name, if there are several.
    """
    found = [region for region in profiler.regions if region.name == name and region.line]
    if not found:
        return ""
    first = found[0]
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    file = f"{Path(first.file).name}:" if len({region.file for region in profiler.regions if region.line}) > 1 else ""
    return f"{file}{first.line}:{first.column}{more}"


def _line_of(profiler: Profiler, name: str) -> str:
    """The text of the line that an automatic region is named after; empty for others."""
    for region in profiler.regions:
        if region.name == name and name.endswith(f", line {region.line}"):
            return _cut(profiler.line_text(region), LONGEST_LINE)
    return ""


# ---------------------------------------------------------------- tables


def region_table(
    profiler: Profiler, *, by_phase: bool = False, overhead: Overhead | None = None
) -> tuple[Row, list[Row], list[int]]:
    """Header, rows and the columns on the left: one row for each name and thread, and with `by_phase` each phase.

    `%` is of all evaluations of the thread (and phase). A pass is one way through the region; its time is the mean.
    `kept` is the number of values that a pass with a gradient keeps; `steps` those of solvers in a pass, `failed` those
    that were taken back.
    """
    rows = profiler.rows(by_phase=by_phase, overhead=overhead)
    raw = profiler.rows(by_phase=by_phase)
    whole: dict[tuple[int, str], float] = {}
    for root in profiler.evaluations(overhead=overhead):
        key = root.thread_id, root.phase if by_phase else ""
        whole[key] = whole.get(key, 0.0) + root.total_time
    table: list[dict[str, str]] = []
    for row, before in zip(rows, raw, strict=True):
        passes = row.passes + row.gradient_passes
        time = whole.get((row.thread_id, row.phase), 0.0)
        table.append(
            {
                "name": row.name,
                "place": places(profiler, row.name),
                "thread": str(row.thread_id),
                "phase": row.phase,
                "total": time_text(row.total_time),
                "wall": time_text(row.wall_time),
                "raw": time_text(before.total_time),
                "forward": time_text(row.forward_time),
                "reverse": time_text(row.reverse_time),
                "%": f"{100 * row.total_time / time:.1f}" if time else "",
                "gradients": str(row.gradient_passes),
                "others": str(row.passes),
                "per pass": time_text(row.total_time / passes) if passes else "",
                "kept": f"{row.kept_values / row.gradient_passes:.6g}" if row.gradient_passes else "",
                "steps": _per_pass(row.solver_steps, passes),
                "failed": _per_pass(row.failed_steps, passes),
                "program": _line_of(profiler, row.name),
            }
        )
    has_steps = any(row.solver_steps or row.failed_steps for row in rows)
    has_lines = any(line["program"] for line in table)
    unneeded = {
        "place": has_lines,
        "thread": len({row.thread_id for row in rows}) < 2,
        "phase": not by_phase,
        "raw": overhead is None,
        "others": not any(row.passes for row in rows),
        "steps": not has_steps,
        "failed": not has_steps,
        "program": not has_lines,
    }
    return _columns(table, [name for name, unused in unneeded.items() if unused])


def _per_pass(count: int, passes: int) -> str:
    return f"{count / passes:.6g}" if passes else ""


def _columns(table: Sequence[dict[str, str]], without: Sequence[str]) -> tuple[Row, list[Row], list[int]]:
    shown = [name for name in (table[0] if table else {"name": ""}) if name not in without]
    left = [n for n, name in enumerate(shown) if name in ("name", "place", "phase", "program")]
    return shown, [[line[name] for name in shown] for line in table], left


def fitted(header: Row, rows: Sequence[Row], left: Sequence[int], width: int) -> tuple[Row, list[Row], list[int]]:
    """The table without as many of the columns of `DISPENSABLE` as need be for `width` characters, drawn by rich.

    Lines of the program are cut to what is left.
    """
    columns = {name: [row[n] for row in rows] for n, name in enumerate(header)}
    sides = {header[n] for n in left}
    widths = {name: max(len(name), *map(len, cells)) for name, cells in columns.items()}
    if "program" in widths:
        widths["program"] = min(widths["program"], SHORTEST_LINE)
    for name in DISPENSABLE:
        if _drawn_width(widths) > width:
            columns.pop(name, None)
            widths.pop(name, None)
    if "program" in columns:
        room = widths["program"] + max(0, width - _drawn_width(widths))
        columns["program"] = [_cut(text, room) for text in columns["program"]]
    shown = list(columns)
    return shown, list(map(list, zip(*columns.values(), strict=True))), [n for n, c in enumerate(shown) if c in sides]


def _drawn_width(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + 3 * len(widths) + 1


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def tree_table(profiler: Profiler, *, overhead: Overhead | None = None) -> tuple[Row, list[Row], list[int]]:
    """Header, rows and the columns on the left: phases, below them their regions by nesting; threads are added up.

    `self` is what no region below took: of a phase, what is outside of all regions. `%` is of all evaluations.
    """
    roots = [root for root in merged(profiler.evaluations(overhead=overhead)) if root.children]
    whole = sum(root.total_time for root in roots)
    rows: list[Row] = []

    def add(node: ProfileNode, depth: int) -> None:
        passes = node.passes + node.gradient_passes
        rows.append(
            (
                "  " * depth + node.name,
                time_text(node.total_time),
                time_text(max(0.0, node.self_time)),
                f"{100 * node.total_time / whole:.1f}" if whole else "",
                "" if node.phase == "data" and depth == 0 else str(passes),
            )
        )
        for child in node.children:
            add(child, depth + 1)

    for root in roots:
        add(root, 0)
    return ("phase and region", "total", "self", "%", "passes"), rows, [0]


def print_profile(
    profiler: Profiler, file: TextIO | None = None, *, by_phase: bool = False, overhead: Overhead | None = None
) -> None:
    """Both tables."""
    stream = file or sys.stdout
    header, rows, left = region_table(profiler, by_phase=by_phase, overhead=overhead)
    if not rows:
        print("no region was entered", file=stream)
        return
    if is_decorated(stream):
        header, rows, left = fitted(header, rows, left, get_terminal_size().columns)
    print_table(header, rows, stream, left)
    print(file=stream)
    print_table(*tree_table(profiler, overhead=overhead)[:2], stream)
    entered = {row.name for row in profiler.rows()}
    never = [region.name for region in profiler.regions if region.name not in entered]
    if never:
        print(f"\nnever entered: {', '.join(dict.fromkeys(never))}", file=stream)


# ---------------------------------------------------------------- records


def profile_record(profiler: Profiler, overhead: Overhead | None = None) -> dict[str, Any]:
    """Rows by phase and trees, as values that JSON has; times in seconds, passes and values as counts.

    With an `overhead`, there is for each time one less what the timers took.
    """
    corrected = None if overhead is None else profiler.rows(by_phase=True, overhead=overhead)
    rows = [_row_record(row) for row in profiler.rows(by_phase=True)]
    for record, row in zip(rows, corrected or (), strict=False):
        record["corrected_forward_time"] = row.forward_time
        record["corrected_reverse_time"] = row.reverse_time
        record["corrected_total_time"] = row.total_time
    return {
        "schema_version": SCHEMA_VERSION,
        "method": "profile",
        "timer_seconds": None if overhead is None else asdict(overhead),
        "rows": rows,
        "trees": [_node_record(profiler, root) for root in profiler.evaluations()],
    }


def _row_record(row: ProfileRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "thread_id": row.thread_id,
        "phase": row.phase,
        "total_time": row.total_time,
        "forward_time": row.forward_time,
        "reverse_time": row.reverse_time,
        "wall_time": row.wall_time,
        "outlier_passes": row.outlier_passes,
        "outlier_time": row.outlier_time,
        "kept_values": row.kept_values,
        "other_values": row.other_values,
        "solver_steps": row.solver_steps,
        "failed_steps": row.failed_steps,
        "passes": row.passes,
        "gradient_passes": row.gradient_passes,
    }


def _node_record(profiler: Profiler, node: ProfileNode) -> dict[str, Any]:
    region = node.region
    place = {} if region is None else {"file": region.file, "line": region.line, "column": region.column}
    text = {} if region is None else {"program": profiler.line_text(region)}
    return {
        **_row_record(node),
        **place,
        **text,
        "self_time": node.self_time,
        "children": [_node_record(profiler, child) for child in node.children],
    }
