"""What emission and code generation raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.ir import Operation


class EmissionError(Exception):
    """The module cannot become LLVM IR: an op that should have been lowered before, or one that is not supported."""

    def __init__(self, message: str, op: Operation | None = None) -> None:
        self.op = op
        self.reason = message
        super().__init__(message if op is None else f"{_place(op)}{message} (at `{op.name}`)")


class CodeGenerationError(Exception):
    """LLVM refused the module's text, or the linker found a symbol missing."""


class TargetError(OSError):
    """The environment asks for code that this machine cannot run."""


def _place(op: Operation) -> str:
    """`file:line:column: ` of the program text an op comes from, if known."""
    from ulam.dialects.places import place_of

    if (place := place_of(op.location)) is None:
        return ""
    return f"{place.filename.data}:{place.line.data}:{place.column.data}: "
