"""`ulam.build`: called, it builds a library of a program; `ulam.build.Program` is a program that is built in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ulam.runtime.libraries.build import build as build_library

if TYPE_CHECKING:
    from ulam.runtime.building.program import BuiltProgram


class Build:
    """Builds the library of a program, whatever its data, and returns its path; `build.Program` builds programs."""

    __call__ = staticmethod(build_library)

    @property
    def Program(self) -> type[BuiltProgram]:
        """A program that is built in Python: docs/building.md."""
        from ulam.runtime.building.program import BuiltProgram

        return BuiltProgram


build = Build()
