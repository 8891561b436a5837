"""What the ops of `rt` and `ad` do besides computing their results: a trait of each, for our passes and for xDSL's.

    traits = traits_def(LowEffects(Effect.READ | Effect.WRITE))

Ops that do nothing else have xDSL's `Pure`, or `NoMemoryEffect` if they must not run where the program would not run
them. Our passes ask the table that `passes/loops/effects.py` makes of the traits; xDSL's see reads, writes and
allocations of one memory that has all of the world in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag
from typing import TYPE_CHECKING

from xdsl.ir import Operation
from xdsl.traits import EffectInstance, MemoryEffect, MemoryEffectKind

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet


class Effect(IntFlag):
    """One bit per kind of effect."""

    NONE = 0
    READ = 1  # of buffers
    WRITE = 2  # to buffers
    ALLOCATE = 4  # a new buffer: two equal ops give two buffers, one without uses can go
    LEAVE = 8  # may leave the function with an error
    TRAP = 16  # undefined for some operands: must not run where the program would not have run it
    ORDERED = 32  # prints, random numbers, the target, the bound table, the arena: never removed nor moved
    CONTROL = 64  # ends a region
    READ_BOUND = 128  # of the bound table, which changes nowhere but in functions that write it

    if not TYPE_CHECKING:  # sets of effects are plain ints: to make a member of every combination takes much longer
        __and__, __or__, __invert__ = int.__and__, int.__or__, int.__invert__
        __rand__, __ror__ = int.__rand__, int.__ror__  # else asked for `int | Effect`


ANYTHING = Effect.READ | Effect.WRITE | Effect.LEAVE | Effect.ORDERED

_READS = Effect.READ | Effect.READ_BOUND | Effect.ORDERED
_WRITES = Effect.WRITE | Effect.LEAVE | Effect.ORDERED


@dataclass(frozen=True)
class LowEffects(MemoryEffect):
    """The effects of an op class."""

    effects: Effect

    def get_effects(self, op: Operation) -> AbstractSet[EffectInstance]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """What xDSL's passes are told: who leaves or keeps its place writes; what is allocated is the results."""
        found = set[EffectInstance]()
        if self.effects & _READS:
            found.add(EffectInstance(MemoryEffectKind.READ))
        if self.effects & _WRITES:
            found.add(EffectInstance(MemoryEffectKind.WRITE))
        if self.effects & Effect.ALLOCATE:
            found.update(EffectInstance(MemoryEffectKind.ALLOC, result) for result in op.results)
        return found
