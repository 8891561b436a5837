"""Passes that work on each function of a unit by itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ulam.library.records import record
from ulam.passes.loops.effects import functions
from ulam.passes.loops.unit_modules import named_function
from ulam.passes.running import TellingPass, remembered
from ulam.passes.settled import BY_STEPS, SettledFunctions


@record(frozen=True)
class FunctionPass(TellingPass):
    """Works on all functions, or on the one that is named."""

    settles: ClassVar[bool] = False
    """What it does to a function depends on that alone, and it tells of nothing: where it did nothing before, and what
    is there has not changed since, it is not asked."""
    changes_only: ClassVar[frozenset[str]] = BY_STEPS

    function: str = ""

    def changes(self, module: ModuleOp) -> bool:
        changed = False
        settled = remembered(SettledFunctions)
        one = (type(self), *(value for name, value in vars(self).items() if name != "function"))
        for function in functions(named_function(module, self.function, self.name)):
            if self.settles and one in settled.known(function):
                continue
            if self.changes_function(function):
                changed = True
                settled.forget(function)
            elif self.settles:
                settled.known(function)[one] = "nothing to do"
        return changed

    @abstractmethod
    def changes_function(self, function: func.FuncOp) -> bool:
        """Does the work in one function; whether there was any."""
