"""Errors of a compiled program at run time, and of its data.

All derive from RuntimeError, as BridgeStan's do. `Rejection` and `FatalError` come from the program's site table: a
status of `library/statuses.py`, the number of the site and up to four values (`ErrorSite.message` has `{0}`, `{1}`, ...
for them, `{0:int}` for one that wraps as ints do).
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ulam.dialects.integers import wrapped
from ulam.library.records import record
from ulam.library.statuses import REJECTION

if TYPE_CHECKING:
    from ulam.tracing.explain.explanation import Explanation


class UlamError(RuntimeError):
    """Base of what ulam raises for a mistake in a program, in its data or in a run."""

    trace: Any = None
    """What a traced run recorded until this ended it (`ulam.trace.Trace`); else None."""


class CompileError(UlamError):
    """The program has errors. The message is the rendered diagnostics, with file, line and caret.

    `diagnostics` has them as objects of `ulam.frontend.diagnostics`, where there are any.
    """

    def __init__(self, text: str, diagnostics: Sequence[Any] = ()) -> None:
        self.diagnostics = list(diagnostics)
        super().__init__(text)


INTERNAL_ERROR_HELP = "this is a mistake in ulam, not in your program; please report it with the program"


class InternalCompilerError(CompileError):
    """The compiler itself failed: a mistake in ulam, not in the program. `__cause__` is what was raised."""


class DataError(UlamError):
    """Data (or constrained parameters) do not fit the program. `problems` has one text for each variable at fault."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = list(problems)
        super().__init__("\n".join(self.problems))

    def __reduce__(self) -> tuple[type[DataError], tuple[list[str]]]:
        return (type(self), (self.problems,))


class UnusedNameWarning(UserWarning):
    """Data or initial values have a name that means nothing to the program."""


class ProgramError(UlamError):
    """A check of the running program failed.

    `text` is the bare message, `function` the Stan function that failed (may be empty), `values` what the check saw.
    """

    def __init__(
        self, text: str, function: str = "", file: str = "", line: int = 0, column: int = 0,
        values: Sequence[float] = (),
    ) -> None:  # fmt: skip
        self.text = text
        self.function = function
        self.file = file
        self.line = line
        self.column = column
        self.values = tuple(values)
        prefix = f"{function}: " if function and not text.startswith(f"{function}:") else ""
        where = f" (in '{file}', line {line}, column {column})" if line > 0 else ""
        super().__init__(f"{prefix}{text}{where}")

    def __reduce__(self) -> tuple[type[ProgramError], tuple[Any, ...]]:
        return (type(self), (self.text, self.function, self.file, self.line, self.column, self.values))


class Rejection(ProgramError):
    """A domain error, or the program's `reject`: the point is refused, a sampler or an optimizer goes on."""


class FatalError(ProgramError):
    """An index out of range, a size mismatch or `fatal_error`: the program is wrong, the run ends."""


class InitializationError(UlamError):
    """No initial point with a finite log density and gradient was found.

    `reasons` has a `FailureReason` (`ulam.runtime.optimizers.failed_evaluations`) for each statement that failed, the
    most frequent first: its place, how often it did, and the message. `point` is the first unconstrained point that
    failed (None if none could be made), `jacobian` whether it did so with the Jacobian adjustment. `model` is not
    pickled.
    """

    def __init__(self, text: str, reasons: Sequence[Any] = (), point: Any = None, jacobian: bool = False) -> None:
        self.reasons = list(reasons)
        self.point = point
        self.jacobian = jacobian
        self.model: Any = None
        super().__init__(text)

    def __reduce__(self) -> tuple[type[InitializationError], tuple[Any, ...]]:
        return (type(self), (str(self), self.reasons, self.point, self.jacobian))

    def explain(self) -> Explanation | None:
        """Why the first point failed, as `StanModel.explain`; None if the point or the model is not at hand.

        Nor is there more to tell of a point at the boundary of the support, infinite as unconstrained parameters.
        """
        if self.model is None or self.point is None or not all(map(math.isfinite, self.point)):
            return None
        return self.model.explain(self.point, jacobian=self.jacobian)


class SamplingError(UlamError):
    """A chain cannot go on: no step size is right for it, or no metric."""


class SamplingWarning(UserWarning):
    """Draws have values that are missing."""


class Interrupted(UlamError):
    """SIGINT ended the call: of a thread that is not the main one, or where the host's handler raised nothing."""

    def __init__(self, text: str = "interrupted") -> None:
        super().__init__(text)


class TimeLimit(UlamError):
    """The time limit of the call was reached. `result` is the best result so far; None if there was none yet."""

    def __init__(self, seconds: float, result: Any = None) -> None:
        self.seconds = seconds
        self.result = result
        super().__init__(f"the time limit of {seconds:g} s was reached")

    def __reduce__(self) -> tuple[type[TimeLimit], tuple[Any, ...]]:
        return (type(self), (self.seconds, self.result))


class OutOfMemoryError(UlamError, MemoryError):
    """There is no room for the values of the program's variables."""


class ArgumentError(ctypes.ArgumentError, ValueError):
    """An array argument of the wrong size or type. BridgeStan raises the first base, its manual says the second."""


@record(frozen=True, slots=True)
class ErrorSite:
    """A place in the program where a check may fail."""

    status: int  # REJECTION or FATAL
    message: str
    file: str
    line: int
    column: int
    function: str

    @staticmethod
    def from_metadata(entry: Mapping[str, Any]) -> ErrorSite:
        return ErrorSite(
            status=int(entry["status"]),
            message=entry["message"],
            file=entry.get("file", ""),
            line=int(entry.get("line", 0)),
            column=int(entry.get("column", 0)),
            function=entry.get("function", ""),
        )

    def error(self, status: int, values: Sequence[float], text: str = "") -> ProgramError:
        """The exception for this site. `text` is the program's own (`reject`, `fatal_error`) or a kernel's; it
        replaces `message`, or its `{text}`."""
        if text:
            text = self.message.replace("{text}", text) if "{text}" in self.message else text
        else:
            text = self.message
            for position, value in enumerate(values):
                text = text.replace(f"{{{position}}}", value_text(value))
                if (place := f"{{{position}:int}}") in text:  # other values need not be finite
                    text = text.replace(place, value_text(wrapped(int(value))))
        kind = Rejection if status == REJECTION else FatalError
        return kind(text, self.function, self.file, self.line, self.column, values)


def value_text(value: float) -> str:
    """A number as Stan's messages write it: an integer without a point, else the shortest text that reads back."""
    if abs(value) < 1e15 and value == int(value):
        return str(int(value))
    text = repr(float(value))
    return text.removesuffix(".0")
