"""Sizes that must be equal, since `bind` checks it, are one.

    bind:      check size(y[K + 1:T]) == size(mu)
    evaluate:  for n in 0:size(mu): ...  for n in 0:size(y[K + 1:T]): ...    →    ... for n in 0:size(mu): ...

An error in `bind` is raised by every evaluation, so `evaluate` sees no others. Loops over parts of data and over what
parameters make have the same range then, and become one.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import CMPI
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.unit_modules import bind_of, evaluate_of
from ulam.passes.rewriting import discard
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES


@record(frozen=True)
class EqualSizes(TellingPass):
    """Reads one of the sizes in `evaluate` that `bind` has checked to be equal."""

    name = "equal-sizes"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        one_of = _equal_slots(module)
        changed = False
        for op in ops_within(evaluate_of(module, self.name)) if one_of else ():
            if isinstance(op, rt.BoundOp) and op.res.type == i64 and (slot := op.slot.value.data) in one_of:
                assert op.parent is not None
                same = rt.BoundOp(one_of[slot], i64, location=op.location)
                op.parent.insert_op_before(same, op)
                op.res.replace_all_uses_with(same.res)
                discard(op)
                changed = True
        return changed


def _equal_slots(module: ModuleOp) -> dict[int, int]:
    """Slot → the first one that has the same size, of those that are not the first."""
    bind = bind_of(module)
    if bind is None:
        return {}
    slots = {value: slot for slot, value in sorted(bound_ints(module).items(), reverse=True)}
    one_of: dict[int, int] = {}
    for op in bind.body.block.ops:  # those in branches need not hold
        if not isinstance(op, rt.CheckOp):
            continue
        compared = op.ok.owner
        if not isinstance(compared, arith.CmpiOp) or compared.predicate != CMPI["eq"]:
            continue
        found = [_slot(value, slots) for value in compared.operands]
        same = sorted({_root(slot, one_of) for slot in found if slot is not None})
        if None not in found and len(same) > 1:
            one_of[same[1]] = same[0]
    return {slot: _root(slot, one_of) for slot in one_of}


def _slot(value: SSAValue, slots: dict[SSAValue, int]) -> int | None:
    """Where `bind` has put a size, or reads it from."""
    if value.type != i64:
        return None
    return value.owner.slot.value.data if isinstance(value.owner, rt.BoundOp) else slots.get(value)


def _root(slot: int, one_of: dict[int, int]) -> int:
    while slot in one_of:
        slot = one_of[slot]
    return slot
