"""Passes that are pipelines of others. Observers see each step (`running`): `--print-ir-after-all` prints after it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from functools import cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.passes.idle_passes import busy_parts
from ulam.passes.pipelines import OWN_PASSES, parse_pipeline
from ulam.passes.running import run_passes


class NestedPass(ModulePass):
    """A pass that is a pipeline of others."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_nested(ctx, op, self.pipeline())

    @abstractmethod
    def pipeline(self) -> str:
        """Its steps, as `stan-opt -p` takes them."""


def run_nested(context: Context, module: ModuleOp, pipeline: str) -> bool:
    """Runs a pipeline within a pass; whether one of its passes told that it changed something."""
    return run_passes(context, module, busy_passes(pipeline, module))


def busy_passes(pipeline: str, module: ModuleOp) -> Iterator[ModulePass]:
    """The passes of a pipeline of a unit but for idle ones (`idle_passes`), which are not even imported."""
    for part in busy_parts(pipeline, module):
        yield from nested_passes(part)


def nested_passes(pipeline: str) -> tuple[ModulePass, ...]:
    """The passes of a pipeline, read once. Raises PipelineError."""
    return _passes(pipeline, OWN_PASSES.revision)


@cache
def _passes(pipeline: str, revision: int) -> tuple[ModulePass, ...]:
    return tuple(parse_pipeline(pipeline))
