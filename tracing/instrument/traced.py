"""What is known of a function whose table has been made: which of its ops each part of the table is."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.tracing.instrument.flow import FlowBlock
from ulam.tracing.instrument.graph import Graph, Item

Hooked = tuple[FlowBlock, Operation, SSAValue | None, int]
"""An op, its value if it has one, and the number of the hook."""


@dataclass
class TracedFunction:
    """A table, and what of the function it was made of belongs to which part."""

    function: stan.FuncOp
    graph: Graph
    blocks: list[FlowBlock]
    ops: dict[int, Operation]
    """Number of a value → op."""
    item_ops: list[tuple[FlowBlock, int, Item, Operation | None, SSAValue | None]]
    """Items that are recorded: their block, place in it, the op, and its value if it is to be kept. Without an op, the
    value is there when the block begins."""
    guards: list[tuple[FlowBlock, int, Operation]] = field(default_factory=list[tuple[FlowBlock, int, Operation]])
    """Ops that are no items but may throw, with the number of items before them."""
    additions: list[tuple[FlowBlock, Item, Operation]] = field(default_factory=list[tuple[FlowBlock, Item, Operation]])
    """Items that add to the target, with the op that does."""
    hooks: list[Hooked] = field(default_factory=list["Hooked"])
    """Ops after which a hook is called."""
    returns: list[tuple[FlowBlock, Operation]] = field(default_factory=list[tuple[FlowBlock, Operation]])
    """Where a call ends, if the time is to be kept."""
    called: stan.FuncOp | None = None
    """Of a higher-order function: what it calls; some of the blocks are in it."""
