"""The `rt` dialect: memory and run-time services below containers, next to `arith`, `scf` and `func`.

A container has become a buffer (a typed pointer without a size) and SSA integers for its sizes. Element order:
array dimensions outermost, the first slowest; then a matrix column by column. Indices count elements, from 0.
Every function implicitly has the context (arena, error slot, random numbers, print sink) and the table of bound data.

`memory.py` has blocks and their elements, `bound_data.py` what `bind` made, `services.py` what else the runtime does.
"""

from xdsl.ir import Dialect

from ulam.dialects.buffers import BufferType, MarkType
from ulam.dialects.rt.bound_data import (
    AllocBoundOp,
    BoundOp,
    CoalescedAttr,
    ConstantsOp,
    LayoutOp,
    NeverNegativeAttr,
    ReducedAttr,
    SetBoundOp,
    StringOp,
)
from ulam.dialects.rt.memory import (
    AheadAttr,
    AllocOp,
    CopyOp,
    FillOp,
    IsNullOp,
    LoadOp,
    MarkOp,
    NullOp,
    ReleaseOp,
    StoreOp,
    ViewOp,
)
from ulam.dialects.rt.services import CheckOp, HarmlessAttr, KernelOp, MathOp, StackGuardOp
from ulam.dialects.unit_facts import EntryAttr, LoopAttr, PartAttr, SitesAttr, SlotsAttr

RT = Dialect(
    "rt",
    [
        AllocOp, MarkOp, ReleaseOp, BoundOp, SetBoundOp, LayoutOp, AllocBoundOp, LoadOp, StoreOp, ViewOp, CopyOp,
        FillOp, MathOp, CheckOp, StackGuardOp, KernelOp, StringOp, ConstantsOp, NullOp,
        IsNullOp,
    ],
    [
        BufferType, MarkType, EntryAttr, PartAttr, SitesAttr, SlotsAttr, LoopAttr, AheadAttr, HarmlessAttr, ReducedAttr,
        CoalescedAttr, NeverNegativeAttr,
    ],
)  # fmt: skip
