"""Pareto-smoothed importance weights: those of arviz-stats, and what has no fit."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ulam.runtime.sampling.psis import fit_generalized_pareto, smoothed_weights, tail_length

TABLE = json.loads((Path(__file__).parents[1] / "reference" / "psis.json").read_text())


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["kind"])
def test_weights_of_arviz_stats(case: dict[str, Any]) -> None:
    found = smoothed_weights(np.array(case["log_ratios"]))
    assert found.khat == pytest.approx(case["khat"], rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(found.log_weights, case["log_weights"], rtol=1e-10, atol=1e-10)
    assert np.exp(found.log_weights).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("shape", [-0.3, 0.2, 0.5, 1.0])
def test_shape_of_a_pareto_distribution(shape: float) -> None:
    """Of many quantiles the fit finds shape and scale again; the prior's ten observations at 0.5 count little."""
    probabilities = (np.arange(20_000) + 0.5) / 20_000
    excess = 3 * ((1 - probabilities) ** -shape - 1) / shape
    found, scale = fit_generalized_pareto(excess)
    assert found == pytest.approx(shape, abs=0.02) and scale == pytest.approx(3, rel=0.02)


def test_tail_length() -> None:
    assert [tail_length(size) for size in (20, 100, 225, 226, 1000, 10_000)] == [4, 20, 45, 45, 94, 300]


def test_order_and_offset_do_not_matter() -> None:
    ratios = 2 * np.random.default_rng(3).normal(size=300)
    order = np.random.default_rng(4).permutation(300)
    first, moved = smoothed_weights(ratios), smoothed_weights(ratios[order] - 1e4)
    assert moved.khat == pytest.approx(first.khat, abs=1e-8)
    np.testing.assert_allclose(moved.log_weights, first.log_weights[order], atol=1e-8)


def test_without_a_fit() -> None:
    """Equal ratios are exact; of few draws, and of few that have a weight, there is no k-hat."""
    equal = smoothed_weights(np.full(200, -7.5))
    assert equal.khat == -math.inf
    np.testing.assert_allclose(equal.log_weights, -math.log(200), rtol=1e-12)
    few = smoothed_weights(np.array([0.0, math.log(3), -math.inf, math.nan]))
    assert math.isnan(few.khat)
    np.testing.assert_allclose(np.exp(few.log_weights), [0.25, 0.75, 0, 0], atol=1e-15)
    sparse = smoothed_weights(np.concatenate([np.full(95, -np.inf), np.arange(5.0)]))
    assert math.isnan(sparse.khat) and np.exp(sparse.log_weights[:95]).sum() == 0
    with pytest.raises(ValueError, match="no importance ratio is finite"):
        smoothed_weights(np.full(100, -np.inf))


def test_draws_that_are_rejected_have_no_weight() -> None:
    ratios = np.random.default_rng(5).normal(size=400)
    ratios[::4] = -np.inf
    ratios[1] = np.nan
    found = smoothed_weights(ratios)
    weights = np.exp(found.log_weights)
    assert math.isfinite(found.khat) and weights.sum() == pytest.approx(1) and not weights[::4].any()
    assert weights[1] == 0
