"""What is known of the functions of a unit until they change: a pass that found nothing to do need not look again.

Most passes change one or two functions of a unit, and what cleans up behind them would go through all others again.
Which functions a pass may change it says itself: `changes_only` has their names, that of what is called for every
evaluation (`EVALUATE`), those of entry functions (`ENTRIES`), or none where its steps tell. What does not say may
change all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects import func

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

EVALUATE = frozenset({"evaluate"})
ENTRIES = EVALUATE | {"bind"}
BY_STEPS: frozenset[str] = frozenset()
"""The passes that it consists of say what they change."""


class SettledFunctions:
    """Functions with what is known of them."""

    def __init__(self) -> None:
        self._known: dict[func.FuncOp, dict[object, object]] = {}

    def known(self, function: func.FuncOp) -> dict[object, object]:
        """What is known of a function, for more to be added; it holds until the function changes."""
        return self._known.setdefault(function, {})

    def forget(self, function: func.FuncOp) -> None:
        """A function has changed."""
        self._known.pop(function, None)

    def forget_changed(self, entry: ModulePass) -> None:
        """A pass has changed what it may."""
        names: frozenset[str] | None = getattr(entry, "changes_only", None)
        if names is None:
            self._known.clear()
        elif names:
            for function in [function for function in self._known if function.sym_name.data in names]:
                self.forget(function)
