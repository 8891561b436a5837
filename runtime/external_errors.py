"""What external functions raise, until somebody reports that the call failed: messages travel through C, exceptions do
not."""

from __future__ import annotations

from collections import OrderedDict

_raised: OrderedDict[str, BaseException] = OrderedDict()
KEPT_EXCEPTIONS = 16


def note_exception(message: str, error: BaseException) -> None:
    """An external function raised this; `message` is what the context of its call will have."""
    _raised[message] = error
    while len(_raised) > KEPT_EXCEPTIONS:
        _raised.popitem(last=False)


def cause_of(message: str) -> BaseException | None:
    """The exception of an external function behind the message of a call that failed; forgotten here."""
    return _raised.pop(message, None) if _raised else None
