"""Means that are changed segment by segment, and parts of rows that functions are handed: rows as others have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

DATA = """
data {
  int<lower=0> N, J;
  array[J] int first, last; array[N] int<lower=1, upper=5> g;
  vector[N] x, y; array[N] int<lower=0> c;
}
parameters { vector[J] a; vector[5] u; real b; real<lower=0> s; }
"""
CHANGED = {
    "added": "vector[N] mu = b * x; for (j in 1 : J) mu[first[j] : last[j]] += a[j];",
    "added_to_columns": """vector[N] mu = rep_vector(b, N); mu += u[g];
        for (j in 1 : J) mu[first[j] : last[j]] += a[j] * x[first[j] : last[j]];""",
    "element_by_element": "vector[N] mu = b * x; for (j in 1 : J) for (n in first[j] : last[j]) mu[n] += a[j] * x[n];",
    "scaled": "vector[N] mu = b * x; for (j in 1 : J) mu[first[j] : last[j]] = 2 * mu[first[j] : last[j]] - a[j];",
}
OUTCOMES = {"normal": "y ~ normal(mu, s);", "poisson": "c ~ poisson_log(mu); s ~ exponential(1);"}


@pytest.fixture(scope="module")
def programs() -> dict[tuple[str, str], ulam.StanProgram]:
    return {
        (mean, outcome): ulam.StanProgram(f"{DATA} model {{ a ~ normal(0, 1); {CHANGED[mean]} {OUTCOMES[outcome]} }}")
        for mean in CHANGED
        for outcome in OUTCOMES
    }


def segments(n: int, groups: int, kind: str) -> dict[str, Any]:
    """Segments that are the rows one after the other, some of them empty; or that leave rows out, or share some."""
    rng = np.random.default_rng(n + groups)
    ends = np.sort(rng.integers(0, n + 1, groups))
    if groups:
        ends[-1] = n
    first, last = np.concatenate([[1], ends[:-1] + 1])[:groups], ends
    if kind == "gaps" and groups:
        last = np.where(last - first > 2, last - 1, last)
    if kind == "overlaps" and groups:
        last = np.minimum(last + 2, n)
    return {
        "N": n, "J": groups, "first": first, "last": last, "g": rng.integers(1, 6, n), "x": rng.normal(size=n),
        "y": rng.normal(size=n), "c": rng.integers(0, 4, n),
    }  # fmt: skip


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("mean", CHANGED)
def test_each_row_is_changed_by_its_segments(
    programs: dict[tuple[str, str], ulam.StanProgram], mean: str, outcome: str
) -> None:
    """Where each row is in one segment it has an index; where some are in two or in none the nest stays."""
    program = programs[mean, outcome]
    for n, groups, kind in ((0, 3, ""), (1, 1, ""), (400, 9, ""), (400, 9, "gaps"), (400, 9, "overlaps")):
        values = segments(n, groups, kind)
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, groups, groups + 5):
            assert_same_outcomes(expected, found, at=at)
        assert_same_products(expected, found, np.random.default_rng(2))
        reduced = [choice for choice in found.layout_choices() if choice.layout == "reduced rows" and choice.taken]
        if outcome == "normal" and kind == "" and mean != "scaled":
            assert len(reduced) == (n > 1)
        elif kind:
            assert not reduced


def test_a_segment_out_of_range_is_told_as_at_level_0(programs: dict[tuple[str, str], ulam.StanProgram]) -> None:
    """By each form."""
    for (_, outcome), program in programs.items():
        values = segments(50, 4, "")
        values["last"][2] = 51
        texts: set[str] = set()
        for level in (0, 3):
            with pytest.raises(ulam.UlamError) as told:
                program(values, opt_level=level).log_density(np.zeros(11))
            texts.add(str(told.value))
        assert len(texts) == 1, outcome


PARTS = """
functions {
  real part_lpmf(array[] int rows, int start, int end, data vector y, data matrix X, vector b, real a, real s,
                 data array[] int g, data vector z, vector u) {
    real total = 0;
    int n = end - start + 1;
    vector[n] mu = rep_vector(0, n);
    mu += a;
    for (k in 1 : n) {
      int at = k + start - 1;
      mu[k] += u[g[at]] * z[at];
    }
    HOW
    return total;
  }
}
data { int<lower=0> N, K; matrix[N, K] X; array[N] int<lower=1, upper=5> g, rows; vector[N] y, z; }
parameters { vector[K] b; vector[5] u; real a; real<lower=0> s; }
model { target += reduce_sum(part_lpmf, rows, 1, y, X, b, a, s, g, z, u); u ~ normal(0, 1); }
"""
HOW = {
    "slices": "total += normal_id_glm_lpdf(y[start : end] | X[start : end], mu, b, s);",
    "loop": "for (k in 1 : n) { int at = k + start - 1; total += normal_lpdf(y[at] | mu[k] + X[at] * b, s); }",
    "elements": "for (k in 1 : n) { int at = k + start - 1; total += normal_lpdf(y[at] | mu[k], s); }",
}


@pytest.mark.parametrize("how", HOW)
def test_functions_that_are_handed_parts_of_rows_have_their_layouts(how: str) -> None:
    """As brms writes them for reduce_sum."""
    rng = np.random.default_rng(3)
    for n in (0, 1, 300):
        g = rng.integers(1, 6, n)
        values = {
            "N": n, "K": 3, "X": rng.normal(size=(n, 3)), "g": g, "rows": g, "y": rng.normal(size=n),
            "z": rng.normal(size=n),
        }  # fmt: skip
        program = PARTS.replace("HOW", HOW[how])
        expected, found = (ulam.StanModel(program, values, opt_level=level) for level in (0, 3))
        for at in (0, 4, *([9] if n else [])):  # without rows a scale that overflows has a slope of 0 times infinity
            assert_same_outcomes(expected, found, at=at)
        assert any(choice.taken for choice in found.layout_choices()) == (n == 300)


GLM = """
data {
  int<lower=0> N, J, K; matrix[N, K] X; array[J] int first, last;
  array[N] int<lower=0, upper=1> z; array[N] int<lower=0> c; array[N] int<lower=1, upper=3> r;
}
parameters { vector[J] a; vector[K] b; ordered[2] cut; }
model { a ~ normal(0, 1); b ~ normal(0, 1); for (j in 1 : J) HOW }
"""
SLICES = {
    "bernoulli": "z[first[j] : last[j]] ~ bernoulli_logit_glm(X[first[j] : last[j]], a[j], b);",
    "poisson": "c[first[j] : last[j]] ~ poisson_log_glm(X[first[j] : last[j]], a[j], b);",
    "ordered": "r[first[j] : last[j]] ~ ordered_logistic_glm(X[first[j] : last[j]], b, cut);",
    "product": "c[first[j] : last[j]] ~ poisson_log(a[j] + X[first[j] : last[j]] * b);",
}


@pytest.mark.parametrize("how", SLICES)
def test_slices_of_designs_have_unique_rows(how: str) -> None:
    """Where there are few kinds of them; segments that share rows, or leave some out, too."""
    program = ulam.StanProgram(GLM.replace("HOW", SLICES[how]))
    rng = np.random.default_rng(5)
    cases = ((0, 2, 2, ""), (1, 2, 2, ""), (900, 3, 2, ""), (900, 0, 2, "gaps"), (900, 9, 0, "overlaps"))
    for n, k, kinds, kind in cases:
        values = {name: value for name, value in segments(n, 4, kind).items() if name not in ("g", "x", "y")}
        design = rng.integers(0, kinds, (n, k)) if kinds else rng.normal(size=(n, k))
        values |= {"K": k, "X": design.astype(float), "z": rng.integers(0, 2, n), "r": rng.integers(1, 4, n)}
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        for at in (0, 4, 4 + k):
            assert_same_outcomes(expected, found, at=at)
        assert_same_products(expected, found, rng)
        if kind == "":
            assert any(choice.taken for choice in found.layout_choices()) == (n > 1)
        if not kinds:
            assert not any(choice.taken for choice in found.layout_choices())


@pytest.mark.parametrize(("density", "copies", "is_taken"), [("poisson", 3, True), ("poisson", 2, False)])
def test_slices_need_fewer_kinds_than_rows_of_their_own(density: str, copies: int, is_taken: bool) -> None:
    """Two fifths of the rows: the nest takes half of the time for a row."""
    rng = np.random.default_rng(7)
    values = {"N": 600, "J": 4, "K": 3, "first": [1, 151, 301, 451], "last": [150, 300, 450, 600]}
    kinds = rng.normal(size=(4, 150 // copies, 3))
    values |= {"X": np.repeat(kinds, copies, axis=1).reshape(600, 3), "c": [2] * 600, "z": [0] * 600, "r": [1] * 600}
    model = ulam.StanModel(GLM.replace("HOW", SLICES[density]), values)
    assert [c.taken for c in model.layout_choices() if c.layout == "unique rows"] == [is_taken]
