"""What a branch adds to a log_sum_exp is chosen by the branch, and added in either case.

    x = log_sum_exp(...)                           x = log_sum_exp(...)
    y = if c: yield x + e  else: yield x     →     d = if c: yield e  else: yield -0
                                                   y = x + d

    store x, g[k]                                  d = if c: yield e  else: yield -0
    if c: store x + e, g[k]                  →     store x + d, g[k]

A row of a forward algorithm to which an observation adds only if it is not missing is then one to which something is
added, and each element is stored once (`log-recursions`, `scaled-log-sums`). The sum of anything and -0 is that.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.op_making import set_operand
from ulam.dialects.scalar_ops import constant
from ulam.dialects.walk import ops_within
from ulam.passes.analysis.nesting import is_inside, terminator
from ulam.passes.loops.effects import may_overlap, root, viewed, written_roots_within
from ulam.passes.loops.log_sums import log_sum
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.scaled_log_sums import is_fma
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, rebuild, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class BranchAdditions(TellingPass):
    """Adds to logarithms of sums behind branches of `evaluate` instead of in their arms."""

    name = "branch-additions"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        function = evaluate_of(module, self.name)
        changed = False
        for op in [op for op in ops_within(function) if isinstance(op, scf.IfOp)]:
            stored = _with_one_store(op)
            changed = changed or stored is not None
            branch = stored or op
            for position, result in enumerate(branch.results):
                if result.type == f64 and _add_behind(branch, position):
                    changed = True
        return changed


def _arms(branch: scf.IfOp) -> list[Block]:
    """The arms of a branch: one that gives nothing may have no other."""
    return [region.block for region in branch.regions if region.blocks]


# ---------------------------------------------------------------- elements that arms store


def _with_one_store(branch: scf.IfOp) -> scf.IfOp | None:
    """The branch as one that gives what its arms stored, or left there, for a store behind it; None if it stores no
    sum to which something was added."""
    first = _store_before(branch)
    if first is None or not _has_log_sum(first.value):
        return None
    stores = [_store_in(arm, first) for arm in _arms(branch)]
    others = [op for op in ops_within(branch) if op is not branch and op not in stores]
    if not any(stores) or any(_touches(op, first.buffer) for op in others):
        return None
    if not branch.false_region.blocks:
        branch.false_region.add_block(Block([scf.YieldOp()]))
        stores.append(None)
    values = [first.value if store is None else store.value for store in stores]
    for arm, value in zip(_arms(branch), values, strict=True):
        end = terminator(arm)
        end.operands = [*end.operands, value]
    before = list(branch.results)
    new = rebuild(branch, list(branch.operands), [*(result.type for result in before), f64])
    assert isinstance(new, scf.IfOp)
    for old, result in zip(before, new.results, strict=False):
        replace_uses(old, result)
    kept = rt.StoreOp(new.results[-1], first.buffer, first.index, location=first.location)
    OpWriter.behind(new.results[-1]).before(kept)
    for store in (first, *stores):
        if store is not None:
            discard(store)
    return new


def _store_before(branch: scf.IfOp) -> rt.StoreOp | None:
    """The store to the memory in which the first store of the arms is, after which nothing touches it in front."""
    inner = next((op for arm in _arms(branch) for op in arm.ops if isinstance(op, rt.StoreOp)), None)
    op = branch.prev_op if inner is not None else None
    while op is not None and inner is not None:
        if isinstance(op, rt.StoreOp) and op.buffer is inner.buffer and op.index is inner.index:
            return op
        if any(_touches(inside, inner.buffer) for inside in (op, *ops_within(op))):
            return None
        op = op.prev_op
    return None


def _store_in(arm: Block, first: rt.StoreOp) -> rt.StoreOp | None:
    """What stores to the same element at the top level of an arm."""
    ops = [op for op in arm.ops if isinstance(op, rt.StoreOp)]
    return next((op for op in ops if op.buffer is first.buffer and op.index is first.index), None)


def _touches(op: Operation, buffer: SSAValue) -> bool:
    """Whether an op may read or write the memory of a buffer, what it has inside aside."""
    memory = root(buffer)
    if any(may_overlap(found, memory) for found in written_roots_within(op)):
        return True
    touched = [operand for operand in op.operands if isinstance(operand.type, rt.BufferType)]
    return any(may_overlap(root(operand), memory) or viewed(operand) is viewed(buffer) for operand in touched)


# ---------------------------------------------------------------- additions


def _add_behind(branch: scf.IfOp, position: int) -> bool:
    """Lets a result of a branch be what its arms add to one logarithm of a sum, if that is what they give."""
    ends = [terminator(arm) for arm in _arms(branch)]
    values = [end.operands[position] for end in ends]
    base = _base(values[0], branch)
    if base is None or not _has_log_sum(base):
        return False
    added = [_added(value, base) for value in values]
    if any(addends is None for addends in added) or not any(added):
        return False
    for end, addends in zip(ends, added, strict=True):
        assert addends is not None
        end.operands[position] = _sum(addends, OpWriter(end))
    result = branch.results[position]
    uses = list(result.uses)
    total = OpWriter.behind(result).real(arith.AddfOp, base, result)
    for use in uses:
        set_operand(use, total)
    remark_on(BranchAdditions.name, branch, "what it adds to a log_sum_exp is added behind it", done=True)
    return True


def _base(value: SSAValue, branch: scf.IfOp) -> SSAValue | None:
    """What an arm adds to, from in front of the branch."""
    while is_inside(value, branch):
        op = value.owner
        if is_fma(op):
            value = op.operands[2]
        elif isinstance(op, arith.AddfOp | arith.SubfOp):
            left, right = op.operands
            value = right if isinstance(op, arith.AddfOp) and _has_log_sum(right) else left
        else:
            return None
    return value


def _has_log_sum(value: SSAValue) -> bool:
    """Whether a value is the logarithm of a sum, or one to which something was added."""
    op = value.owner
    if not isinstance(op, Operation):
        return False
    if log_sum(op) is not None:
        return True
    if is_fma(op):
        return _has_log_sum(op.operands[2])
    return isinstance(op, arith.AddfOp | arith.SubfOp) and any(map(_has_log_sum, op.operands))


_Addend = tuple[type[Operation], tuple[SSAValue, ...]]
"""The operation that adds it to a sum, or takes it away, and its factors."""


def _added(value: SSAValue, base: SSAValue) -> list[_Addend] | None:
    """What is added to `base` in a value; None if the value is no such sum."""
    if value is base:
        return []
    op = value.owner
    if is_fma(op):
        before = _added(op.operands[2], base)
        return None if before is None else [*before, (arith.AddfOp, (op.operands[0], op.operands[1]))]
    if not isinstance(op, arith.AddfOp | arith.SubfOp):
        return None
    for place, operand in enumerate(op.operands[: 2 if isinstance(op, arith.AddfOp) else 1]):
        before = _added(operand, base)
        if before is not None:
            return [*before, (type(op), (op.operands[1 - place],))]
    return None


def _sum(addends: Sequence[_Addend], write: OpWriter) -> SSAValue:
    total: SSAValue | None = None
    for adding, factors in addends:
        value = factors[0] if len(factors) == 1 else write.real(arith.MulfOp, *factors)
        if total is not None:
            total = write.real(adding, total, value)
        else:
            total = write.put(arith.NegfOp(value)) if adding is arith.SubfOp else value
    return write.put(constant(-0.0, f64)) if total is None else total
