"""`repeat{passes="a,b" max=4}`: runs passes one after the other until they change nothing, at most `max` times."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from ulam.passes.optimize.scopes import own_bodies
from ulam.passes.pipelines import PipelineError, parse_pipeline
from ulam.passes.walk import ops_within


@dataclass(frozen=True)
class Repeat(ModulePass):
    """The pass. `passes` is a pipeline as `stan-opt -p` takes it."""

    name = "repeat"

    passes: str
    max: int = 4

    def __post_init__(self) -> None:
        if not self.passes.strip():
            raise PipelineError("repeat: there are no passes to repeat")
        if self.max < 1:
            raise PipelineError(f"repeat: max is {self.max}, but must be at least 1")
        parse_pipeline(self.passes)  # wrong names are told before anything runs

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        before = fingerprint(op)
        for _ in range(self.max):
            for entry in parse_pipeline(self.passes):
                entry.apply(ctx, op)
            after = fingerprint(op)
            if after == before:
                break
            before = after


def fingerprint(module: ModuleOp) -> int:
    """A hash of the user's functions and the blocks: ops, their properties, and how values connect them."""
    numbers: dict[SSAValue, int] = {}
    parts: list[object] = []
    for body in own_bodies(module):
        for op in ops_within(body):
            parts.append(_signature(op, numbers))
    return hash(tuple(parts))


def _signature(op: Operation, numbers: dict[SSAValue, int]) -> object:
    for region in op.regions:
        for block in region.blocks:
            for argument in block.args:
                numbers[argument] = len(numbers)
    for result in op.results:
        numbers[result] = len(numbers)
    return (
        op.name,
        op.parent_op() is not None and len(op.regions),
        tuple(op.properties.items()),
        tuple(numbers.get(operand, -1) for operand in op.operands),
    )
