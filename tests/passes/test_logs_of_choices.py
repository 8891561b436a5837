"""`logs-of-choices`: the digits of log and log1m in either case, at p = 0 and 1 and next to them; other choices."""

from __future__ import annotations

import math

import numpy as np
import pytest

import ulam
from ulam.passes.loops.logs_of_choices import LogsOfChoices
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = "data { int n; array[n] int y; vector[n] x; } parameters { real a; } model { for (i in 1 : n) { "

FORMS = {
    "a ternary": "real p = a * x[i]; target += y[i] == 1 ? log(p) : log1m(p); } }",
    "a branch": "real p = a * x[i]; if (y[i] == 0) target += log1m(p); else target += log(p); } }",
    "a density": "y[i] ~ bernoulli(inv_logit(a) * exp(-square(x[i]))); } }",
    "the same function": "target += y[i] > 0 ? log(square(a) + x[i]) : log(exp(a) * x[i] + 2); } }",
    "another one": "target += y[i] > 0 ? tanh(a * x[i]) : tanh(a - x[i]); } }",
}  # fmt: skip

KEPT = {
    "of the whole loop": "target += x[i] * (y[1] == 1 ? log(a) : log1m(a)); } }",
    "different functions": "target += y[i] > 0 ? log(square(a) + x[i]) : exp(a * x[i]); } }",
    "more than one": "target += y[i] > 0 ? log(square(a) + x[i]) : log(1 + exp(a * x[i]) * 2) * x[i]; } }",
}  # fmt: skip


def is_done(program: str, level: int) -> bool:
    """Whether something is chosen otherwise, as `--explain` tells it."""
    with collect_remarks() as remarks:
        Compiler(program, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    return any(remark.pass_name == LogsOfChoices.name and remark.done for remark in remarks)


@pytest.mark.parametrize("name", FORMS)
def test_functions_of_choices(name: str) -> None:
    assert is_done(HEAD + FORMS[name], 3)


def test_at_levels_3_and_4_only() -> None:
    assert not is_done(HEAD + FORMS["a ternary"], 2)


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    assert not is_done(HEAD + KEPT[name], 3)


PROBABILITIES = [
    0.0,
    5e-324,
    1e-300,
    1e-17,
    1.1e-16,
    1e-9,
    0.3,
    0.5,
    0.75,
    1 - 1e-9,
    1 - 1.2e-16,
    1.0,
    -0.2,
    -3e9,
    -1e300,
]


@pytest.mark.parametrize("y", [0, 1])
def test_digits_and_slopes(y: int) -> None:
    """Next to 0 and 1 to the last digits, and what no probability is as it was."""
    program = HEAD + "real p = a * x[i]; target += x[i] * (y[i] == 1 ? log(p) : log1m(p)); } }"
    assert is_done(program, 3)
    plain, model = (ulam.StanModel(program, {"n": 1, "y": [y], "x": [1.0]}, opt_level=level) for level in (1, 3))
    for p in PROBABILITIES:
        value, gradient = model.log_density_gradient([p])
        expected, slope = plain.log_density_gradient([p])
        np.testing.assert_allclose(value, expected, rtol=1e-13, err_msg=str(p))
        if 0 <= p < 1 and not y:
            assert value == pytest.approx(math.log1p(-p), rel=1e-14, abs=0)
        if not math.isnan(value):
            np.testing.assert_allclose(np.abs(gradient), np.abs(slope), rtol=1e-13, err_msg=str(p))


def test_gradients_are_those_of_level_1() -> None:
    generator = np.random.default_rng(3)
    data = {"n": 20, "y": generator.integers(0, 2, 20), "x": np.abs(generator.normal(size=20))}
    for name in ("a density", "the same function"):
        plain, chosen = (ulam.StanModel(HEAD + FORMS[name], data, opt_level=level) for level in (1, 3))
        for a in (-2.0, 0.4, 3.0):
            value, gradient = plain.log_density_gradient([a])
            found, found_gradient = chosen.log_density_gradient([a])
            assert found == pytest.approx(value, rel=1e-12)
            np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11)


def test_the_arm_that_is_not_taken_has_no_slope() -> None:
    """log(p) at p = 0 has an infinite one; 0 times it would be NaN."""
    data = {"n": 2, "y": [0, 1], "x": [0.0, 0.5]}
    _, gradient = ulam.StanModel(HEAD + FORMS["a ternary"], data).log_density_gradient([1.0])
    np.testing.assert_allclose(gradient, [1.0])
