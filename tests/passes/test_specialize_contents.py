"""What the contents of data make trivial at level 4: values, gradients, NaN, infinities and errors are level 3's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ulam
from ulam.passes.remarks import collect_remarks

PROGRAM = """
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] X;
  vector[K] z;
  vector[N] w;
  array[N] int J;
  vector[N] y;
  vector[K] s;
  array[N] int n;
}
parameters {
  vector[K] b;
  real<lower=0> sigma;
  vector[N] a;
}
model {
  b ~ normal(0, s);
  y ~ normal(w .* (1 + X * (b .* z)) + a[J] ./ w - w, sigma);
  a ~ normal(w, 2 + w);
  n ~ poisson_log(a + X * b);
}
"""
N, K = 5, 3
CONTENTS: dict[str, list[Any]] = {
    "X": [np.arange(N * K).reshape(N, K) / 7 - 1, np.zeros((N, K)), np.full((N, K), -2.5), np.eye(N, K)],
    "z": [np.zeros(K), -np.zeros(K), np.ones(K), np.arange(K) - 1.0],
    "w": [np.ones(N), np.full(N, 0.5), np.linspace(1, 2, N)],
    "J": [np.arange(1, N + 1), np.full(N, 3), np.arange(N, 0, -1), np.array([2, 1, 1, 5, 4])],
    "s": [np.full(K, 2.0), np.ones(K), np.linspace(1, 2, K)],
    "n": [np.zeros(N, int), np.full(N, 3), np.arange(N)],
}


def data(choice: dict[str, int]) -> dict[str, Any]:
    values = {name: CONTENTS[name][number].tolist() for name, number in choice.items()}
    return {"N": N, "K": K, "y": [1.0, -2.0, 0.5, 0.0, 3.0], **values}


def choices(count: int) -> list[dict[str, int]]:
    """All that is trivial, nothing that is, and random ones between."""
    rng = np.random.default_rng(5)
    found = [{name: position for name in CONTENTS} for position in (0, -1)]
    return found + [{name: int(rng.integers(len(c))) for name, c in CONTENTS.items()} for _ in range(count - 2)]


def assert_equal(values: dict[str, Any], points: list[np.ndarray], program: str = PROGRAM) -> None:
    plain, known = (ulam.StanModel(program, data=values, opt_level=level) for level in (3, 4))
    for theta in points:
        for found, expected in zip(known.log_density_gradient(theta), plain.log_density_gradient(theta), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("choice", choices(3))
def test_as_at_level_3(choice: dict[str, int]) -> None:
    theta = np.sin(np.arange(1.0, K + N + 2))
    assert_equal(data(choice), [theta, 1e-3 * theta, np.zeros_like(theta)])


@pytest.mark.parametrize("columns", [[0], [1], [2], [0, 2], [0, 1]])
def test_columns_of_zeros_are_left_out(columns: list[int]) -> None:
    """Infinite coefficients of them are NaN in all rows, as products with 0 are."""
    program = "data { int N; int K; matrix[N, K] X; } parameters { vector[K] b; } model { target += sin(X * b); }"
    X = np.arange(1.0, N * K + 1).reshape(N, K) / 7
    X[:, columns] = 0
    values = {"N": N, "K": K, "X": X.tolist()}
    with collect_remarks() as remarks:
        infinite = np.where(np.isin(np.arange(K), columns), np.inf, 0.5)
        assert_equal(values, [np.sin(np.arange(1.0, K + 1)), infinite, np.full(K, np.nan)], program)
    assert any("columns all elements of which are 0 are left out" in str(remark) for remark in remarks)


@pytest.mark.slow
@pytest.mark.parametrize("choice", choices(60))
def test_as_at_level_3_random(choice: dict[str, int]) -> None:
    theta = np.sin(np.arange(1.0, K + N + 2))
    assert_equal(data(choice), [theta, 1e-3 * theta, np.zeros_like(theta)])


NO_REFUSAL = """
data { int N; int K; matrix[N, K] X; vector[K] z; vector[N] y; }
parameters { vector[K] b; }
model { target += -square(y - (1 + X * (b .* z))); target += sum(X * b); }
"""


@pytest.mark.parametrize(("X", "z"), [(0, 0), (1, 2)])
def test_what_is_not_finite_travels(X: int, z: int) -> None:
    """A zero that the data have does not hide an infinity or a NaN of a parameter."""
    everything = data({**choices(2)[0], "X": X, "z": z})
    values = {name: everything[name] for name in ("N", "K", "X", "z", "y")}
    model = ulam.StanModel(NO_REFUSAL, data=values, opt_level=4)
    plain = ulam.StanModel(NO_REFUSAL, data=values, opt_level=3)
    for bad in (np.inf, -np.inf, np.nan):
        theta = np.array([0.5, bad, -1.0])
        found, expected = (m.log_density(theta) for m in (model, plain))
        assert np.isnan(found) == np.isnan(expected) or found == expected
        assert np.isnan(found)


def test_errors_are_those_of_the_program() -> None:
    """Sizes that do not fit and indices out of range are told as before; so is a scale that is refused."""
    fine = data(choices(2)[0])
    program = PROGRAM.replace("real<lower=0> sigma", "real sigma")
    refused = np.array([*np.ones(K), -1.0, *np.ones(N)])
    for changes in ({"J": [1, 2, 3, 4, 6]}, {}):
        texts: list[str] = []
        for level in (3, 4):
            with pytest.raises(ulam.UlamError) as caught:
                ulam.StanModel(program, data={**fine, **changes}, opt_level=level).log_density(refused)
            texts.append(str(caught.value))
        assert texts[0] == texts[1]


def test_remarks_say_what_was_found() -> None:
    def messages(choice: dict[str, int]) -> set[str]:
        with collect_remarks() as remarks:
            ulam.StanModel(PROGRAM, data=data(choice), opt_level=4, cache=False).log_density(np.ones(K + N + 1))
        return {remark.message for remark in remarks if remark.pass_name == "specialize-data"}

    trivial, other = (messages(choice) for choice in choices(2))
    assert {
        "the indices are all elements in order",
        "all elements of an operand are 1",
        "all products are zeros",
        "what has the same value for all elements is one number",
    } <= trivial
    assert "the indices are neither consecutive nor all the same" in other
