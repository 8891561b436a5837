"""Coefficients that several indices choose: groups are those of the one with most coefficients, as data say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

DATA = """
data { int<lower=0> N, J, K; array[N] int<lower=1, upper=J> g; array[N] int<lower=1, upper=K> h; vector[N] x, z, y; }
parameters { vector[J] a, b; vector[K] e; real c; real<lower=0> s; }
"""
FORMS = {
    "both": "y ~ normal(a[g] + e[h], s);",
    "the_other_way_round": "y ~ normal(c + e[h] + a[g], s);",
    "slopes": "y ~ normal(c * z + a[g] + b[g] .* x + e[h], s);",
    "slopes_of_the_second": "for (n in 1 : N) y[n] ~ normal(c + e[h[n]] * z[n] + x[n] * b[g[n]] + a[g[n]], s);",
    "some_rows": "for (n in 1 : N) { real m = e[h[n]]; if (x[n] > 0) m += a[g[n]]; y[n] ~ normal(m, s); }",
}


@pytest.fixture(scope="module")
def programs() -> dict[str, ulam.StanProgram]:
    return {form: ulam.StanProgram(f"{DATA} model {{ {FORMS[form]} }}") for form in FORMS}


def data_of(n: int, first: int, second: int) -> dict[str, Any]:
    """Rows of two groupings; the last group of each has one."""
    rng = np.random.default_rng(n + first)
    g, h = rng.integers(1, first + 1, n), rng.integers(1, second + 1, n)
    if n:
        g[-1], h[-1] = first, second
    x, z, y = rng.normal(size=(3, n))
    return {"N": n, "J": first, "K": second, "g": g, "h": h, "x": x, "z": z, "y": y}


@pytest.mark.parametrize(("first", "second"), [(3, 90), (90, 3), (20, 20)])
@pytest.mark.parametrize("form", FORMS)
def test_groups_are_those_of_the_index_with_most_coefficients(
    programs: dict[str, ulam.StanProgram], form: str, first: int, second: int
) -> None:
    """Whichever the program names first."""
    values = data_of(1500, first, second)
    expected, found = (programs[form](values, opt_level=level) for level in (0, 3))
    for at in (0, 2 * first, 2 * first + second):
        assert_same_outcomes(expected, found, at=at)
    assert_same_products(expected, found, np.random.default_rng(2))
    (choice,) = [choice for choice in found.layout_choices() if choice.layout == "reduced rows"]
    assert choice.taken, choice.message
    most = max(first * (2 if "slopes" in form else 1), second)
    assert choice.figures["groups"] == (first if most > second else second)


def test_few_rows_and_indices_with_too_many_values_stay(programs: dict[str, ulam.StanProgram]) -> None:
    """Of one index there may be more than of shared coefficients, of two not."""
    cases = ((0, 2, 3, False), (1, 2, 3, False), (30000, 5000, 3, True), (9000, 5000, 5001, False))
    for n, first, second, is_taken in cases:
        values = data_of(n, first, second)
        expected, found = (programs["both"](values, opt_level=level) for level in (0, 3))
        assert_same_outcomes(expected, found, at=1)
        assert any(choice.taken for choice in found.layout_choices()) == is_taken
