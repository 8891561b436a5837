"""`ulam build`: a program as a shared library for C, and for all that works with BridgeStan's libraries."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.arguments import asked_level
from ulam.runtime.libraries.build import build
from ulam.runtime.named_text import NamedText
from ulam.runtime.terminal import escaped
from ulam.tools.exits import EXIT_OK


@dataclass(kw_only=True)
class BuildCommand:
    """The arguments of the command."""

    model: Path | NamedText
    output: Path | None
    target_cpu: str
    opt_level: str | None
    passes: str | None
    include_path: list[Path] | None
    cache: bool
    layouts: bool

    def run(self) -> int:
        """Builds, and prints the library's path."""
        path = build(
            self.model,
            self.output,
            target_cpu=self.target_cpu,
            opt_level=asked_level(self.opt_level),
            passes=self.passes,
            include_paths=self.include_path or (),
            cache=self.cache,
            layouts=self.layouts,
        )
        print(escaped(str(path)))
        return EXIT_OK
