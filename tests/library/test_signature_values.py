"""A share of what `benchmarks/signature_sweep.py` does for all overloads of the library."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from signature_checks import IN_A_PROGRAM, can_be_tried, problems, second_difference_problems
from signature_values import templates

from ulam.frontend.functions import signatures
from ulam.frontend.functions.signatures import Signature
from ulam.frontend.stan_types import INT, REAL, VECTOR

pytestmark = pytest.mark.usefixtures("quick_code")


# What is defined for reals is no definition for ints; the distance of a point to itself has no slope; arrays as long as
# their vectors look like square matrices.
ONCE_WRONG = {
    "falling_factorial(array[] int, array[] int) => array[] int",
    "rising_factorial(array[] int, array[] int) => array[] int",
    "gp_periodic_cov(array[] vector, real, real, real) => matrix",
    "sum_to_zero_unconstrain(array[,] vector) => array[,] vector",
    "unit_vector_unconstrain(array[] vector) => array[] vector",
}


def _sample(count: int, seed: int) -> list[Signature]:
    found = map(signatures.overloads, signatures.stan_names())
    every = [s for o in found if o is not None and not o.higher_order() for s in o.all()]
    return Random(seed).sample([s for s in every if can_be_tried(s)], count)


def _once_wrong() -> list[Signature]:
    found = (signatures.overloads(text.partition("(")[0]) for text in ONCE_WRONG)
    return [s for overloads in found if overloads is not None for s in overloads.all() if str(s) in ONCE_WRONG]


def test_what_is_left_out_is_little() -> None:
    found = map(signatures.overloads, signatures.stan_names())
    every = [s for o in found if o is not None and not o.higher_order() for s in o.all()]
    assert len(every) > 24_000 and sum(map(can_be_tried, every)) > 0.99 * len(every)


def test_values_gradients_and_draws() -> None:
    once_wrong = _once_wrong()
    assert len(once_wrong) == len(ONCE_WRONG)
    assert problems([*_sample(12, 1), *once_wrong]) == []


def test_products_of_hessians_with_directions() -> None:
    assert problems(_sample(8, 3), second_difference_problems) == []


def test_other_points_are_drawn_first() -> None:
    """Reals move, each by itself, ints and what makes a simplex stay."""
    known, drawn = (templates("poisson_lpmf", (INT, REAL), seed)[0] for seed in (0, 1))
    assert drawn[0] == known[0] and drawn[1] != known[1]
    known, drawn = (templates("dirichlet_lpdf", (VECTOR, VECTOR), seed)[0] for seed in (0, 1))
    assert not np.allclose(known[0] / drawn[0], known[1] / drawn[1]) and abs(drawn[0].sum() - 1) < 1e-14
    assert problems(_sample(6, 5), seed=1) == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_values_gradients_and_draws_of_more(seed: int) -> None:
    assert problems(_sample(4 * IN_A_PROGRAM, seed)) == []


def test_a_wrong_overload_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """One in which the first argument counts more than once, if it is a vector."""
    import signature_checks

    text = signature_checks._call
    monkeypatch.setattr(
        signature_checks,
        "_call",
        lambda name, passed: text(name, [f"(1.5 * {passed[0]})" if "v_" in passed[0] else passed[0], *passed[1:]]),
    )
    overloads = signatures.overloads("normal_lpdf")
    assert overloads is not None
    of_vectors = [s for s in overloads.all() if str(s.arguments[0]) == "vector"][:2]
    assert len(problems(of_vectors)) == 2
