"""Passes that work on each function of a unit by itself."""

from __future__ import annotations

from abc import abstractmethod

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.library.records import record
from ulam.passes.loops.effects import functions
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.running import TellingPass


@record(frozen=True)
class FunctionPass(TellingPass):
    """Works on all functions, or on the one that is named."""

    function: str = ""

    def changes(self, module: ModuleOp) -> bool:
        changed = False
        for function in functions(named_function(module, self.function, self.name)):
            changed = self.changes_function(function) or changed
        return changed

    @abstractmethod
    def changes_function(self, function: func.FuncOp) -> bool:
        """Does the work in one function; whether there was any."""
