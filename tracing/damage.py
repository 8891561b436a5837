"""What is raised where a saved trace does not have the contents that a trace has."""

from __future__ import annotations

from ulam.runtime.errors import UlamError


class DamagedTrace(UlamError):
    """A file that is no saved trace, or that does not have the contents that it was written with."""
