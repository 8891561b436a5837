"""Passes that work on each scope by itself: what has not changed since such a pass saw it last needs no second look."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ulam.passes.analysis.scopes import Scope, own_scopes


class ScopePass(ModulePass):
    """A pass that does to a scope what it would do if all others were empty.

    Of other scopes it may ask what their calls do, if `asks_callees`.
    """

    asks_callees: ClassVar[bool] = False
    finds_no_more_after: ClassVar[frozenset[str]] = frozenset()
    """Passes that leave nothing new to do for this one, whatever they change in a scope."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        self.work_on(op, own_scopes(op))

    @abstractmethod
    def work_on(self, module: ModuleOp, scopes: Sequence[Scope]) -> bool:
        """Does the work in some scopes of a module; whether one of them may have changed."""
