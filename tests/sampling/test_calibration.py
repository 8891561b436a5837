"""Simulation-based calibration: the band of the ECDF has its coverage, and a share of the benchmark's simulations."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


@pytest.fixture(scope="module")
def sbc() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).parents[2] / "benchmarks")
        yield importlib.import_module("sbc")


def test_band_is_left_as_often_as_it_says(sbc: ModuleType) -> None:
    """Of uniform ranks; 4,000 samples know the share of 0.05 to about 0.0035."""
    _, lower, upper = sbc.band(40, 21, 0.05)
    generator = np.random.default_rng(3)
    below = np.array([np.cumsum(np.bincount(generator.integers(0, 21, 40), minlength=21))[:-1] for _ in range(4000)])
    left = ((below < lower) | (below > upper)).any(axis=1).mean()
    assert 0.03 < left < 0.065 and left == pytest.approx(1 - sbc.coverage(40, *sbc.band(40, 21, 0.05)), abs=0.015)


def test_ranks_that_are_not_uniform(sbc: ModuleType) -> None:
    generator = np.random.default_rng(4)
    uniform = generator.integers(0, 101, 200)
    assert sbc.outside(uniform.tolist(), 101) == 0
    for wrong in (
        100 * generator.beta(0.5, 0.5, size=200),  # draws that vary too little
        100 * generator.beta(2, 2, size=200),  # and too much
        100 * generator.beta(1, 1.6, size=200),  # that are too large
    ):
        assert sbc.outside(wrong.astype(int).tolist(), 101) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["simplex", "correlation_matrix", "prediction"])
def test_calibration(sbc: ModuleType, name: str) -> None:
    """Another sixty simulations than the benchmark's."""
    model = next(each for each in sbc.MODELS if each.name == name)
    found = [sbc.ranks(model, number) for number in range(10_000, 10_060)]
    for quantity in found[0]:
        assert sbc.outside([each[quantity] for each in found], sbc.RANKS + 1) == 0, quantity
