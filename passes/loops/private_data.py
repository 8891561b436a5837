"""Memory that iterations of loops take for themselves, and what fills it: `carried-data` asks whether that is data."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import f64, i32
from xdsl.ir import Operation, SSAValue

from ulam.dialects import rt
from ulam.passes.analysis.nesting import ancestor_in, enclosing, is_before
from ulam.passes.loops.effects import viewed

_TYPES = (rt.BufferType(i32), rt.BufferType(f64))


class PrivateData:
    """Memory that is taken among some ops, and that nothing but loads, stores and fills of elements access.

    Elements must be made of others, as numbers of what has been so far are, or several ops must fill it, one of them a
    loop, as a number and a row of data (`append_col(1, X[n])`): all else is computed where it is read, and would take
    more memory than what it is made of.
    """

    def __init__(self, ops: Sequence[Operation]) -> None:
        self._writers: dict[rt.AllocOp, list[Operation]] = {}
        for op in ops:
            if isinstance(op, rt.AllocOp) and op.res.type in _TYPES and op.zero is None:
                writers: list[Operation] = []
                if _find_writers(op.res, writers) and (_are_parts(writers, op) or _carry_on(writers, op)):
                    self._writers[op] = writers

    def __contains__(self, op: object) -> bool:
        return op in self._writers

    def __iter__(self) -> Iterator[rt.AllocOp]:
        return iter(list(self._writers))

    def remove(self, memory: rt.AllocOp) -> None:
        """It is no data."""
        del self._writers[memory]

    def writers(self, memory: rt.AllocOp) -> list[Operation]:
        """What writes to memory."""
        return self._writers[memory]

    def is_writer(self, op: Operation) -> bool:
        """Whether an op writes to such memory."""
        return isinstance(op, rt.StoreOp | rt.FillOp) and viewed(_destination(op)).owner in self._writers

    def are_read(self, values: Iterable[SSAValue]) -> bool:
        """Whether one of some values is loaded from such memory."""
        return any(isinstance(op := value.owner, rt.LoadOp) and viewed(op.buffer).owner in self for value in values)

    def are_filled_first(self, memory: rt.AllocOp, values: Iterable[SSAValue]) -> bool:
        """Whether all of some values that are loaded from memory are so when nothing is written to it any more."""
        block = memory.parent
        assert block is not None
        last = [ancestor_in(op, block) for op in self._writers[memory]]
        for value in values:
            load = value.owner
            if isinstance(load, rt.LoadOp) and viewed(load.buffer).owner is memory:
                behind = ancestor_in(load, block)
                if behind is None or not all(op is not None and is_before(op, behind) for op in last):
                    return False
        return True


def _destination(op: rt.StoreOp | rt.FillOp) -> SSAValue:
    return op.buffer if isinstance(op, rt.StoreOp) else op.destination


def _find_writers(buffer: SSAValue, writers: list[Operation]) -> bool:
    """Whether nothing but loads, stores, fills and views of such use a buffer; adds those that write to the list."""
    for use in buffer.uses:
        op = use.operation
        if isinstance(op, rt.ViewOp):
            if not _find_writers(op.results[0], writers):
                return False
        elif isinstance(op, rt.StoreOp | rt.FillOp) and _destination(op) is buffer:
            writers.append(op)
        elif not isinstance(op, rt.LoadOp):
            return False
    return True


def _are_parts(writers: Sequence[Operation], memory: rt.AllocOp) -> bool:
    """Whether several ops fill memory, one of them in a loop."""
    loop = enclosing(memory, scf.ForOp)
    return len(writers) > 1 and any(enclosing(writer, scf.ForOp) is not loop for writer in writers)


def _carry_on(writers: Sequence[Operation], memory: rt.AllocOp) -> bool:
    return any(_carries_on(writer, memory) for writer in writers)


def _carries_on(writer: Operation, memory: rt.AllocOp) -> bool:
    """Whether what an op stores is made of an element of the same memory."""
    seen: set[SSAValue] = set()
    work = [writer.operands[0]] if isinstance(writer, rt.StoreOp) else []
    while work:
        value = work.pop()
        if value in seen or not isinstance(op := value.owner, Operation) or op.regions:
            continue
        seen.add(value)
        if isinstance(op, rt.LoadOp) and viewed(op.buffer).owner is memory:
            return True
        work += op.operands
    return False
