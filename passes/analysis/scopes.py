"""What the passes of the levels work on: the blocks of each program, and the user's functions; not the library's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.ir import Operation

from ulam.dialects import stan
from ulam.passes.analysis.bodies import Body, bodies
from ulam.passes.analysis.flow_graph import FlowGraph
from ulam.passes.running import remembered


def own_bodies(module: Operation) -> Iterator[Body]:
    """The user's functions, but for those whose calls have all been inlined, and the program's blocks, in order."""
    for body in bodies(module):
        if "library" not in body.properties and "inlined" not in body.properties:
            yield body


Scope = stan.FuncOp | stan.ProgramOp | stan.BlockOp
"""What can be worked on by itself: a function; all blocks of a program together; a block that stands alone."""


def own_scopes(module: Operation) -> list[Scope]:
    """The scopes that `own_bodies` are parts of, each once, in order."""
    return list(dict.fromkeys(scope_of(body) for body in own_bodies(module)))


def scope_of(body: Body) -> Scope:
    """The scope that a body is part of."""
    if isinstance(body, stan.BlockOp) and isinstance(program := body.parent_op(), stan.ProgramOp):
        return program
    return body


def bodies_of(scopes: Iterable[Scope]) -> Iterator[Body]:
    """The bodies that scopes consist of."""
    for scope in scopes:
        if isinstance(scope, stan.ProgramOp):
            yield from (op for op in scope.body.block.ops if isinstance(op, stan.BlockOp) and op.body.blocks)
        else:
            yield scope


def graphs(module: Operation) -> Iterator[FlowGraph]:
    """The flow graph of each of the user's functions, and one of all blocks of a program."""
    yield from graphs_of(own_scopes(module))


def graphs_of(scopes: Iterable[Scope]) -> Iterator[FlowGraph]:
    """The flow graphs of functions, then of programs."""
    programs: list[stan.ProgramOp] = []
    for scope in scopes:
        if isinstance(scope, stan.FuncOp):
            yield FlowGraph(scope)
        elif isinstance(scope, stan.ProgramOp):
            programs.append(scope)
    yield from map(FlowGraph, programs)


def call_effects(module: Operation) -> stan.CallEffects:
    """The effects of all functions of a module, those of the library included."""
    return stan.CallEffects(functions(module), remembered(_LibraryEffects))


class _LibraryEffects(dict[Operation, stan.Effect]):
    """What passes have found of functions of the library."""


def functions(op: Operation) -> Iterator[stan.FuncOp]:
    """All functions at or below `op`: they stand in programs, or alone in a module (tests)."""
    if isinstance(op, stan.FuncOp):
        yield op
    elif not isinstance(op, stan.BlockOp):
        for region in op.regions:
            for block in region.blocks:
                for inner in block.ops:
                    yield from functions(inner)
