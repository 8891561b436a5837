"""`ulam cmdstan`: a program with CmdStan's command line. The exit status is 0 or 1, as CmdStan's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ulam.runtime.arguments import asked_level
from ulam.runtime.named_text import NamedText
from ulam.tools.cmdstan.command import run
from ulam.tools.exits import UsageError


@dataclass(kw_only=True)
class CmdStanCommand:
    """The arguments of the command."""

    model: Path | NamedText
    words: list[str] | None
    include_path: list[Path] | None
    opt_level: str | None
    passes: str | None
    cache: bool
    layouts: bool

    def __post_init__(self) -> None:
        for word in self.words or []:
            if word.startswith("-"):  # which none of CmdStan's does
                raise UsageError(f"no such option: {word}; CmdStan's arguments are words: ulam cmdstan MODEL help")

    def run(self) -> int:
        options = {
            "include_paths": tuple(self.include_path or ()), "opt_level": asked_level(self.opt_level),
            "passes": self.passes, "cache": self.cache,
            "layouts": self.layouts,
        }  # fmt: skip
        name = f"ulam cmdstan {self.model}"
        return run(self.model, self.words or [], command=name, **options)
