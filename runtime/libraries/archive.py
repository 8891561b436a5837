"""The C runtime as an archive for linkers, and the headers for C programs; both are installed with the package."""

from __future__ import annotations

from pathlib import Path

from ulam.runtime.libraries.linkers import BuildError

ARCHIVE = "libulam.a"


def archive_path() -> Path:
    """The C runtime, for libraries that need no Python; setup.py says what is in it. Raises BuildError."""
    import ulam.runtime

    for folder in ulam.runtime.__path__:
        if (path := Path(folder, ARCHIVE)).exists():
            return path
    raise BuildError(f"{ARCHIVE} is not there: on Linux it is built when the package is installed")


def get_include() -> str:
    """The folder of the headers `bridgestan.h` and `ulam.h`, for C programs that use built libraries."""
    import ulam.runtime

    return str(Path(ulam.runtime.__path__[0], "c", "include"))
