"""The pipeline of a model that somebody wrote: which part is for the program, which for its units, and in which order.

    function-inlining,loop-vectorization,convert-stan-to-loops,simplify,hoist-data,fuse-loops,reverse-mode
    └──── passes of the program ───────┘                       └──── passes of density units ────────────┘

Without `convert-stan-to-loops` the passes of units are those of the level. What no program can do without is not left
out by a pipeline that does not name it: the compiler runs it where it belongs (`VALUE_FORM`, `NEEDED`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ulam.passes.pipelines import PASSES, PipelineError, pass_class, pipeline_parts, without_anchor

if TYPE_CHECKING:
    from ulam.passes.units import UnitKind

TO_LOOPS = "convert-stan-to-loops"
VALUE_FORM = "structure-exits,split-branch-chains,promote-variables"
"""From the variable form to the value form of a program."""
NEEDED = ("hoist-data", "reverse-mode", "thread-target", "forward-mode")
"""Passes without which a density unit is no code, in their order; `forward-mode` is of Hessians only."""

_OF_GRADIENTS = ("reverse-mode",)
_OF_FINISHED_CODE = ("reverse-mode", "thread-target", "forward-mode")
"""What releases memory, or splits code, would do so before derivatives ask for it."""
_REQUIRES: dict[str, tuple[str, ...]] = {
    "promote-variables": ("structure-exits",),
    "forward-mode": ("reverse-mode", "thread-target"),
    "thread-target": _OF_GRADIENTS,
    "reverse-mode": ("hoist-data",),
    "count-profile-entries": _OF_GRADIENTS,
    "sort-rows": _OF_GRADIENTS,
    "unique-rows": _OF_GRADIENTS,
    "sink-bound": _OF_GRADIENTS,
    "sum-arms": _OF_GRADIENTS,
    "unswitch-loops": _OF_GRADIENTS,
    "strip-mine": _OF_GRADIENTS,
    "logs-to-products": _OF_GRADIENTS,
    "share-exponentials": _OF_GRADIENTS,
    "split-scatters": _OF_FINISHED_CODE,
    "release-arena": _OF_FINISHED_CODE,
    "stack-buffers": (*_OF_FINISHED_CODE, "release-arena"),
    "loop-hints": _OF_FINISHED_CODE,
    "share-parts": _OF_FINISHED_CODE,
    "split-functions": _OF_FINISHED_CODE,
}
"""Which passes must come before a pass of ours; see `requires` for what holds of all in a folder."""
_OF_UNITS = ("ulam.passes.loops.", "ulam.passes.autodiff.")
_OF_VARIABLES = "ulam.passes.optimize."
_ANYWHERE = frozenset(("repeat", "if-changed", "print-analysis", "verify-dominance"))
_NESTED = r'\b(?:passes|then)="((?:[^"\\]|\\.)*)"'


def split(pipeline: str) -> tuple[str, str | None]:
    """The passes of the program, and those of units if the pipeline has some."""
    parts = pipeline_parts(without_anchor(pipeline))
    for position, (name, text) in enumerate(parts):
        if name == TO_LOOPS:
            if text != name:
                raise PipelineError(f"the pipeline of a model is for all its units: write {TO_LOOPS} without options")
            before, behind = parts[:position], parts[position + 1 :]
            return ",".join(text for _, text in before), ",".join(text for _, text in behind)
    return pipeline, None


def unit_pipeline(given: str, unit: UnitKind) -> str:
    """The passes of a unit: those given, and, where they are not among them, those that no unit can do without."""
    given_parts = [text for name, text in pipeline_parts(given) if text and (name != "forward-mode" or unit.hessian)]
    parts = [(frozenset(pass_names(text)), text) for text in given_parts]
    behind = 1 if given_parts and given_parts[0].startswith("simplify") else 0  # where what comes next may stand first
    needed = NEEDED if unit.hessian else NEEDED[:-1]
    for which, name in enumerate(needed):
        if any(name in names for names, _ in parts):
            continue
        users = (k for k, (names, _) in enumerate(parts) if any(name in requires(each) for each in names))
        parts.insert(behind if which == 0 else min(users, default=len(parts)), (frozenset((name,)), name))
    return ",".join(text for _, text in parts)


def pass_names(pipeline: str) -> Iterator[str]:
    """The names of all passes in a pipeline, in their order, those in options of others, as of `repeat`, included."""
    for name, text in pipeline_parts(without_anchor(pipeline)):
        if name:
            yield name
            for nested in re.finditer(_NESTED, text):
                yield from pass_names(nested[1])


def requires(name: str) -> tuple[str, ...]:
    """The passes that must come before a pass: of another's, those that its `REQUIRES` names."""
    if (home := PASSES.get(name)) is None:
        return tuple(getattr(pass_class(name), "REQUIRES", ()))
    of_units = (TO_LOOPS,) if home.startswith(_OF_UNITS) and name not in _ANYWHERE else ()
    return (*of_units, *_REQUIRES.get(name, ()))


def check_order(pipeline: str, *, ours: bool = True) -> None:
    """Raises PipelineError for a pass that comes before one that it requires, or behind one that ends its work.

    Without `ours` only passes of others are asked: in `stan-opt` ours may be tried alone.
    """
    before: set[str] = set()
    names = list(pass_names(pipeline))
    for name in names:
        for needed in requires(name) if ours or name not in PASSES else ():
            if needed in before or (needed in NEEDED and needed not in names):
                continue  # the compiler puts what is needed, and not named, before it
            raise PipelineError(f"pass '{name}' needs '{needed}' before it: put {needed} in front of {name}")
        if not ours:
            before.add(name)
            continue
        if name in PASSES and PASSES[name].startswith(_OF_VARIABLES) and name not in _ANYWHERE:
            if (end := next((end for end in ("promote-variables", TO_LOOPS) if end in before), None)) is not None:
                reason = f"works on variables, of which {end} makes values"
                raise PipelineError(f"pass '{name}' {reason}: put it before {end}")
        if name == "trace-instrument":
            raise PipelineError(f"pass '{name}' is for traces, not for pipelines of models: see `ulam trace`")
        if name == TO_LOOPS and name in before:
            raise PipelineError(f"pass '{name}' is there twice")
        before.add(name)
