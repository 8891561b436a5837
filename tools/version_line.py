"""What `ulam --version` prints, without all that other commands import."""

from __future__ import annotations


def version_line() -> str:
    """The name and the version."""
    from ulam import __version__

    return f"ulam {__version__}"
