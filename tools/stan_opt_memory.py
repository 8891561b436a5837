"""`stan-opt --debug-mem-patterns`: which containers of reals are static and which dynamic, and why, a line each.

    model.stan:14:16: matrix r_1: static: only assigned whole
    model.stan:24:5: vector mu: dynamic: assigned in part in the loop over n: mu[n] = ...

The place is that of the declaration; of a dynamic container, that of the assignment that makes it so.
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp

from ulam.dialects import stan
from ulam.emit.stan_text_syntax import type_text
from ulam.passes.optimize.memory_pattern_optimization import MemoryPattern, memory_patterns


def memory_report(module: ModuleOp) -> str:
    """The lines, in program order; of the program as the passes left it."""
    return "".join(f"{_line(pattern)}\n" for pattern in memory_patterns(module))


def _line(found: MemoryPattern) -> str:
    place = ""
    if isinstance(location := found.location, FileLineColLoc):
        place = f"{location.filename.data}:{location.line.data}:{location.column.data}: "
    type_ = type_text(cast("stan.VarType", found.declaration.results[0].type))
    return f"{place}{type_} {found.name}: {found.pattern}: {found.reason}"
