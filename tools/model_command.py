"""What the commands that run a model have in common."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ulam.runtime.model import StanModel


@dataclass(kw_only=True)
class ModelCommand:
    """The arguments that say which model is meant, and how it is compiled."""

    model: Path
    data: str | None
    seed: int
    opt_level: int
    include_paths: tuple[Path, ...]
    cache: bool

    def loaded(self, **further: Any) -> StanModel:
        """The model; `further` arguments are those of `StanModel`."""
        return StanModel(
            self.model,
            self.data,
            seed=self.seed,
            opt_level=self.opt_level,
            include_paths=self.include_paths,
            cache=self.cache,
            **further,
        )
