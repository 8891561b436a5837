"""Writes what each optimization level runs into `docs/optimization.md`: the passes of `passes/pipelines.py`, and those
that lower a unit, with what their modules say of themselves.

python docs/list_levels.py            # rewrites the part between the two markers
python docs/list_levels.py --check    # exit status 1 if it is not current
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from written_parts import main, with_parts

from ulam.passes.loops.if_changed import IfChanged
from ulam.passes.lowering_pipeline import lowering_pipeline
from ulam.passes.nested import NestedPass
from ulam.passes.pipelines import LEVELS, level_pipeline, parse_pipeline, pipeline_text
from ulam.passes.units import density_unit

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

DOCUMENT = Path(__file__).with_name("optimization.md")
SCRIPT = Path(__file__).name


def single_passes(pipeline: str) -> Iterator[ModulePass]:
    """The passes of a pipeline, those that `repeat` runs in place of it."""
    for entry in parse_pipeline(pipeline):
        if entry.name == "repeat":
            yield from single_passes(getattr(entry, "passes"))  # noqa: B009
        else:
            yield entry


def passes() -> set[str]:
    """Names of all passes that some level runs."""
    return {entry.name for level in LEVELS for entry in single_passes(level_pipeline(level))}


def _table() -> list[str]:
    cells: dict[str, dict[int, str]] = {}
    for level in LEVELS:
        for entry in single_passes(level_pipeline(level)):
            exact = getattr(entry, "preserve_numerics", False)
            cells.setdefault(entry.name, {})[level] = "exact" if exact else "yes"
    levels = [level for level in LEVELS if level > 0]
    lines = [f"| pass | {' | '.join(f'level {n}' for n in levels)} |", f"|---|{'---|' * len(levels)}"]
    for name, at in cells.items():
        lines.append(f"| `{name}` | {' | '.join(at.get(level, '–') for level in levels)} |")
    return lines


def _order(level: int) -> list[str]:
    if level and LEVELS[level][1:] == LEVELS[level - 1] != ():
        return [f"{level}  {LEVELS[level][0]}, then the passes of level {level - 1}"]
    text = pipeline_text(parse_pipeline(level_pipeline(level))) or "(no passes)"
    wrapped = textwrap.wrap(text.replace(",", ", "), 112, break_long_words=False, break_on_hyphens=False)
    return [f"{level}  {wrapped[0]}", *(f"   {line}" for line in wrapped[1:])]


def text() -> str:
    """What stands between the markers."""
    orders = [line for level in LEVELS for line in _order(level)]
    return "\n".join(
        [
            *_table(),
            "\nIn this order; `stan-opt -O3 --print-pipeline` prints it as `-p` takes it:\n",
            "```text",
            *orders,
            "```",
        ]
    )


def steps(pipeline: str) -> Iterator[ModulePass]:
    """The passes of a pipeline that lowers a unit; the steps of nested ones in their place."""
    for entry in parse_pipeline(pipeline):
        if isinstance(entry, IfChanged):
            yield from steps(f"{entry.passes},{entry.then}")
        elif isinstance(entry, NestedPass):
            yield from steps(entry.pipeline())
        else:
            yield entry


def loops() -> str:
    """The passes that make a gradient of a program in loops, each with what its module says first."""
    everywhere = {entry.name for entry in steps(lowering_pipeline(density_unit(1, True), 2))}
    parts: list[str] = []
    for name, entry in {entry.name: entry for entry in steps(lowering_pipeline(density_unit(1, True), 3))}.items():
        said = (sys.modules[type(entry).__module__].__doc__ or "").split("\n\n")
        examples: list[str] = []
        for paragraph in said[1:]:
            if not paragraph.startswith("    "):
                break
            examples.append(textwrap.dedent(paragraph))
        levels = "" if name in everywhere else " (levels 3 and 4)"
        parts.append("\n".join(textwrap.wrap(f"**`{name}`**{levels}: {' '.join(said[0].split())}", 120)))
        if examples:
            parts.append("```text\n" + "\n\n".join(examples) + "\n```")
    return "\n\n".join(parts)


def updated(document: str) -> str:
    """The document with the part between the markers written anew."""
    return with_parts(document, SCRIPT, {"levels": text, "loops": loops})


if __name__ == "__main__":
    sys.exit(main(DOCUMENT, SCRIPT, updated))
