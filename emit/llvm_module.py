"""A lowered module as LLVM IR text: the table from op class to what writes it, of all the files that bring a part."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from ulam.dialects import rt
from ulam.emit.control_ops import control_table
from ulam.emit.llvm_text import Emit, EmitOptions, ModuleEmitter
from ulam.emit.memory_ops import memory_table
from ulam.emit.primitives import emit_math
from ulam.emit.scalar_ops import scalar_table
from ulam.emit.trace_ops import trace_table


def emit_module(module: ModuleOp, options: EmitOptions | None = None) -> str:
    """The module as LLVM IR text, with declarations of all it calls and definitions of the math functions it uses."""
    options = options or EmitOptions()
    if options.lines:
        from ulam.emit.debug_info import DebugModuleEmitter

        return DebugModuleEmitter(module, options, emission_table()).run()
    return ModuleEmitter(module, options, emission_table()).run()


@cache
def emission_table() -> Mapping[type[Operation], Emit]:
    """Op class → what writes it."""
    return {**scalar_table(), **memory_table(), **control_table(), **trace_table(), rt.MathOp: emit_math}
