"""What both arms of a branch in a loop compute leaves the branch.

    if (c) { t += log(x); } else { t -= log(x); }   →   a = log(x); if (c) { t += a; } else { t -= a; }

It is computed in either case, so nothing is computed that the program would not compute. Loads leave with it where the
arms have not written memory before, checks of domains where they test the same condition: hot units tell of an error
only that there is one (`checks`). Loops leave where both arms sum up the same (`equal_loops`). What they add of
different values by the same functions is added behind the branch (`arms_alike`).
"""

from __future__ import annotations

import struct

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import FloatAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.loops.arms_alike import merge_alike
from ulam.passes.loops.effects import is_speculatable
from ulam.passes.loops.equal_loops import is_domain_check, share_loops, stops_loads
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.remarks import remark_on
from ulam.passes.rewriting import discard, replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


class ShareArms(TellingPass):
    """Takes what both arms of a branch in a loop of `evaluate` compute out of the branch."""

    name = "share-arms"
    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        return share_arms(evaluate_of(module, self.name))


def share_arms(function: func.FuncOp) -> bool:
    """Takes common ops out of the branches in all loops of a function; whether there were any."""
    return _visit(function.body.block, in_loop=False)


def _visit(block: Block, *, in_loop: bool) -> bool:
    changed = False
    op = block.first_op
    while op is not None:
        following = op.next_op
        is_loop = isinstance(op, scf.ForOp | scf.WhileOp)
        for region in op.regions:
            for inner in region.blocks:
                changed = _visit(inner, in_loop=in_loop or is_loop) or changed
        if in_loop and isinstance(op, scf.IfOp) and len(op.false_region.blocks) == 1:
            count = _share(op)
            if len(op.true_region.blocks) == 1 and (loops := share_loops(op)):
                count += loops + _share(op)
            if count:
                changed = True
                what = "an operation" if count == 1 else f"{count} operations"
                remark_on(ShareArms.name, op, f"{what} of both arms done ahead of it", done=True)
            if merge_alike(op):
                changed = True
                remark_on(ShareArms.name, op, "its arms choose what one density is of", done=True)
        op = following
    return changed


def _share(branch: scf.IfOp) -> int:
    """Moves the common ops of the two arms in front of the branch; their number."""
    first, second = branch.true_region.block, branch.false_region.block
    assert branch.parent is not None
    others = _Ops(second)
    may_load = True
    count = 0
    inside: set[SSAValue] = set()
    op = first.first_op
    while op is not None:
        following = op.next_op
        if inside.isdisjoint(op.operands) and (may_load or not isinstance(op, rt.LoadOp)):
            same = others.take(op)
            if same is not None:
                op.detach()
                branch.parent.insert_op_before(op, branch)
                for result, by in zip(same.results, op.results, strict=True):
                    others.replace(result, by)
                discard(same)
                count += 1
                op = following
                continue
        inside.update(op.results)
        may_load = may_load and not stops_loads(op)
        op = following
    return count


class _Ops:
    """The ops of an arm that may leave it, by what they compute."""

    def __init__(self, block: Block) -> None:
        self._of: dict[tuple[object, ...], list[Operation]] = {}
        self._key: dict[Operation, tuple[object, ...]] = {}
        may_load = True
        for op in block.ops:
            if is_speculatable(op) or (isinstance(op, rt.LoadOp) and may_load) or is_domain_check(op):
                self._note(op)
            may_load = may_load and not stops_loads(op)

    def _note(self, op: Operation) -> None:
        key = self._key[op] = _key(op)
        self._of.setdefault(key, []).append(op)

    def take(self, like: Operation) -> Operation | None:
        """An op that computes the same as `like`, which is then forgotten."""
        if like.regions or not (found := self._of.get(_key(like))):
            return None
        op = found.pop(0)
        del self._key[op]
        return op

    def replace(self, value: SSAValue, by: SSAValue) -> None:
        """Lets all users of `value` use `by`."""
        users = [use.operation for use in value.uses if use.operation in self._key]
        for user in users:
            if user in self._key:
                self._of[self._key.pop(user)].remove(user)
        replace_uses(value, by)
        for user in dict.fromkeys(users):
            self._note(user)


def _key(op: Operation) -> tuple[object, ...]:
    if isinstance(op, rt.CheckOp):
        return (rt.CheckOp, op.ok)
    if isinstance(op, arith.ConstantOp) and isinstance(value := op.value, FloatAttr):
        return (arith.ConstantOp, struct.pack("<d", value.value.data), value.type)  # 0.0 is not -0.0
    properties = tuple(sorted(op.properties.items(), key=lambda entry: entry[0]))
    return (type(op), tuple(op.operands), properties, tuple(r.type for r in op.results))
