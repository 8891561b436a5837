"""What the passes of the levels work on: the blocks of each program, and the user's functions; not the library's."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.passes.analysis.bodies import Body, bodies
from ulam.passes.analysis.flow_graph import FlowGraph


def own_bodies(module: Operation) -> Iterator[Body]:
    """The user's functions, but for those whose calls have all been inlined, and the program's blocks, in order."""
    for body in bodies(module):
        if "library" not in body.properties and "inlined" not in body.properties:
            yield body


def graphs(module: Operation) -> Iterator[FlowGraph]:
    """The flow graph of each of the user's functions, and one of all blocks of a program."""
    for body in own_bodies(module):
        if isinstance(body, stan.FuncOp):
            yield FlowGraph(body)
    for op in module.regions[0].block.ops:
        if isinstance(op, stan.ProgramOp):
            yield FlowGraph(op)


def call_effects(module: Operation) -> stan.CallEffects:
    """The effects of all functions of a module, those of the library included."""
    return stan.CallEffects(functions(module))


def functions(op: Operation) -> Iterator[stan.FuncOp]:
    """All functions at or below `op`: they stand in programs, or alone in a module (tests)."""
    if isinstance(op, stan.FuncOp):
        yield op
    elif not isinstance(op, stan.BlockOp):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    yield from functions(inner)
