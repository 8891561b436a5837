"""Designs that programs put together of data, by columns or row by row, and rows that are stored one behind the other:

pytestmark = pytest.mark.usefixtures("quick_code")
the same density as at level 0, and the layouts that a matrix of data has.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from level_outcomes import assert_same_outcomes, assert_same_products

import ulam

DATA = """
data {
  int<lower=0> N, K;
  matrix[N, K] X; array[N] vector[K] v; array[N] row_vector[K] r; array[N, K] real e;
  vector[N] y; array[N] int<lower=0, upper=1> z;
}
parameters { real a; vector[K] b; real c; real<lower=0> s; vector[K + 1] w; }
"""
MEANS = {
    "columns": "matrix[N, K] Z; for (k in 1 : K) Z[, k] = log1p(square(X[, k])); mu = c + Z * b;",
    "column_of_the_last": """matrix[N, K] Z = rep_matrix(1, N, K); for (k in 2 : K) Z[, k] = Z[, k - 1] .* X[, 1];
        mu = c + Z * b;""",
    "in_front": "for (n in 1 : N) mu[n] = append_col(1, X[n]) * w;",
    "vectors": "for (n in 1 : N) mu[n] = c + dot_product(v[n], b);",
    "row_vectors": "for (n in 1 : N) mu[n] = r[n] * b + c;",
    "elements": "for (n in 1 : N) { mu[n] = c; for (k in 1 : K) mu[n] += e[n, k] * b[k]; }",
}
OUTCOMES = {"normal": "y ~ normal(mu, s);", "bernoulli": "z ~ bernoulli_logit(mu); s ~ exponential(1);"}


@pytest.fixture(scope="module")
def programs() -> dict[tuple[str, str], ulam.StanProgram]:
    return {
        (mean, outcome): ulam.StanProgram(f"{DATA} model {{ vector[N] mu; {MEANS[mean]} {OUTCOMES[outcome]} }}")
        for mean in MEANS
        for outcome in OUTCOMES
    }


def data_of(n: int, k: int, *, blocks: bool = False) -> dict[str, Any]:
    """Any rows, or such of indicators."""
    rng = np.random.default_rng(n + k)
    x = np.eye(k)[rng.integers(0, k, n)] if blocks else rng.normal(size=(n, k))
    values = {"N": n, "K": k, "y": rng.normal(size=n), "z": rng.integers(0, 2, n)}
    return values | dict.fromkeys(("X", "v", "r", "e"), x.reshape(n, k))


def taken(model: ulam.StanModel) -> set[str]:
    """The layouts that a model has."""
    return {choice.layout for choice in model.layout_choices() if choice.taken}


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("mean", MEANS)
def test_they_have_the_density_of_level_0_and_the_layouts_of_a_matrix(
    programs: dict[tuple[str, str], ulam.StanProgram], mean: str, outcome: str
) -> None:
    """Rows and columns in any number, with coefficients that are not finite, too."""
    program = programs[mean, outcome]
    for n, k in ((0, 3), (1, 1), (5, 0), (63, 5), (65, 4), (300, 12)):
        values = data_of(n, k)
        expected, found = (program(values, opt_level=level) for level in (0, 3))
        assert_same_outcomes(expected, found, at=min(1, k))
        assert_same_outcomes(expected, found, at=k + 1)
        assert_same_outcomes(expected, found, at=k + 3)
    assert_same_products(expected, found, np.random.default_rng(1))
    assert taken(found) == ({"reduced rows"} if outcome == "normal" else set())


@pytest.mark.parametrize("mean", ["vectors", "row_vectors", "elements"])
def test_zeros_of_rows_one_behind_the_other_are_left_out(
    programs: dict[tuple[str, str], ulam.StanProgram], mean: str
) -> None:
    """As those of a matrix."""
    values = data_of(400, 40, blocks=True)
    values["z"][:] = np.arange(400) % 2
    expected, found = (programs[mean, "bernoulli"](values, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=3)
    assert "sparse columns" in taken(found) or "unique rows" in taken(found)
    values = data_of(400, 40, blocks=True) | {"v": (x := data_of(400, 40)["v"]), "r": x, "e": x}
    expected, found = (programs[mean, "bernoulli"](values, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=3)
    assert taken(found) == set()


def test_a_number_that_is_none_travels_as_without(programs: dict[tuple[str, str], ulam.StanProgram]) -> None:
    """In a design, and in an outcome."""
    for mean in MEANS:
        for name, at in (("X", (70, 0)), ("y", (70,))):
            values = {key: np.array(value) for key, value in data_of(100, 5).items()}
            for each in ("X", "v", "r", "e") if name == "X" else ("y",):
                values[each][at] = np.nan
            expected, found = (programs[mean, "normal"](values, opt_level=level) for level in (0, 3))
            assert_same_outcomes(expected, found, at=2)


WRITTEN_OVER = """
data { int<lower=0> N; vector[N] x; array[N] int at; int<lower=0, upper=1> f; }
parameters { real a; real b; }
model {
  vector[N] v = 2 * x;
  vector[N] w;
  for (n in 1 : N) w[n] = exp(x[n]);
  target += normal_lpdf(a | v, 1) + a * sum(w);
  for (n in 1 : N) v[at[n]] = w[n] - v[n];
  if (f) v[1] = b;
  target += normal_lpdf(b | v, 1);
  for (n in 1 : N) w[n] = v[n] * w[n];
  target += a * b * sum(w);
}
"""


@pytest.mark.parametrize("f", [0, 1])
def test_variables_have_what_they_had_when_they_are_read(f: int) -> None:
    """Also those that data fill, are read, and filled once more."""
    rng = np.random.default_rng(f)
    values = {"N": 20, "x": rng.normal(size=20), "at": rng.integers(1, 21, 20), "f": f}
    expected, found = (ulam.StanModel(WRITTEN_OVER, values, opt_level=level) for level in (0, 3))
    assert_same_outcomes(expected, found, at=1)
    values["at"][7] = 21
    texts = set[str]()
    for level in (0, 3):
        with pytest.raises(ulam.UlamError) as told:
            ulam.StanModel(WRITTEN_OVER, values, opt_level=level).log_density([0.1, 0.2])
        texts.add(str(told.value))
    assert len(texts) == 1 and "21 out of range" in texts.pop()
