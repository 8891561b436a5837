"""Memory that one loop stores in, once, and another one loads from, once; and passes that do without it."""

from __future__ import annotations

from abc import abstractmethod

from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from ulam.dialects import rt
from ulam.dialects.walk import ops_within
from ulam.library.records import record
from ulam.passes.loops.bound_forms import bound_ints
from ulam.passes.loops.row_memory import MemoryUses
from ulam.passes.loops.unit_modules import evaluate_of
from ulam.passes.running import TellingPass
from ulam.passes.settled import EVALUATE


@record
class FilledMemory:
    """The memory, its only store and load, and the outermost loops around them."""

    alloc: rt.AllocOp
    uses: MemoryUses
    store: rt.StoreOp
    load: rt.LoadOp
    filling: scf.ForOp
    reading: scf.ForOp

    @staticmethod
    def of(alloc: rt.AllocOp) -> FilledMemory | None:
        uses = MemoryUses.of(alloc)
        if uses is None or len(uses.loops) != 2 or len(uses.accesses) != 2:
            return None
        store, load = sorted((access.op for access in uses.accesses), key=lambda op: isinstance(op, rt.LoadOp))
        if not isinstance(store, rt.StoreOp) or not isinstance(load, rt.LoadOp):
            return None
        filling = next(loop for loop in uses.loops if loop.is_ancestor(store))
        reading = next(loop for loop in uses.loops if loop is not filling)
        return FilledMemory(alloc, uses, store, load, filling, reading)


class FilledMemoryPass(TellingPass):
    """Does something to each such memory of `evaluate`."""

    changes_only = EVALUATE

    def changes(self, module: ModuleOp) -> bool:
        allocs = [op for op in ops_within(evaluate_of(module, self.name)) if type(op) is rt.AllocOp]
        bound = bound_ints(module) if allocs else {}
        found = (FilledMemory.of(alloc) for alloc in allocs)
        return any([memory is not None and self.move(memory, bound) for memory in found])

    @abstractmethod
    def move(self, memory: FilledMemory, bound: dict[int, SSAValue]) -> bool:
        """Does it, if it can be done; whether it was. `bound`: what `bind` puts into slots."""
