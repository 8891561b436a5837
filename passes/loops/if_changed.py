"""`if-changed{passes="a,b" then="c,d"}`: runs passes, and others if one of them changed something.

What cleans up behind a pass seldom has anything to do where that found nothing, and would still take time. The first
passes are such that tell whether they changed something; the others may be any.
"""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ulam.library.records import record
from ulam.passes.nested import run_nested
from ulam.passes.pipelines import PipelineError, parse_pipeline
from ulam.passes.running import TellingPass
from ulam.passes.settled import BY_STEPS


@record(frozen=True)
class IfChanged(TellingPass):
    """Runs the pipeline `passes`; then the pipeline `then`, if one of them changed something."""

    name = "if-changed"
    changes_only = BY_STEPS

    passes: str
    then: str

    def check_steps(self) -> None:
        """Raises PipelineError if a pass does not exist, or does not tell what it has to."""
        parse_pipeline(self.then)
        for entry in parse_pipeline(self.passes):
            if not isinstance(entry, TellingPass):
                raise PipelineError(f"if-changed: {entry.name} does not tell whether it changes something")

    def changes(self, module: ModuleOp) -> bool:
        context = Context()
        changed = run_nested(context, module, self.passes)
        if changed:
            run_nested(context, module, self.then)
        return changed
