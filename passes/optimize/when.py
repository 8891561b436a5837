"""The option `when` of passes that copy code: always, or only where it is useful (as the levels ask for)."""

from __future__ import annotations

USEFUL = "useful"
_CHOICES = ("always", USEFUL)


def check_when(when: str) -> None:
    """Raises ValueError unless `when` is one of the choices."""
    if when not in _CHOICES:
        raise ValueError(f"when is {' or '.join(_CHOICES)}, not {when}")
