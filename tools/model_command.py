"""What the commands that run a model have in common: the model, and the point where they begin."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ulam.runtime.arguments import asked_level
from ulam.runtime.data import INITIAL_VALUES, SPECIAL_NUMBERS, checked_text, file_text, read_data
from ulam.runtime.errors import DataError
from ulam.runtime.model import StanModel
from ulam.runtime.named_text import NamedText
from ulam.runtime.optimizers.progress import DEFAULT_REFRESH
from ulam.tools.exits import UsageError

Text = str | NamedText
"""An option's own text, or what standard input had."""

Vector = npt.NDArray[np.float64]


@dataclass(kw_only=True)
class ModelCommand:
    """The arguments that say which model is meant, and how it is compiled."""

    model: Path | NamedText
    data: Text | None
    seed: int
    opt_level: str | None
    passes: str | None
    include_path: list[Path] | None
    cache: bool = False
    layouts: bool = True

    def loaded(self, **further: Any) -> StanModel:
        """The model; `further` arguments are those of `StanModel`, and go before those of the command."""
        arguments = {
            "source": self.model, "data": self.data, "seed": self.seed, "opt_level": asked_level(self.opt_level),
            "passes": self.passes, "include_paths": tuple(self.include_path or ()), "cache": self.cache,
            "layouts": self.layouts,
        }  # fmt: skip
        return StanModel(**{**arguments, **further})


@dataclass(kw_only=True)
class PointCommand(ModelCommand):
    """The arguments that say where: constrained or unconstrained values. What is wrong with them is said at once."""

    init: Text | None
    unconstrained: Text | None
    points: list[Vector] = field(init=False, default_factory=list[Vector])
    """The unconstrained points that were given."""

    def __post_init__(self) -> None:
        if self.init is not None and self.unconstrained is not None:
            raise UsageError("give either --unconstrained or --init")
        if self.unconstrained is not None:
            self.points = read_points(self.unconstrained)
        elif isinstance(initial := initial_values(self.init), str | NamedText):
            read_data(initial, INITIAL_VALUES)

    def initial(self) -> Vector | Text | float | None:
        """The argument `init` of the functions that look for a point. One point only."""
        if self.unconstrained is None:
            return initial_values(self.init)
        if len(self.points) != 1:
            raise UsageError(f"--unconstrained: give one point, found {len(self.points)}")
        return self.points[0]

    def checked_points(self, size: int) -> list[Vector]:
        """The unconstrained points, of the size that the model has."""
        for point in self.points:
            check_size(point, size)
        return self.points


def check_size(point: Vector, size: int) -> None:
    """Whether a point is one of the model."""
    if len(point) != size:
        raise DataError([f"--unconstrained: the model has {size} unconstrained parameters, found {len(point)}"])


def read_points(source: Text) -> list[Vector]:
    """Points from JSON text or a file: `[...]`, `[[...], ...]`, or CmdStan's `{"params_r": ...}` around one of them.

    Numbers with commas between them are one point.
    """
    if isinstance(source, NamedText):
        name, text = source.name, checked_text(source.text, source.name)
    else:
        name, text = "--unconstrained", source
    if (numbers := _numbers(text)) is not None:
        return [np.array(numbers)]
    if not isinstance(source, NamedText) and text.lstrip()[:1] not in ("[", "{"):
        name, text = text, file_text(text, "unconstrained parameters")
    try:
        values = json.loads(text)
    except ValueError as error:
        raise DataError([f"{name}: not valid JSON: {error}"]) from None
    except RecursionError:
        raise DataError([f"{name}: not valid JSON: nested too deeply"]) from None
    if isinstance(values, dict):
        if "params_r" not in values:
            raise DataError([f"{name}: expected an array of unconstrained parameters, or an object with 'params_r'"])
        values = values["params_r"]
    try:
        array = np.array(_with_numbers(values), dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise DataError([f"{name}: expected an array of numbers, or an array of such arrays"]) from None
    if array.ndim not in (1, 2):
        raise DataError([f"{name}: expected an array of numbers, or an array of such arrays"])
    return list(np.atleast_2d(array))


def _with_numbers(value: Any) -> Any:
    """The value with numbers for the strings that stand for them in Stan's data format."""
    if isinstance(value, list):
        return [_with_numbers(entry) for entry in value]
    if isinstance(value, bool):
        raise TypeError("a boolean is no number")
    return SPECIAL_NUMBERS[value] if isinstance(value, str) and value in SPECIAL_NUMBERS else float(value)


def _numbers(text: str) -> list[float] | None:
    """Numbers with commas between them; None if it is anything else."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return None


def initial_values(given: Text | None) -> Text | float | None:
    """A radius, or a file or JSON text with constrained values."""
    try:
        return float(given) if isinstance(given, str) else given
    except ValueError:
        return given


def shown_refresh(given: int | None) -> int:
    """Progress is shown by default where somebody sees it: on a terminal."""
    if given is None:
        return DEFAULT_REFRESH if sys.stderr.isatty() else 0
    return given
