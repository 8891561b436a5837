"""Passes that are pipelines of others. Observers see each step (`running`): `--print-ir-after-all` prints after it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.passes.idle_passes import UnitNames
from ulam.passes.pipelines import OWN_PASSES, pipeline_parts, read_passes
from ulam.passes.running import TellingPass, run_passes
from ulam.passes.settled import BY_STEPS


class NestedPass(ModulePass):
    """A pass that is a pipeline of others."""

    changes_only: ClassVar[frozenset[str]] = BY_STEPS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_nested(ctx, op, self.pipeline())

    @abstractmethod
    def pipeline(self) -> str:
        """Its steps, as `stan-opt -p` takes them."""


def run_nested(context: Context, module: ModuleOp, pipeline: str, between: Callable[[], None] | None = None) -> bool:
    """Runs a pipeline on a unit, but for idle passes (`idle_passes`), which are not even imported.

    `between` is called before each, and may end this by an exception. Returns whether one told that it changed it.
    """
    changed = False
    names = UnitNames(module)
    for name, text in pipeline_parts(pipeline):
        if not names.have_work_for(name, text):
            continue
        entries = nested_passes(text)
        has_told = run_passes(context, module, entries, between)
        if has_told or not all(isinstance(entry, TellingPass) for entry in entries):
            names.forget()
        changed = changed or has_told
    return changed


def nested_passes(pipeline: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline, read once. Raises PipelineError."""
    return _passes(pipeline, OWN_PASSES.revision)


@cache
def _passes(pipeline: str, revision: int) -> tuple[ModulePass, ...]:
    return tuple(read_passes(pipeline))
