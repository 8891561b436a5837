"""Makes functions of their own of parts of a function that is very long.

    func.func @evaluate(...)                   func.func @evaluate(...)
      scf.if %gamma {                            scf.if %gamma {
        <hundreds of ops>               →          %0, %1 = func.call @evaluate.part(%y, %x)
      }                                          }
                                               func.func private @evaluate.part(%y, %x) {rt.part = #rt.part}

LLVM's passes and its code generation take more than twice as long for a function of twice the length; the longest
functions are those of programs that say with flags in the data which of their branches are meant, of which an
evaluation takes few. So the arms of branches become parts; what still is too long is cut where few values are alive.
Loops stay whole, unless one alone is too long. What is computed, and in which order, stays as it is: the same bits.

Constants and what is read of the bound table are copied into a part; all other values are passed. What memory
arguments may overlap with is found out where the call is emitted (`emit/alias.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.analysis.free_values import free_values
from ulam.passes.analysis.nesting import ancestor_in
from ulam.passes.idle_passes import MANY
from ulam.passes.loops.parts import COPIED, WRITES_BOUND, bring_in, part_of, takes_stack
from ulam.passes.remarks import remark_on

_CALL = 4
"""Ops that a call counts as."""


@record(frozen=True)
class SplitFunctions(ModulePass):
    """Splits functions of more than `above` ops. Parts have at least `least`, and few of them more than `most`."""

    name = "split-functions"

    above: int = MANY
    most: int = 3000
    least: int = 150

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [f for f in op.body.block.ops if isinstance(f, func.FuncOp)]:
            size, writes_bound = 0, False
            for inner in ops_within(function.body):
                size += 1
                writes_bound = writes_bound or type(inner) in WRITES_BOUND
            if size > self.above and not writes_bound:
                splitter = _Splitter(op, function, self.most, self.least)
                splitter.split()
                name = function.sym_name.data
                message = f"{size} operations, more than {self.above}: {splitter.count} parts became functions"
                remark_on(self.name, function, message, done=True, subject=f"function {name}")


class _Splitter:
    """Makes the parts of one function."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, most: int, least: int) -> None:
        self._module = module
        self._function = function
        self._most = most
        self._least = least
        self.count = 0

    def split(self) -> None:
        """Makes parts, so that no function has more than `most` ops where that can be."""
        self._cut(self._function.body.block)

    def _cut(self, block: Block) -> int:
        """Makes parts of what is inside of a block, and then of the block; returns how many ops it has then."""
        weights = [(op, self._shortened(op)) for op in block.ops]
        total = sum(weight for _, weight in weights)
        if total <= self._most:
            return total
        return self._cut_in_runs(weights[:-1]) + weights[-1][1]

    def _shortened(self, op: Operation) -> int:
        """How many ops an op counts as after parts were made of what is inside."""
        if not op.regions:
            return 1
        if not isinstance(op, scf.IfOp):
            size = sum(1 for _ in ops_within(op))
            if size <= self._most:
                return size
        return 1 + sum(self._shortened_block(block) for region in op.regions for block in region.blocks)

    def _shortened_block(self, block: Block) -> int:
        weight = self._cut(block)
        *ops, _ = block.ops
        return _CALL if ops and weight >= self._least and self._outline(ops) else weight

    def _cut_in_runs(self, weights: Sequence[tuple[Operation, int]]) -> int:
        """Parts of about half of the most, which end where few of their values are used behind."""
        position = {op: n for n, (op, _) in enumerate(weights)}
        alive = _alive_behind(position)
        left = begin = 0
        while begin < len(weights):
            size, end, best = 0, begin, begin
            while end < len(weights) and (end == begin or size < self._most * 3 // 4):
                size += weights[end][1]
                end += 1
                if size >= self._most // 4 and (best == begin or alive[end - 1] <= alive[best - 1]):
                    best = end
            if best == begin or end == len(weights):
                best = end
            run = weights[begin:best]
            weight = sum(weight for _, weight in run)
            left += _CALL if weight >= self._least and self._outline([op for op, _ in run]) else weight
            begin = best
        return left

    def _outline(self, ops: Sequence[Operation]) -> bool:
        """Makes a function of ops in a row, and a call of it where they were; whether that can be."""
        outer = ops[0].parent
        assert outer is not None
        ops = _without_shared_buffers(outer, ops)
        inside = set(ops)
        made = (result for op in ops for result in op.results)
        results = [r for r in made if any(ancestor_in(use.operation, outer) not in inside for use in r.uses)]
        if not ops or (any(type(r.type) is rt.BufferType for r in results) and any(map(takes_stack, ops))):
            return False
        following = ops[-1].next_op
        assert following is not None
        for op in ops:
            op.detach()
        body = Block(ops)
        region = Region(body)
        free = free_values(region)
        arguments = [value for value in free if not isinstance(value.owner, COPIED)]
        bring_in(region, free, arguments)
        name = f"{self._function.sym_name.data}.part{self.count or ''}"
        self.count += 1
        call = func.CallOp(SymbolRefAttr(name), arguments, [r.type for r in results])
        call.location = ops[0].location
        outer.insert_op_before(call, following)
        for result, outside in zip(results, call.results, strict=True):
            outside.name_hint = result.name_hint
            for use in [use for use in result.uses if ancestor_in(use.operation, body) is None]:
                use.operation.operands[use.index] = outside
        self._module.body.block.add_op(part_of(region, results, name, ops[0]))
        return True


def _without_shared_buffers(outer: Block, ops: Sequence[Operation]) -> list[Operation]:
    """The ops but for allocations of known size that are used behind them. These are moved to their front, where they
    may be on the stack.
    """
    inside = set(ops)
    has_mark = any(type(op) is rt.MarkOp for op in ops)
    shared = dict.fromkeys(op for op in ops if _is_shared(op, outer, inside, has_mark))
    left = [op for op in ops if op not in shared]
    for op in shared if left else ():
        assert isinstance(op, rt.AllocOp) and isinstance(op.count.owner, arith.ConstantOp)
        count = op.count.owner.clone()
        op.detach()
        op.operands[0] = count.result
        outer.insert_ops_before([count, op], left[0])
    return left


def _is_shared(op: Operation, outer: Block, inside: set[Operation], has_mark: bool) -> bool:
    """Whether an op is such an allocation; one that is given back when its iteration ends stays behind its mark."""
    return (
        isinstance(op, rt.AllocOp)
        and (op.stack is not None or not has_mark)
        and isinstance(op.count.owner, arith.ConstantOp)
        and any(ancestor_in(use.operation, outer) not in inside for use in op.res.uses)
    )


def _alive_behind(position: dict[Operation, int]) -> list[int]:
    """For ops in a row: how many values of those up to each are used behind it."""
    changes = [0] * (len(position) + 1)
    for op, n in position.items():
        block = op.parent
        assert block is not None
        for result in op.results:
            users = (ancestor_in(use.operation, block) for use in result.uses)
            last = max((position.get(user, len(position)) for user in users if user is not None), default=n)
            changes[n] += 1
            changes[last] -= 1
    alive, count = list[int](), 0
    for change in changes[:-1]:
        count += change
        alive.append(count)
    return alive
