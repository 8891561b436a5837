"""`powers-to-exponentials`: the values and slopes of `pow`, at 0 and infinity too; bases that may be negative stay."""

from __future__ import annotations

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

EXPONENTS = [0.0, 1.0, 2.0, 3.0, 0.5, 1.5, -1.0, -2.5, 40.0, 1e-3, -0.0, float("inf"), float("nan")]
HEAD = "data { int N; vector[N] x; array[N] int n; int J; array[N] int g; } "

# Programs whose powers become exponentials.
FORMS = {
    "a scalar": "parameters { real<lower=0> a; } model { for (i in 1 : N) target += a ^ x[i]; }",
    "vectors and ints": "parameters { real<lower=0> a; } model { target += sum(a ^ x) + sum(a ^ n); }",
    "elements": (
        "parameters { vector<lower=0>[J] a; } model { for (j in 1 : J) for (i in 1 : N) target += a[j] ^ x[i]; }"
    ),
    "fractions": "parameters { real<lower=0, upper=1> a; } model { for (i in 1 : N) target += pow(1 - a, x[i]); }",
    "products": (
        "parameters { real<lower=0> a; real b; } model { real c = a * square(b) + exp(b); "
        "for (i in 1 : N) target += c ^ x[i] * (c + 1) ^ n[i]; }"
    ),
}  # fmt: skip

KEPT = {
    "may be negative": "parameters { real a; } model { for (i in 1 : N) target += a ^ n[i]; }",
    "difference": "parameters { real<lower=0> a; } model { for (i in 1 : N) target += (a - 1) ^ n[i]; }",
    "constant exponent": "parameters { real<lower=0> a; } model { for (i in 1 : N) target += (a ^ 2.5) * x[i]; }",
    "base of its own": "parameters { vector<lower=0>[J] a; } model { for (i in 1 : J) target += a[i] ^ a[i]; }",
}  # fmt: skip


def functions(program: str, level: int) -> str:
    return Compiler(program, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")


@pytest.mark.parametrize("name", FORMS)
def test_powers_become_exponentials_at_levels_3_and_4_only(name: str) -> None:
    program = HEAD + FORMS[name]
    assert "@ulam.pow" not in functions(program, 3)
    assert "@ulam.pow" in functions(program, 2)


@pytest.mark.parametrize("name", KEPT)
def test_others_stay(name: str) -> None:
    assert "@ulam.pow" in functions(HEAD + KEPT[name], 3)


@pytest.mark.parametrize("name", ["elements", "products"])
def test_gradients_are_those_of_level_1(name: str) -> None:
    generator = np.random.default_rng(5)
    data = {"N": 9, "x": generator.normal(size=9), "n": [*range(9)], "J": 2, "g": [1] * 9}
    plain, rewritten = (ulam.StanModel(HEAD + FORMS[name], data, opt_level=level) for level in (1, 3))
    for _ in range(3):
        point = generator.normal(size=plain.param_unc_num())
        value, gradient = plain.log_density_gradient(point)
        found, found_gradient = rewritten.log_density_gradient(point)
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11)


@pytest.mark.parametrize("exponent", EXPONENTS)
def test_every_exponent_at_the_ends_of_the_range(exponent: float) -> None:
    """Base 0, next to 0, 1, next to infinity, infinite: as level 1 has it, slope included."""
    head = "data { int N; vector[N] x; } parameters { real<lower=0> a; } "
    program = head + "model { for (i in 1 : N) target += a ^ x[i]; }"
    text = "NaN" if np.isnan(exponent) else "Infinity" if np.isinf(exponent) else exponent
    plain, rewritten = (ulam.StanModel(program, {"N": 1, "x": [text]}, opt_level=level) for level in (1, 3))
    for u in (-800.0, -745.0, -300.0, -2.0, 0.0, 0.7, 300.0, 709.7, 800.0):
        value, gradient = plain.log_density_gradient([u], jacobian=False)
        found, found_gradient = rewritten.log_density_gradient([u], jacobian=False)
        np.testing.assert_allclose(found, value, rtol=2e-12, err_msg=f"exp({u})")
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11, err_msg=f"exp({u})")
