"""`repeat{passes="a,b" max=4}`: runs passes one after the other until they change nothing, at most `max` times."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from ulam.library.records import record
from ulam.passes.analysis.scopes import own_bodies
from ulam.passes.nested import nested_passes
from ulam.passes.pipelines import PipelineError
from ulam.passes.running import run_passes


@record(frozen=True)
class Repeat(ModulePass):
    """Runs the pipeline `passes` until it changes nothing, at most `max` times."""

    name = "repeat"

    passes: str
    max: int = 4

    def __post_init__(self) -> None:
        if not self.passes.strip():
            raise PipelineError("repeat: there are no passes to repeat")
        if self.max < 1:
            raise PipelineError(f"repeat: max is {self.max}, but must be at least 1")
        nested_passes(self.passes)  # wrong names are told before anything runs

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        entries = nested_passes(self.passes)
        now = _state(op)
        done: dict[int, State] = {}  # what each pass has left behind, if it does nothing more to it
        for _ in range(self.max):
            before = now
            for number, entry in enumerate(entries):
                if done.get(number) == now and len(entries) > 1:
                    continue
                run_passes(ctx, op, (entry,))
                now = done[number] = _state(op)
            if now == before:
                break


State = list[object]
"""The ops of the user's functions and of the blocks in order, with what may change about them."""


def _state(module: ModuleOp) -> State:
    state: State = []
    for body in own_bodies(module):
        _add_state(body.regions[0].block, state)
    return state


def _add_state(block: Block, state: State) -> None:
    op = block.first_op
    while op is not None:
        state += (op, *op.operands, *op.properties.values())
        for region in op.regions:
            for inner in region.blocks:
                _add_state(inner, state)
        op = op.next_op
