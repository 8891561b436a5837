"""What was read before, with the name that messages call it by."""

from __future__ import annotations

from ulam.library.records import record


@record(frozen=True)
class NamedText:
    """A program, data or a point that was read from standard input."""

    text: str
    name: str

    def __str__(self) -> str:
        return self.name
