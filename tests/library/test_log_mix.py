"""Mixtures of two log densities of which one is not a number, or infinite, at all levels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAMS = {
    "one": "target += log_mix(p, a[1] + shift, b[1] + shift);",
    "rows": "for (n in 1 : N) target += log_mix(p, a[n] + shift, b[n] + shift);",
    "products": "for (n in 1 : N) target += log_mix(0.25, a[n] + shift, b[n] + shift);",
}
inf, nan = math.inf, math.nan


@pytest.mark.parametrize("level", [0, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_is_not_a_number_stays_so(name: str, level: int) -> None:
    program = "data { int N; vector[N] a, b; real p; } parameters { real shift; } model { " + PROGRAMS[name] + " }"

    def density(a: float, b: float) -> float:
        data: dict[str, Any] = {"N": 3, "a": np.full(3, a), "b": np.full(3, b), "p": 0.25}
        return ulam.StanModel(program, data, opt_level=level).log_density(np.array([0.5]))

    for other in (0.0, -inf, inf, nan):
        assert math.isnan(density(nan, other)), other
        assert math.isnan(density(other, nan)), other
    assert density(-inf, -inf) == -inf
    assert density(inf, 0.0) == density(0.0, inf) == inf
    times = 1 if name == "one" else 3
    assert density(-inf, 0.0) == pytest.approx(times * (math.log(0.75) + 0.5))
    assert density(0.0, -inf) == pytest.approx(times * (math.log(0.25) + 0.5))
