"""Classes of values that count as one, such as buffers that may be the same memory (union-find)."""

from __future__ import annotations

from xdsl.ir import SSAValue


class Classes:
    """A partition of values; a value that was never joined with another is a class of its own."""

    def __init__(self) -> None:
        self._parent: dict[SSAValue, SSAValue] = {}

    def find(self, value: SSAValue) -> SSAValue:
        """The representative of a value's class."""
        root = value
        while (up := self._parent.get(root)) is not None:
            root = up
        while value is not root:  # shortens the way for the next time
            up, self._parent[value] = self._parent[value], root
            value = up
        return root

    def join(self, a: SSAValue, b: SSAValue) -> None:
        """Makes one class of those of `a` and `b`, with the representative of `b`."""
        a, b = self.find(a), self.find(b)
        if a is not b:
            self._parent[a] = b
