"""`ulam log-density`: the log density and gradient at given unconstrained parameters, as JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from ulam.runtime.errors import DataError
from ulam.runtime.model import StanModel
from ulam.runtime.results import log_density_json
from ulam.tools.exits import EXIT_OK


def print_log_density(
    model_file: Path, params: str, data: str | None, *, jacobian: bool, propto: bool, **options: Any
) -> int:
    model = StanModel(model_file, data, **options)
    for point in read_points(params, model.param_unc_num()):
        value, gradient = model.log_density_gradient(point, propto=propto, jacobian=jacobian)
        print(log_density_json(value, gradient.tolist()))
    return EXIT_OK


def read_points(source: str, size: int, option: str = "--params") -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """Points from JSON text or a file: `[...]`, `[[...], ...]`, or CmdStan's `{"params_r": ...}` around one of them.

    Numbers with commas between them are one point.
    """
    name = option
    text = source
    if (numbers := _numbers(source)) is not None:
        text = json.dumps(numbers)
    elif source.lstrip()[:1] not in ("[", "{"):
        if not os.path.isfile(source):
            raise FileNotFoundError(f"parameter file '{source}' does not exist")
        name, text = source, Path(source).read_text(encoding="utf-8")
    try:
        values = json.loads(text)
    except ValueError as error:
        raise DataError([f"{name}: not valid JSON: {error}"]) from None
    if isinstance(values, dict):
        if "params_r" not in values:
            raise DataError([f"{name}: expected an array of unconstrained parameters, or an object with 'params_r'"])
        values = values["params_r"]
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError([f"{name}: expected an array of numbers, or an array of such arrays"]) from None
    if array.ndim == 1:
        array = array[np.newaxis]
    if array.ndim != 2 or array.shape[1] != size:
        found = array.shape[-1] if array.ndim else "a number"
        raise DataError([f"{name}: the model has {size} unconstrained parameters, found {found}"])
    return list(array)


def _numbers(text: str) -> list[float] | None:
    """Numbers with commas between them; None if it is anything else."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        return None
