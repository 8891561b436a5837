"""Flow graphs while they are made: which variables differ where paths meet (SSA construction).

Dominators after Cooper, Harvey and Kennedy, "A simple, fast dominance algorithm"; arguments of blocks at the iterated
dominance frontier of the assignments, where the variable is read afterwards (pruned SSA).

`TracedFunction` is what is known of a function once its table has been made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.ir import Operation, SSAValue

from ulam.dialects import stan
from ulam.tracing.instrument.choices import Form
from ulam.tracing.instrument.graph import ADDING, ROOT, Argument, Block, Edge, Graph, Item, Operand, Place, ValueType

Definition = Argument | Item | Operand
"""What a value of the function is in its table."""


@dataclass
class FlowEdge:
    """A jump to `target`; without one, a return of `value`. `explicit`: arguments for `target.explicit`."""

    target: FlowBlock | None
    explicit: list[SSAValue | Definition] = field(default_factory=list["SSAValue | Definition"])
    condition: SSAValue | Item | None = None
    holds: bool = False
    value: SSAValue | None = None
    place: Place | None = None
    made: Edge | None = None


@dataclass
class Event:
    """What a block does to a variable, or with one: `read` (the op's result), `assign`, `declare`, or an `item`."""

    kind: str
    op: Operation | None = None
    variable: SSAValue | None = None
    value: SSAValue | None = None
    item: Item | None = None


@dataclass(eq=False)
class FlowBlock:
    """A basic block under construction; `made` is what it becomes.

    `anchor`: where it begins in the function: at the start of a block, or after an op. `silent`: it writes no record.
    """

    made: Block
    anchor: tuple[str, object]
    silent: bool = False
    counter: SSAValue | None = None
    events: list[Event] = field(default_factory=list[Event])
    edges: list[FlowEdge] = field(default_factory=list[FlowEdge])
    explicit: list[Argument] = field(default_factory=list[Argument])
    phis: list[tuple[SSAValue, Argument]] = field(default_factory=list[tuple[SSAValue, Argument]])
    before: list[FlowBlock] = field(default_factory=list["FlowBlock"])

    @property
    def successors(self) -> list[FlowBlock]:
        return [edge.target for edge in self.edges if edge.target is not None]

    def jump(self, target: FlowBlock, *explicit: SSAValue | Definition) -> FlowEdge:
        edge = FlowEdge(target, list(explicit))
        self.edges.append(edge)
        return edge


def live_variables(blocks: list[FlowBlock]) -> dict[FlowBlock, set[SSAValue]]:
    """The variables that are read after the start of each block, before they are set anew."""
    live: dict[FlowBlock, set[SSAValue]] = {block: set() for block in blocks}
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            now = live_before(block, set().union(*(live[s] for s in block.successors)))
            if now != live[block]:
                live[block] = now
                changed = True
    return live


def live_before(block: FlowBlock, after: set[SSAValue], begin: int = 0) -> set[SSAValue]:
    """The variables that are read after event number `begin` of a block, of which `after` are live at its end."""
    live = set(after)
    for event in reversed(block.events[begin:]):
        if event.variable is None:
            continue
        if event.kind == "read" or event.kind == "update":
            live.add(event.variable)
        else:
            live.discard(event.variable)
    return live


def immediate_dominators(blocks: list[FlowBlock]) -> dict[FlowBlock, FlowBlock]:
    """Block → its immediate dominator; the entry's is itself. All blocks are reachable."""
    order: list[FlowBlock] = []
    seen: set[FlowBlock] = set()
    stack: list[tuple[FlowBlock, int]] = [(blocks[0], 0)]
    seen.add(blocks[0])
    while stack:
        block, position = stack.pop()
        following = block.successors
        if position < len(following):
            stack.append((block, position + 1))
            if following[position] not in seen:
                seen.add(following[position])
                stack.append((following[position], 0))
        else:
            order.append(block)
    number = {block: n for n, block in enumerate(order)}
    found = {blocks[0]: blocks[0]}
    changed = True
    while changed:
        changed = False
        for block in reversed(order[:-1]):
            known = [b for b in block.before if b in found]
            best = known[0]
            for other in known[1:]:
                best = _intersect(found, number, best, other)
            if found.get(block) is not best:
                found[block] = best
                changed = True
    return found


def _intersect(
    found: dict[FlowBlock, FlowBlock], number: dict[FlowBlock, int], a: FlowBlock, b: FlowBlock
) -> FlowBlock:
    while a is not b:
        while number[a] < number[b]:
            a = found[a]
        while number[b] < number[a]:
            b = found[b]
    return a


def place_arguments(blocks: list[FlowBlock], variables: dict[SSAValue, tuple[str, ValueType]]) -> None:
    """Gives blocks an argument for each variable that depends on where they were entered from and is live there."""
    live = live_variables(blocks)
    dominators = immediate_dominators(blocks)
    frontier: dict[FlowBlock, list[FlowBlock]] = {block: [] for block in blocks}
    for block in blocks:
        if len(block.before) < 2:
            continue
        for other in block.before:
            while other is not dominators[block]:
                if block not in frontier[other]:
                    frontier[other].append(block)
                other = dominators[other]
    setting: dict[SSAValue, list[FlowBlock]] = {variable: [] for variable in variables}
    for block in blocks:
        for event in block.events:
            if event.variable is not None and event.kind != "read" and block not in setting[event.variable]:
                setting[event.variable].append(block)
    for variable, (name, type_) in variables.items():  # in the order of their declarations
        work, placed = list(setting[variable]), set[FlowBlock]()
        while work:
            for block in frontier[work.pop()]:
                if block in placed or variable not in live[block]:
                    continue
                placed.add(block)
                block.phis.append((variable, Argument(0, type_, name)))
                work.append(block)


# ---------------------------------------------------------------- slots of records


def _is_kept(item: Item, form: Form) -> bool:
    """Whether the value of a node is to be recorded, or to be found from what is."""
    if item.derived == "assign":
        return "elements" in form.recorded
    kind = "draws" if item.draws else "values"
    return bool(item.derived) or item.kind in ADDING or kind in form.recorded


def assign_slots(symbol: str, blocks: Sequence[FlowBlock], returns: Sequence[FlowBlock], form: Form) -> None:
    """Gives slots to the ops of a function, to the variables of its counted loops, and to the clock."""
    for block in blocks:
        made = block.made
        for item in made.items:
            if symbol != ROOT and not _is_kept(item, form):  # the result of the whole is always there
                item.derived = "lost"
            if not item.derived and item.type.slots:
                item.slot = made.slots
                made.slots += item.type.slots
            if item.stream is not None:
                item.stream = made.slots
                made.slots += 2
            if item.kind in ADDING:
                item.target_slot = made.slots
                made.slots += 1
        if block.counter is not None:
            made.counter = made.slots
            made.slots += 1
    if not form.timing or symbol == ROOT:
        return
    blocks[0].made.started = blocks[0].made.slots
    blocks[0].made.slots += 1
    for block in returns:
        block.made.ended = block.made.slots
        block.made.slots += 1


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
