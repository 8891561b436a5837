"""Loops that wait for what the iteration before computed give what does not wait to a loop of its own.

    for t, v = v0:                                       for t, v = v0: w = a + b * v; table[t] = w; yield w
      w = a + b * v; target += f(w); yield w      →      for t: target += f(table[t])

The first loop is as long as the chain of its iterations; the second can be widened, and gets its derivatives into its
body. Where functions that cost much leave the chain, and the loop stands in no other: rows of a nest run side by side
(`strip-mine`). What the chain only prepares, loads of data and the like, both loops do. Nothing moves that writes
memory or that may leave the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import ad, rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.nesting import block_of, terminator
from ulam.passes.loops.effects import Effect, Root, effect, functions, may_overlap, root, written_roots_within
from ulam.passes.loops.loop_fusion import is_serial, is_sum
from ulam.passes.loops.tables import IterationTable, is_costly_function
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import copies, discard, replace_uses
from ulam.passes.running import TellingPass

_MOST = 4
"""Values of an iteration that go through memory."""
_FIXED = Effect.LEAVE | Effect.ORDERED | Effect.ALLOCATE


@record(frozen=True)
class DistributeLoops(TellingPass):
    """Divides loops whose iterations wait for each other, of all functions or of the one that is named."""

    name = "distribute-loops"

    function: str = ""

    def changes(self, module: ModuleOp) -> bool:
        changed = False
        for function in functions(named_function(module, self.function, self.name)):
            for loop in list(_outermost(function)):
                changed = _divide(loop) or changed
        return changed


def _outermost(function: func.FuncOp) -> Iterator[scf.ForOp]:
    """The loops that stand in no other."""
    pending: list[Block] = list(function.body.blocks)
    while pending:
        for op in pending.pop().ops:
            if isinstance(op, scf.ForOp):
                yield op
            elif isinstance(op, scf.IfOp):
                pending += [region.block for region in op.regions if region.blocks]


def _divide(loop: scf.ForOp) -> bool:
    body = loop.body.block
    waiting = [k for k in range(len(loop.results)) if not _is_free(body, k)]
    if not any(is_serial(body, k) for k in waiting) or not any(
        isinstance(op, ad.TargetAddOp) for op in ops_within(loop)
    ):
        return False
    division = _Division(loop, waiting)
    if not division.find():
        return False
    division.write()
    remark_on(DistributeLoops.name, loop, "what does not wait for iterations before has a loop of its own", done=True)
    return True


def _is_free(body: Block, position: int) -> bool:
    """Whether what a loop carries lets iterations run in any order: a sum, or a flag that is set."""
    argument = body.args[1 + position]
    if is_sum(body, position):
        return True
    last = terminator(body).operands[position]
    return argument.has_one_use() and isinstance(last.owner, arith.OrIOp) and argument in last.owner.operands


@record(eq=False)
class _Division:
    """What of a loop's body waits, and what does not."""

    loop: scf.ForOp
    waiting: list[int]
    chain: set[Operation] = field(default_factory=set[Operation])
    rest: list[Operation] = field(default_factory=list[Operation])
    passed: list[SSAValue] = field(default_factory=list[SSAValue])

    def find(self) -> bool:
        """Finds the two parts; whether the loop can be divided and profits."""
        body = self.loop.body.block
        ops = [op for op in body.ops if op is not body.last_op]
        if any(not self._may_move(op) for op in ops):
            return False
        written = written_roots_within(self.loop)
        if not self._find_chain(ops, written):
            return False
        self.rest = [op for op in ops if op not in self.chain]
        if not any(is_costly_function(inner) for op in self.rest for inner in _with_inner(op)):
            return False
        varying = self._varying(ops, written)
        used = dict.fromkeys(value for op in self.rest for value in _used(op))
        end = terminator(body)
        free = [end.operands[k] for k in range(len(end.operands)) if k not in self.waiting]
        self.passed = [v for v in (*used, *free) if v in varying and self._is_of_chain(v)]
        return 0 < len(self.passed) <= _MOST and all(value.type == f64 for value in self.passed)

    def _may_move(self, op: Operation) -> bool:
        if op.regions and not isinstance(op, scf.IfOp):
            return False
        fixed = _FIXED | Effect.WRITE if op.regions else _FIXED
        return not any(effect(inner) & fixed and not isinstance(inner, ad.TargetAddOp) for inner in _with_inner(op))

    def _find_chain(self, ops: list[Operation], written: set[Root]) -> bool:
        """The ops that what waits needs, and all that touch memory which is written."""
        body = self.loop.body.block
        end = terminator(body)
        pending = [end.operands[k] for k in self.waiting]
        for op in ops:
            if effect(op) & Effect.WRITE or _reads(op, written):
                self.chain.add(op)
                pending += _used(op)
        while pending:
            value = pending.pop()
            op = value.owner
            if block_of(value) is not body:
                continue
            if isinstance(op, Block):
                if value is not body.args[0] and value.index - 1 not in self.waiting:  # type: ignore[union-attr]
                    return False
            elif op not in self.chain:
                self.chain.add(op)
                pending += _used(op)
        return not any(isinstance(inner, ad.TargetAddOp) for op in self.chain for inner in _with_inner(op))

    def _varying(self, ops: list[Operation], written: set[Root]) -> set[SSAValue]:
        """The values that wait for iterations before."""
        varying: set[SSAValue] = {self.loop.body.block.args[1 + k] for k in self.waiting}
        for op in ops:
            if _reads(op, written) or not varying.isdisjoint(_used(op)):
                varying.update(op.results)
        return varying

    def _is_of_chain(self, value: SSAValue) -> bool:
        op = value.owner
        return op is self.loop.body.block if isinstance(op, Block) else op in self.chain

    # ------------------------------------------------------------ doing it

    def write(self) -> None:
        """Makes the two loops. What each of them does not need is dead."""
        loop, block = self.loop, self.loop.parent
        assert block is not None
        table = IterationTable((loop,))
        tables = [table.allocate(loop) for _ in self.passed]
        block.insert_ops_before([*table.ops, *tables], loop)
        mapping: dict[SSAValue, SSAValue] = {}
        (second,) = copies([loop], mapping)
        assert isinstance(second, scf.ForOp)
        block.insert_op_after(second, loop)
        pairs = dict(zip(loop.body.block.ops, second.body.block.ops, strict=True))
        self._pass_on(table, tables, second, mapping)
        for op in [op for op in pairs if op in self.chain and effect(op) & Effect.WRITE]:
            discard(pairs[op])
        end = terminator(loop.body.block)
        for k, argument in enumerate(loop.body.block.args[1:]):
            if k not in self.waiting:
                end.operands[k] = argument
                replace_uses(loop.results[k], second.results[k])
        for op in reversed(self.rest):
            discard(op)

    def _pass_on(
        self, table: IterationTable, tables: list[rt.AllocOp], second: scf.ForOp, mapping: dict[SSAValue, SSAValue]
    ) -> None:
        first, other = self.loop.body.block, second.body.block
        ops, index = table.entry([first.args[0]])
        end = terminator(first)
        first.insert_ops_before(ops, end)
        more, there = table.entry([other.args[0]])
        begin = other.first_op
        assert begin is not None
        other.insert_ops_before(more, begin)
        for value, memory in zip(self.passed, tables, strict=True):
            first.insert_op_before(rt.StoreOp(value, memory.res, index, location=self.loop.location), end)
            load = rt.LoadOp(memory.res, there, location=self.loop.location)
            other.insert_op_before(load, begin)
            replace_uses(mapping[value], load.res)


def _with_inner(op: Operation) -> Iterator[Operation]:
    yield op
    if op.regions:
        yield from ops_within(op)


def _used(op: Operation) -> Iterable[SSAValue]:
    """What an op and those inside of it read."""
    return op.operands if not op.regions else [value for inner in _with_inner(op) for value in inner.operands]


def _reads(op: Operation, written: set[Root]) -> bool:
    """Whether an op loads from memory that is written."""
    return any(
        isinstance(inner, rt.LoadOp) and any(may_overlap(root(inner.buffer), other) for other in written)
        for inner in _with_inner(op)
    )
