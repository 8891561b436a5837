"""`carry-stores` and `cancel-inverses`: recurrences of standard deviations, through memory and through variables."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.passes.loops.cancel_inverses import CancelInverses
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = (
    "data { int n; vector[n] r; real s0; } parameters { real m; real<lower=0> w; real<lower=0, upper=1> p; "
    "real<lower=0, upper=1 - p> q; } "
)  # fmt: skip

# Recurrences whose squares of roots cancel.
FORMS = {
    "an array": (
        "model { array[n] real s; s[1] = s0; for (i in 2 : n) s[i] = sqrt(w + p * square(r[i - 1] - m) "
        "+ q * square(s[i - 1])); r ~ normal(m, s); }"
    ),
    "products, the next element": (
        "model { vector[n] s; s[1] = s0; for (i in 1 : n - 1) { real e = r[i] - m; "
        "s[i + 1] = sqrt(q * s[i] * s[i] + p * e * e + w); } for (i in 1 : n) r[i] ~ normal(m, s[i]); }"
    ),
    "a variable": (
        "model { real s = s0; for (i in 1 : n) { r[i] ~ normal(m, s); s = sqrt(w + p * (r[i] - m) ^ 2 + q * s ^ 2); } }"
    ),
}  # fmt: skip

KEPT = {
    "two iterations before": (
        "model { vector[n] s = rep_vector(s0, n); for (i in 3 : n) s[i] = sqrt(w + q * square(s[i - 2])); "
        "r ~ normal(m, s); }"
    ),
    "may be negative": (
        "model { vector[n] s; s[1] = s0; for (i in 2 : n) s[i] = sqrt(m + q * square(s[i - 1])); r ~ normal(m, s); }"
    ),
}  # fmt: skip


def cancels(program: str, level: int) -> bool:
    """Whether something is cancelled, as `--explain` tells it."""
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    return any(remark.pass_name == CancelInverses.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", FORMS)
def test_gradients_are_those_of_level_1(name: str) -> None:
    """Of one element, too: the loop then has no iteration. A variable's densities have a loop of their own."""
    generator = np.random.default_rng(7)
    points = (generator.normal(size=4), np.array([0.3, -800.0, -1.0, -1.5]), np.array([0.3, 1.0, -40.0, 40.0]))
    for count in (1, 2, 9):
        data = {"n": count, "r": generator.normal(size=count), "s0": 0.7}
        plain, cancelled = (ulam.StanModel(HEAD + FORMS[name], data, opt_level=level) for level in (1, 3))
        for point in points:
            outcomes = [_outcome(model, point) for model in (plain, cancelled)]
            np.testing.assert_allclose(outcomes[1], outcomes[0], rtol=1e-11, atol=1e-300)


def _outcome(model: ulam.StanModel, point: np.ndarray) -> list[float]:
    """Value and gradient; nothing if the point is rejected."""
    try:
        value, gradient = model.log_density_gradient(point)
    except ulam.Rejection:
        return []
    return [value, *gradient]


@pytest.mark.parametrize("name", FORMS)
def test_roots_cancel_at_levels_3_and_4_only(name: str) -> None:
    assert cancels(HEAD + FORMS[name], 3)
    assert not cancels(HEAD + FORMS[name], 2)


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    assert not cancels(HEAD + KEPT[name], 3)


def test_a_radicand_that_becomes_negative_is_rejected() -> None:
    """What is NaN is not taken for the number whose root it is."""
    program = HEAD + KEPT["may be negative"]
    data = {"n": 4, "r": [0.1, 0.2, 0.3, 0.4], "s0": 1.0}
    for level in (1, 3):
        with pytest.raises(ulam.Rejection, match=r"nan"):
            ulam.StanModel(program, data, opt_level=level).log_density_gradient([-3.0, 0.0, 0.0, 0.0])
