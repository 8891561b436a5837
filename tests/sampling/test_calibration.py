"""Simulation-based calibration: the band of the ECDF has its coverage, and a share of the benchmark's simulations."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ulam.runtime.studies.uniform_ranks import band, coverage, outside

RISK = 1e-3


@pytest.fixture(scope="module")
def sbc() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        yield importlib.import_module("sbc")


def test_band_is_left_as_often_as_it_says() -> None:
    """Of uniform ranks; 4,000 samples know the share of 0.05 to about 0.0035."""
    _, lower, upper = band(40, 21, 0.05)
    generator = np.random.default_rng(3)
    below = np.array([np.cumsum(np.bincount(generator.integers(0, 21, 40), minlength=21))[:-1] for _ in range(4000)])
    left = ((below < lower) | (below > upper)).any(axis=1).mean()
    assert 0.03 < left < 0.065 and left == pytest.approx(1 - coverage(40, *band(40, 21, 0.05)), abs=0.015)


def test_ranks_that_are_not_uniform() -> None:
    generator = np.random.default_rng(4)
    uniform = generator.integers(0, 101, 200)
    assert outside(uniform.tolist(), 101, RISK) == 0
    for wrong in (
        100 * generator.beta(0.5, 0.5, size=200),  # draws that vary too little
        100 * generator.beta(2, 2, size=200),  # and too much
        100 * generator.beta(1, 1.6, size=200),  # that are too large
    ):
        assert outside(wrong.astype(int).tolist(), 101, RISK) > 0


def test_bands_of_many_levels_are_looked_at_in_some_places() -> None:
    generator = np.random.default_rng(5)
    points, lower, upper = band(300, 4001, 0.01)
    assert len(points) <= 200 and (lower <= upper).all()
    assert outside(generator.integers(0, 4001, 300), 4001, 0.01) == 0
    assert outside(generator.integers(0, 3000, 300), 4001, 0.01) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simplex", "correlation_matrix", "prediction"])
def test_calibration(sbc: ModuleType, name: str) -> None:
    """Sixty simulations with another seed than the benchmark's."""
    model = next(each for each in sbc.MODELS if each.name == name)
    found = sbc.calibrated(model, 60, 10_000, None)
    assert found.ok, str(found)
