"""What passes raise when they cannot go on."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import LocationAttr


class NotSupportedError(Exception):
    """The program uses something that a pass does not know yet. `location` is where, if known.

    `source` is the program's text (`ulam.frontend.source.Source`), which who runs the passes adds.
    """

    source: Any = None

    def __init__(self, message: str, location: LocationAttr | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.location = location


class WrongFormError(Exception):
    """A pass was given a module that is not in the form that it works on; the message names the pass that makes it."""

    def __init__(self, pass_name: str, found: str, first: str) -> None:
        super().__init__(f"{pass_name}: {found}; run {first} first")


class OwnPassError(Exception):
    """A pass that is none of ours failed, or left a module that breaks a rule; `__cause__` is what was raised."""


class LoweringError(Exception):
    """A pass failed, which is a mistake of ours; `location` is the place in the program, `__cause__` what it raised."""

    def __init__(self, cause: Exception, location: LocationAttr | None) -> None:
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.location = location
