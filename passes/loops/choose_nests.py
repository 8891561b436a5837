"""Whether the rows of a nest run in one loop (`coalesce-loops`) is told by the layouts that these have got.

    bind:  rt.layout "unique rows" ... outcome %i {rt.coalesced = #rt.coalesced<12>}
           rt.set_bound 12, %i == 0

All sums of squares of a loop have to have reduced rows, or one other layout is taken. A nest whose rows have no
layout, whatever the data are, stays as it was, alone.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, ModuleOp, i1
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant
from ulam.passes.analysis.nesting import terminator
from ulam.passes.loops.op_writer import OpWriter
from ulam.passes.loops.unit_modules import bind_of, evaluate_of
from ulam.passes.rewriting import replace_uses
from ulam.passes.running import TellingPass
from ulam.passes.settled import ENTRIES

_REDUCED = "reduced rows"


class ChooseNests(TellingPass):
    """Lets `bind` tell whether the rows of nests run in one loop; where nothing would gain, nests stay alone."""

    name = "choose-nests"
    changes_only = ENTRIES

    def changes(self, module: ModuleOp) -> bool:
        conditions: dict[IntAttr, list[rt.BoundOp]] = {}
        for op in evaluate_of(module, self.name).body.block.ops:
            if isinstance(op, rt.BoundOp) and op.res.type == i1 and (fact := rt.CoalescedAttr.of(op)) is not None:
                conditions.setdefault(fact.slot, []).append(op)
        bind = bind_of(module)
        if not conditions or bind is None:
            return False
        write = OpWriter(terminator(bind.body.block))
        layouts: dict[IntAttr, list[rt.LayoutOp]] = {}
        for op in bind.body.block.ops:
            if isinstance(op, rt.LayoutOp) and (fact := rt.CoalescedAttr.of(op)) is not None:
                layouts.setdefault(fact.slot, []).append(op)
        for slot, reads in conditions.items():
            if slot in layouts:
                write.before(rt.SetBoundOp(slot.data, _are_taken(layouts[slot], write)))
                continue
            for op in bind.body.block.ops:
                if isinstance(op, rt.SetBoundOp) and op.slot.value.data == slot.data:
                    _never(op.value)  # makes no tables of rows
            for read in reads:
                _never(read.res)
        return True


def _are_taken(layouts: list[rt.LayoutOp], write: OpWriter) -> SSAValue:
    """Whether rows have got what makes them worth a loop of their own."""
    reduced = [layout for layout in layouts if layout.layout.data == _REDUCED]
    taken = [write.compare_integers("eq", layout.outcome, write.whole(0)) for layout in reduced or layouts]
    if reduced:
        return write.both(taken)
    found = taken[0]
    for other in taken[1:]:
        found = write.put(arith.OrIOp.create(operands=(found, other), result_types=(i1,)))
    return found


def _never(value: SSAValue) -> None:
    """Lets a truth value be false."""
    made = value.owner
    assert isinstance(made, Operation) and made.parent is not None
    none = constant(False, i1)
    made.parent.insert_op_before(none, made)
    replace_uses(value, none.result)
