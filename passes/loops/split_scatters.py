"""Takes scattered additions out of loops that compute, so that the computing can be widened.

    for i: ... adj[idx[i]] += v      →    for blocks: for i: ... part[i - first] = v
                                                      for i: adj[idx[i]] += part[i - first]

Two iterations may add to the same element, so a loop with such additions stays scalar, with all the functions that it
evaluates. Only loops that evaluate functions worth it, and that read nothing of what they add to. With `divisions`, as
many divisions as additions are worth it, too; products that are stored are no longer fused with the addition, so bits
may change.

Rows that `sort-rows` has put in an order (`ad.segments`) are added by runs: one addition for all rows of a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64, i1, i32, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ulam.dialects import ad, rt
from ulam.dialects.scalar_ops import CMPI, constant, constant_integer
from ulam.dialects.walk import ops_within
from ulam.library.costs import WIDENED
from ulam.library.records import record
from ulam.passes.builder import REASSOCIATE, WRAPS
from ulam.passes.loops.effects import is_speculatable, may_overlap, root
from ulam.passes.loops.tables import is_costly_function

_BLOCK = 256
_SHIFT = 8
RUNS_SHIFT = 6
"""Runs of rows end with blocks of 64 rows (runtime/c/layouts.c)."""
_SHORT_SUM = rt.LoopAttr.of_kind("masked_tail")
"""Of a run: most have a few dozen rows, of which several sums side by side would leave all to a scalar loop."""


@record(frozen=True)
class SplitScatters(ModulePass):
    """Takes scattered additions out of loops that compute, so that these are widened; `divisions`: or only divide."""

    name = "split-scatters"

    divisions: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        run_on(op, self.divisions)


def run_on(op: Operation, divisions: bool = False) -> None:
    """Splits all loops at or below `op` that profit."""
    additions = [inner for inner in ops_within(op) if type(inner) is ad.AccumulateOp]
    of_loop: dict[scf.ForOp, list[ad.AccumulateOp]] = {}
    for addition in additions:
        loop = addition.parent_op()
        if type(loop) is scf.ForOp and not rt.LoopAttr.is_cold(loop) and _depends_on_load(addition.index, loop):
            of_loop.setdefault(loop, []).append(addition)
    for loop, scattered in of_loop.items():
        if scatters := _scatters(loop, scattered, divisions):
            _split(loop, scatters)
    for inner in ops_within(op) if of_loop else additions:
        if type(inner) is ad.AccumulateOp:
            ad.SegmentsAttr.take(inner)


def _scatters(loop: scf.ForOp, scattered: list[ad.AccumulateOp], divisions: bool) -> list[ad.AccumulateOp]:
    """The additions of a loop to be taken out of it; none if that gains nothing or is not allowed."""
    costly = any(map(ad.SegmentsAttr.marks, scattered))
    if divisions:  # a part that is stored and loaded again takes as long as half of one
        costly = costly or sum(isinstance(op, arith.DivfOp) for op in loop.body.block.ops) >= len(scattered)
    read: list[SSAValue] = []
    for op in _computing(loop, divisions):
        if isinstance(op, rt.MathOp):
            costly = costly or is_costly_function(op)
        elif isinstance(op, rt.LoadOp | ad.TakeOp | ad.KeptOp):
            read.append(op.operands[0])
        elif not isinstance(op, ad.AccumulateOp | rt.StoreOp | ad.KeepOp | scf.YieldOp) and not is_speculatable(op):
            return []
    if not costly:
        return []
    targets = [root(op.buffer) for op in scattered]
    if any(may_overlap(root(buffer), target) for buffer in read for target in targets):
        return []
    movable = all(_is_outside(op.buffer, loop) and _slice(op.index, loop) is not None for op in scattered)
    return scattered if movable else []


def _computing(loop: scf.ForOp, branches: bool) -> Iterator[Operation]:
    """The ops of a loop's body; of `branches` that only choose what they give those of their arms in their place, which
    are computed side by side, too."""
    for op in loop.body.block.ops:
        if branches and isinstance(op, scf.IfOp) and op.results:
            arms = [inner for inner in ops_within(op) if not isinstance(inner, scf.IfOp)]
            yield from arms if all(map(_is_widened, arms)) else (op,)
        else:
            yield op


def _is_widened(op: Operation) -> bool:
    """Whether an op of an arm may be computed for several iterations at once."""
    if isinstance(op, rt.MathOp):
        return not is_costly_function(op) or op.function.data in WIDENED
    return isinstance(op, rt.LoadOp | scf.YieldOp) or is_speculatable(op)


def _is_outside(value: SSAValue, loop: scf.ForOp) -> bool:
    owner = value.owner
    return owner is not loop.body.block if isinstance(owner, Block) else owner.parent is not loop.body.block


def _depends_on_load(index: SSAValue, loop: scf.ForOp) -> bool:
    ops = _slice(index, loop)
    return ops is None or any(isinstance(op, rt.LoadOp) for op in ops)


def _slice(index: SSAValue, loop: scf.ForOp) -> list[Operation] | None:
    """The ops of the body that an index is computed by, in order; None if it depends on what the loop carries."""
    found: dict[Operation, None] = {}

    def visit(value: SSAValue) -> bool:
        if _is_outside(value, loop) or value is loop.body.block.args[0]:
            return True
        op = value.owner
        if not isinstance(op, Operation) or not (isinstance(op, rt.LoadOp) or is_speculatable(op)):
            return False
        if op not in found:
            if not all(visit(operand) for operand in op.operands):
                return False
            found[op] = None
        return True

    return list(found) if visit(index) else None


def _split(loop: scf.ForOp, scatters: list[ad.AccumulateOp]) -> None:
    assert loop.parent is not None
    size = constant(_BLOCK, i64)
    of_value = {s.value: rt.AllocOp(size.result, rt.BufferType(f64), stack=True) for s in scatters}
    parts = [of_value[s.value] for s in scatters]
    zero, one, shift, most = (constant(value, i64) for value in (0, 1, _SHIFT, _BLOCK - 1))
    span = arith.SubiOp.create(operands=(loop.ub, loop.lb), result_types=(i64,), properties=WRAPS)
    raised = arith.AddiOp.create(operands=(span.result, most.result), result_types=(i64,), properties=WRAPS)
    blocks = arith.ShRSIOp.create(operands=(raised.result, shift.result), result_types=(i64,))
    loop.parent.insert_ops_before([size, *of_value.values(), zero, one, shift, most, span, raised, blocks], loop)

    types = [v.type for v in loop.iter_args]
    block = Block(arg_types=[i64, *types])
    scaled = arith.MuliOp.create(operands=(block.args[0], size.result), result_types=(i64,), properties=WRAPS)
    first = arith.AddiOp.create(operands=(loop.lb, scaled.result), result_types=(i64,), properties=WRAPS)
    limit = arith.AddiOp.create(operands=(first.result, size.result), result_types=(i64,), properties=WRAPS)
    end = arith.MinSIOp.create(operands=(limit.result, loop.ub), result_types=(i64,))
    block.add_ops([scaled, first, limit, end])

    rows = _Block(loop, dict(zip(scatters, parts, strict=True)), first.result, end.result, one.result)
    additions = rows.write()
    for part in of_value.values():
        scatter = next(s for s, own in rows.parts.items() if own is part)
        position = arith.SubiOp.create(
            operands=(loop.body.block.args[0], first.result), result_types=(i64,), properties=WRAPS)  # fmt: skip
        store = rt.StoreOp(scatter.value, part.res, position.result, initial=True)
        loop.body.block.insert_ops_before([position, store], scatter)
    for scatter in scatters:
        scatter.detach()
        scatter.erase()

    region = loop.detach_region(loop.body)
    inner = scf.ForOp.create(
        operands=(first.result, end.result, one.result, *block.args[1:]),
        result_types=types,
        regions=[region],
        attributes=loop.attributes,
        location=loop.location,
    )
    block.add_ops([inner, *additions, scf.YieldOp.create(operands=inner.results)])
    outer = scf.ForOp.create(
        operands=(zero.result, blocks.result, one.result, *loop.iter_args),
        result_types=types,
        regions=[Region(block)],
        location=loop.location,
    )
    loop.parent.insert_op_before(outer, loop)
    for old, new in zip(loop.results, outer.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


@record
class _Runs:
    """The runs of some blocks."""

    rows: SSAValue
    """The first rows of all runs."""
    starts: SSAValue
    """The first runs of all blocks. There are none, nor rows of runs, where rows are not added by runs."""
    blocks: tuple[SSAValue, SSAValue]
    """The first of these blocks, and the one behind the last."""
    base: SSAValue
    """The number of the first row of these blocks."""
    origin: SSAValue
    """The iteration of the first row of all."""


@record
class _Block:
    """Writes what adds the values that a block of rows has computed."""

    loop: scf.ForOp
    parts: dict[ad.AccumulateOp, rt.AllocOp]
    first: SSAValue
    end: SSAValue
    one: SSAValue

    def write(self) -> list[Operation]:
        """Loops over the rows, for sorted rows over the runs of those that add to the same element."""
        marked: dict[tuple[int, int], dict[int, list[ad.AccumulateOp]]] = {}
        plain: list[ad.AccumulateOp] = []
        for scatter in self.parts:
            fact = ad.SegmentsAttr.take(scatter)
            if fact is None or not _begins_blocks(self.loop.lb, fact.first.data):
                plain.append(scatter)
            else:
                of_key = marked.setdefault((fact.slot.data, fact.first.data), {})
                of_key.setdefault(fact.key.data, []).append(scatter)
        ops: list[Operation] = [self._by_row(plain)] if plain else []
        for (slot, origin), of_key in marked.items():
            ops += self._sorted(slot, origin, of_key)
        return ops

    def _sorted(self, slot: int, origin: int, of_key: dict[int, list[ad.AccumulateOp]]) -> list[Operation]:
        """By runs if all keys are equal in them, else by the runs of one key, or by rows."""
        outcome, runs, starts = (
            rt.BoundOp(slot + k, type_) for k, type_ in enumerate((i64, rt.BufferType(i32), rt.BufferType(i64)))
        )
        shift, start, most = (constant(value, i64) for value in (RUNS_SHIFT, origin, (1 << RUNS_SHIFT) - 1))
        base, rows = (
            arith.SubiOp.create(operands=(row, start.result), result_types=(i64,), properties=WRAPS)
            for row in (self.first, self.end)
        )
        raised = arith.AddiOp.create(operands=(rows.result, most.result), result_types=(i64,), properties=WRAPS)
        blocks = [
            arith.ShRSIOp.create(operands=(rows.result, shift.result), result_types=(i64,)) for rows in (base, raised)
        ]
        ops = [outcome, runs, starts, shift, start, most, base, rows, raised, *blocks]
        first, behind = (block.result for block in blocks)
        by_runs = partial(self._by_run, _Runs(runs.res, starts.res, (first, behind), base.result, start.result))
        every = [scatter for scatters in of_key.values() for scatter in scatters]
        row_wise: list[Operation] = [self._by_row(every)]
        if len(of_key) > 1:
            mixed: list[Operation] = []
            for key, scatters in of_key.items():
                mixed += _branch(outcome.res, key + 2, by_runs(scatters), [self._by_row(scatters)])
            row_wise = _branch(outcome.res, 0, row_wise, mixed)
        return [*ops, *_branch(outcome.res, 1, by_runs(every), row_wise)]

    def _by_row(self, scatters: list[ad.AccumulateOp]) -> scf.ForOp:
        body = Block(arg_types=[i64])
        position = arith.SubiOp.create(operands=(body.args[0], self.first), result_types=(i64,), properties=WRAPS)
        body.add_op(position)
        values: dict[rt.AllocOp, rt.LoadOp] = {}
        for scatter in scatters:
            if (part := self.parts[scatter]) not in values:
                values[part] = rt.LoadOp(part.res, position.result)
                body.add_op(values[part])
        self._add(body, scatters, body.args[0], {part: load.res for part, load in values.items()})
        body.add_op(scf.YieldOp.create())
        operands = (self.first, self.end, self.one)
        return scf.ForOp.create(operands=operands, regions=[Region(body)], location=self.loop.location)

    def _add(
        self, body: Block, scatters: list[ad.AccumulateOp], row: SSAValue, values: dict[rt.AllocOp, SSAValue]
    ) -> None:
        """Adds values at the places that a row's index says."""
        mapping: dict[SSAValue, SSAValue] = {self.loop.body.block.args[0]: row}
        copied: set[Operation] = set()
        for scatter in scatters:
            for op in _slice(scatter.index, self.loop) or ():
                if op not in copied:
                    copied.add(op)
                    body.add_op(op.clone(value_mapper=mapping))
            index = mapping.get(scatter.index, scatter.index)
            body.add_op(ad.AccumulateOp(scatter.buffer, index, values[self.parts[scatter]], location=scatter.location))

    def _by_run(self, runs: _Runs, scatters: list[ad.AccumulateOp]) -> list[Operation]:
        """For each run of the block the sums of what its rows computed."""
        parts = list(dict.fromkeys(self.parts[scatter] for scatter in scatters))
        body = Block(arg_types=[i64])
        following = arith.AddiOp.create(operands=(body.args[0], self.one), result_types=(i64,), properties=WRAPS)
        begin, end = rt.LoadOp(runs.rows, body.args[0]), rt.LoadOp(runs.rows, following.result)
        ends = [arith.ExtSIOp.create(operands=(load.res,), result_types=(i64,)) for load in (begin, end)]
        zero = constant(0.0, f64)
        body.add_ops([following, begin, end, *ends, zero])
        rows = Block(arg_types=[i64, *(f64 for _ in parts)])
        position = arith.SubiOp.create(operands=(rows.args[0], runs.base), result_types=(i64,), properties=WRAPS)
        loads = [rt.LoadOp(part.res, position.result) for part in parts]
        sums = [
            arith.AddfOp.create(operands=(total, load.res), result_types=(f64,), properties={"fastmath": REASSOCIATE})
            for total, load in zip(rows.args[1:], loads, strict=True)
        ]
        rows.add_ops([position, *loads, *sums, scf.YieldOp.create(operands=[op.results[0] for op in sums])])
        inner = scf.ForOp.create(
            operands=(ends[0].results[0], ends[1].results[0], self.one, *(zero.result for _ in parts)),
            result_types=[f64 for _ in parts],
            regions=[Region(rows)],
            attributes=_SHORT_SUM.as_attributes(),
            location=self.loop.location,
        )
        row = arith.AddiOp.create(operands=(ends[0].result, runs.origin), result_types=(i64,), properties=WRAPS)
        body.add_ops([inner, row])
        self._add(body, scatters, row.result, dict(zip(parts, inner.results, strict=True)))
        body.add_op(scf.YieldOp.create())
        bounds = [rt.LoadOp(runs.starts, block) for block in runs.blocks]
        operands = (*(bound.res for bound in bounds), self.one)
        return [*bounds, scf.ForOp.create(operands=operands, regions=[Region(body)], location=self.loop.location)]


def _branch(value: SSAValue, number: int, then: list[Operation], otherwise: list[Operation]) -> list[Operation]:
    """A branch on whether a value is a number."""
    known = constant(number, i64)
    test = arith.CmpiOp.create(operands=(value, known.result), result_types=(i1,), properties={"predicate": CMPI["eq"]})
    regions = [Region(Block([*ops, scf.YieldOp.create()])) for ops in (then, otherwise)]
    return [known, test, scf.IfOp.create(operands=(test.result,), regions=regions)]


def _begins_blocks(lower: SSAValue, first: int) -> bool:
    """Whether a loop from there begins with a block of rows: with the first, or where one of a loop in blocks does.

    Of groups of rows, with bounds from memory, only one that has all rows in their order leaves it to runs to add.
    """
    if (number := constant_integer(lower)) is not None:
        return number == first
    owner = lower.owner
    if isinstance(owner, Block):
        loop = owner.parent_op()
        if not isinstance(loop, scf.ForOp) or (constant_integer(loop.step) or 1) % (1 << RUNS_SHIFT):
            return False
        return lower is owner.args[0] and _begins_blocks(loop.lb, first)
    if isinstance(owner, rt.LoadOp):
        return first == 0 and isinstance(owner.buffer.owner, rt.BoundOp)
    return first == 0 and isinstance(owner, arith.MuliOp) and _BLOCK in map(constant_integer, owner.operands)
