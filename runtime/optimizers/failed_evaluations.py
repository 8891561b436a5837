"""Evaluations of the log density that failed, counted by the statement that failed and its reason.

Messages of one statement differ in the numbers they show. They are counted together, and the text shows the range of
each number: `normal_lpdf: sigma is -1.7 ... -0.2, but must be positive!`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ulam.runtime.errors import ProgramError, value_text

# A number that stands alone: not part of a name, a file name or a version.
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|inf|nan)(?![\w])(?!\.\w)")

_Key = tuple[str, int, int, str]


@dataclass
class FailureReason:
    """A statement (or a property of the density) that made evaluations fail, and how often it did.

    `file` is empty and `line` 0 where no statement of the program is to blame. `example` is the first message.
    """

    file: str
    line: int
    column: int
    skeleton: str
    example: str
    count: int
    numbers: list[tuple[float, float]]

    @property
    def text(self) -> str:
        """The message, with the range of each number that varied, and its place."""
        text = self.ranges_text
        where = f" (in '{self.file}', line {self.line}, column {self.column})" if self.line > 0 else ""
        return f"{text}{where}"

    @property
    def ranges_text(self) -> str:
        """The message with the range of each number that varied."""
        ranges = iter(self.numbers)
        return re.sub("\0", lambda _: _range_text(*next(ranges)), self.skeleton)

    def merge(self, other: FailureReason) -> None:
        """Adds the counts of the same reason."""
        self.count += other.count
        pairs = zip(self.numbers, other.numbers, strict=True)
        self.numbers = [(_lower(low, least), _upper(high, most)) for (low, high), (least, most) in pairs]


class FailureTally:
    """Counts failed evaluations. `last` is the message of the last one; all texts begin with `prefix`."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix
        self._reasons: dict[_Key, FailureReason] = {}
        self.count = 0
        self.last = ""

    def __iter__(self) -> Iterator[FailureReason]:
        """The reasons, the most frequent first."""
        return iter(self.reasons)

    @property
    def reasons(self) -> list[FailureReason]:
        return sorted(self._reasons.values(), key=lambda reason: -reason.count)

    def add(self, text: str, file: str = "", line: int = 0, column: int = 0, message: str = "") -> None:
        """Counts a failure with this text. `message` is the text with its place, if it has one."""
        text, message = self.prefix + text, self.prefix + (message or text)
        skeleton = NUMBER.sub("\0", text)
        numbers = [(float(found), float(found)) for found in NUMBER.findall(text)]
        self._count(FailureReason(file, line, column, skeleton, message, 1, numbers))

    def _count(self, new: FailureReason) -> None:
        known = self._reasons.setdefault((new.file, new.line, new.column, new.skeleton), new)
        if known is not new:
            known.merge(new)
        self.count += 1
        self.last = new.example

    def add_error(self, error: ProgramError) -> None:
        """Counts a check of the program that failed."""
        function = error.function
        text = error.text
        if function and not text.startswith(f"{function}:"):
            text = f"{function}: {text}"
        self.add(text, error.file, error.line, error.column, str(error))

    def add_value(self, value: float) -> None:
        """Counts a log density that is not finite."""
        self.add(f"the log density is {VALUE_NAMES[value_text_of(value)]}")

    def add_statement(self, statement: str, value: float, file: str, line: int, column: int) -> None:
        """Counts a log density that is not finite after a statement, which is shown."""
        # No numbers of the statement itself are counted: each has its place.
        what = f"the log density is {VALUE_NAMES[value_text_of(value)]} after "
        new = FailureReason(file, line, column, f"{self.prefix}{what}`{statement}`", "", 1, [])
        new.example = new.text
        self._count(new)

    def add_gradient(self, gradient: npt.NDArray[np.float64], names: Sequence[str]) -> None:
        """Counts a gradient with elements that are not finite; names the first of them."""
        wrong = np.flatnonzero(~np.isfinite(gradient))
        first = int(wrong[0])
        value = VALUE_NAMES[value_text_of(float(gradient[first]))]
        more = f" (and for {wrong.size - 1} more)" if wrong.size > 1 else ""
        self.add(f"the gradient is not finite: {value} for unconstrained '{names[first]}'{more}")

    def update(self, other: FailureTally) -> None:
        """Adds the counts of `other`."""
        for key, reason in other._reasons.items():
            mine = self._reasons.get(key)
            if mine is None:
                self._reasons[key] = replace(reason)
            else:
                mine.merge(reason)
        if other.count:
            self.count += other.count
            self.last = other.last

    def table(self, total: int, limit: int = 10) -> str:
        """A line for each reason: how often of `total`, and why; at most `limit` of them."""
        reasons = self.reasons
        width = len(str(total))
        lines = [f"  {reason.count:>{width}} of {total}: {reason.text}" for reason in reasons[:limit]]
        if len(reasons) > limit:
            rest = sum(reason.count for reason in reasons[limit:])
            lines.append(f"  {rest:>{width}} of {total}: {len(reasons) - limit} other reasons")
        return "\n".join(lines)


# Words instead of numbers, so that the kinds are counted apart.
VALUE_NAMES = {"inf": "+infinity", "-inf": "-infinity", "nan": "not a number (NaN)"}


def value_text_of(value: float) -> str:
    """`inf`, `-inf` or `nan`, the keys of `VALUE_NAMES`."""
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _lower(low: float, number: float) -> float:
    return low if low <= number or math.isnan(number) else number


def _upper(high: float, number: float) -> float:
    return high if high >= number or math.isnan(number) else number


def _range_text(low: float, high: float) -> str:
    if low == high or math.isnan(low):
        return _short(low)
    return f"{_short(low)} ... {_short(high)}"


def _short(value: float) -> str:
    return value_text(value) if math.isfinite(value) and value == int(value) and abs(value) < 1e15 else f"{value:.6g}"
