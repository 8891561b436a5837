"""Many calls of distribution functions in one program, and whether what one of them gives are numbers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

import ulam


def model_of_calls(calls: Iterable[str], level: int) -> ulam.StanModel:
    """Call number `w`, of a real outcome `y` and parameters `a`, `b`, `c`: points are [w, y, a, b, c]."""
    terms = "".join(f"if (abs(w - {k}) < 0.5) target += {call};\n" for k, call in enumerate(calls))
    parameters = "real w; real y; real a; real b; real c;"
    return ulam.StanModel(f"parameters {{ {parameters} }} model {{ {terms} }}", opt_level=level)


def told_if_nan(model: ulam.StanModel, point: list[float]) -> str | None:
    """A value that is NaN, or finite with slopes that are: as text, else an empty one; None where it is rejected."""
    try:
        value, slopes = model.log_density_gradient(point, propto=False)
    except ulam.Rejection:
        return None
    is_wrong = np.isnan(value) or (np.isfinite(value) and np.isnan(slopes).any())
    return f"{value}, {slopes}" if is_wrong else ""
