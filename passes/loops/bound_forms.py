"""Forms of indices (`index_forms`) that see what `bind` has computed: equal ints have equal forms wherever they are.

    bind:      set_bound 7 = extsi(bound 0) + 1            evaluate:  for i in 1 to (bound 7): ...
                                                                      i is below extsi(bound 0) + 1

For proofs only: what such forms are made of may stand in `bind`.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import field

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.dialects.scalar_ops import constant_integer, predicate_of
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.index_forms import Form, IndexForms, plus
from ulam.passes.loops.unit_modules import bind_of

_OF_OPERANDS = (
    arith.ExtSIOp, arith.TruncIOp, arith.AddiOp, arith.SubiOp, arith.MuliOp, arith.MaxSIOp, arith.MinSIOp,
)  # fmt: skip
"""Ops on ints whose results are equal where their operands are."""

_DEPTH = 12

_AT_LEAST = {"sge": (0, 1, 0), "sgt": (0, 1, -1), "sle": (1, 0, 0), "slt": (1, 0, -1)}
"""Comparison → which operand less which other one, with what is added, is not negative."""


def bound_ints(module: ModuleOp) -> dict[int, SSAValue]:
    """Slot of the bound table → the value that `bind` puts there, of slots that it writes once."""
    bind = bind_of(module)
    found: dict[int, SSAValue] = {}
    twice: set[int] = set()
    for op in ops_within(bind) if bind is not None else ():
        if type(op) is rt.SetBoundOp:
            slot = op.slot.value.data
            if slot in found:
                twice.add(slot)
            found[slot] = op.value
    return {slot: value for slot, value in found.items() if slot not in twice}


@record
class BoundForms(IndexForms):
    """The forms of ints as seen from one loop, or two, with what `bind` has computed of them."""

    bound: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    _equal: dict[Hashable, SSAValue] = field(default_factory=dict[Hashable, SSAValue])

    def made(self, value: SSAValue) -> SSAValue:
        """What `bind` has put where a value is read from; else the value."""
        op = value.owner
        return self.bound.get(op.slot.value.data, value) if isinstance(op, rt.BoundOp) else value

    def _find(self, value: SSAValue, depth: int) -> Form | None:
        made = self.made(value)
        return super()._find(value, depth) if made is value or depth > _DEPTH else self.of(made, depth + 1)

    def number(self, value: SSAValue) -> int:
        """The number of a value, the same for all that are equal for sure."""
        return super().number(self._equal.setdefault(self._key(value, 0), value))

    def _key(self, value: SSAValue, depth: int) -> Hashable:
        op = value.owner
        if not isinstance(op, Operation) or self.is_inside(value) or depth > _DEPTH:
            return value
        if (number := constant_integer(value)) is not None:
            return number, value.type
        if isinstance(op, rt.BoundOp):
            made = self.bound.get(op.slot.value.data)
            return ("bound", op.slot.value.data) if made is None else self._key(made, depth + 1)
        if isinstance(op, _OF_OPERANDS):
            return type(op), value.type, *(self._key(operand, depth + 1) for operand in op.operands)
        return value


def is_asked_by(condition: SSAValue, bounds: tuple[SSAValue | None, SSAValue], forms: BoundForms) -> bool:
    """Whether a condition is that a loop from one bound up to the other one, by steps of 1, has an iteration; without
    the first one from 0 on.
    """
    compared = forms.made(condition).owner
    if not isinstance(compared, arith.CmpiOp) or (predicate := predicate_of(compared)) not in _AT_LEAST:
        return False
    greater, less, more = _AT_LEAST[predicate]
    first = {} if bounds[0] is None else forms.of(bounds[0])
    end, *pair = (forms.of(value) for value in (bounds[1], *compared.operands))
    if first is None or end is None or (one := pair[greater]) is None or (other := pair[less]) is None:
        return False
    return plus(plus(one, other, -1), {(): more}) == plus(plus(end, first, -1), {(): -1})
