"""An array and what it was before each change: any state can be had again, at the cost of the changes in between."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


class Versions:
    """An array that is changed in place. `mark` names its present state, `state` gives it back later.

    Changes are logged from the first mark on: memory grows with what was changed, not with the array.
    """

    __slots__ = ("array", "_log", "_at", "_marked")

    def __init__(self, array: npt.NDArray[np.float64]) -> None:
        self.array = array
        self._log: list[tuple[Any, Any, Any]] = []
        self._at = 0
        self._marked = False

    def mark(self) -> int:
        """The number of the present state."""
        self._marked = True
        return self._at

    def add(self, at: Any, value: Any) -> None:
        """`array[at] += value`; where an element is named twice it gets both."""
        old = np.array(self.array[at]) if self._marked else None
        if isinstance(at, tuple) and any(isinstance(a, np.ndarray) for a in at):
            np.add.at(self.array, at, value)
        else:
            self.array[at] += value
        self._changed(at, old)

    def set(self, at: Any, value: Any) -> None:
        """`array[at] = value`."""
        old = np.array(self.array[at]) if self._marked else None
        self.array[at] = value
        self._changed(at, old)

    def _changed(self, at: Any, old: Any) -> None:
        if old is None:
            return
        if self._at != len(self._log):
            raise RuntimeError("only the last state may be changed")
        self._log.append((at, old, np.array(self.array[at])))
        self._at += 1

    def state(self, number: int) -> npt.NDArray[np.float64]:
        """A copy of the array as it was when `mark` gave the number."""
        while self._at > number:
            self._at -= 1
            at, old, _ = self._log[self._at]
            self.array[at] = old
        while self._at < number:
            at, _, new = self._log[self._at]
            self.array[at] = new
            self._at += 1
        return self.array.copy()
