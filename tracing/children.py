"""The nodes of a call as a sequence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, overload

from ulam.tracing.frames import Frame

if TYPE_CHECKING:
    from ulam.tracing.nodes import Node
    from ulam.tracing.trace import Trace


class Children(Sequence["Node"]):
    """The nodes of a call, made when they are asked for; counted from 0."""

    def __init__(self, trace: Trace, frame: Frame) -> None:
        self._trace, self._frame = trace, frame

    def __len__(self) -> int:
        return self._frame.length

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> list[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | list[Node]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        position = index + 1 if index >= 0 else len(self) + index + 1
        if position < 1:
            raise IndexError(f"there are {len(self)} nodes; {index} is not one of them")
        try:
            return self._trace.node(self._frame, position)
        except IndexError:
            raise IndexError(f"there are {len(self)} nodes; {index} is not one of them") from None

    def __iter__(self) -> Iterator[Node]:
        position = 1
        while True:
            try:
                node = self._trace.node(self._frame, position)
            except IndexError:
                gap = self._frame.gap
                if gap is None or not gap[0] <= position <= gap[1]:
                    return
                position = gap[1] + 1
                continue
            yield node
            position += 1
