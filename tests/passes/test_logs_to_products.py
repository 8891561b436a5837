"""`logs-to-products`: sums of logarithms have the values and slopes of level 1, at 0, infinity and NaN too."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import ulam
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

HEAD = (
    "data { int N; vector[N] x; array[N] int<lower=0, upper=1> y; int which; } parameters { real u; real v; } model { "
)
TERMS = {
    "log": "log(u * x[n])",
    "log1p": "log1p(u * x[n])",
    "log1m": "-0.5 * log1m(u * x[n])",
    "log1p_exp": "-log1p_exp(u * x[n])",
    "log_inv_logit": "log_inv_logit(u * x[n]) + 2 * v * x[n]",
    "log1m_inv_logit": "v * log1m_inv_logit(-u * x[n])",
    "log_sum_exp": "log_sum_exp(u * x[n], v)",
    "select": "y[n] == 1 ? log_inv_logit(u + x[n]) : log1m_inv_logit(u + x[n])",
    "several": "bernoulli_logit_lpmf(y[n] | u * x[n]) - log(square(x[n] - v) + 1e-3)",
}
FINITE = [0.5, 2.5, -3.0, 1e-9, 40.0, -40.0, 36.9, 710.0, -710.0, 800.0, -800.0]
SPECIAL = [
    0.0, -0.0, 1.0, -1.0, 1e300, 1e-300, -1e300, -1e-300, 5e-324, 2.0**-1022, 1.7e308, math.inf, -math.inf, math.nan
]  # fmt: skip


def program(*terms: str) -> str:
    """One loop for each term, of which `which` chooses one."""
    loops = (f"if (which == {k}) for (n in 1 : N) target += {term};" for k, term in enumerate(terms))
    return f"{HEAD}{' '.join(loops)} }}"


def data(x: list[float], which: int = 0) -> dict[str, object]:
    return {"N": len(x), "x": x, "y": [n % 2 for n in range(len(x))], "which": which}


EVERY = program(*TERMS.values())


def agree(name: str, x: list[float], point: list[float]) -> None:
    which = list(TERMS).index(name)
    plain, product = (ulam.StanModel(EVERY, data(x, which), opt_level=level) for level in (1, 3))
    try:
        value, gradient = plain.log_density_gradient(np.array(point))
    except ulam.Rejection as error:
        with pytest.raises(ulam.Rejection) as raised:
            product.log_density_gradient(np.array(point))
        assert str(raised.value) == str(error)
        return
    found, found_gradient = product.log_density_gradient(np.array(point))
    tolerance = 1e-15 * (len(x) + abs(value)) if math.isfinite(value) else 0.0
    assert found == pytest.approx(value, rel=1e-12, abs=tolerance, nan_ok=True), x
    if math.isfinite(value):
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11, atol=1e-13 * len(x), err_msg=str(x))


@pytest.mark.parametrize("name", TERMS)
def test_values_and_slopes_are_those_of_level_1(name: str) -> None:
    generator = np.random.default_rng(3)
    for length in (0, 1, 7, 255, 256, 257, 1500):
        agree(name, list(np.abs(generator.normal(size=length)) * 0.3), [0.7, 0.2])
        agree(name, list(np.exp(generator.normal(size=length) * 50)), [0.7, 0.2])
    for x in FINITE:
        agree(name, [x], [1.0, 0.5])
        agree(name, [x] * 300, [1.0, 0.5])


@pytest.mark.parametrize("name", TERMS)
def test_what_has_no_logarithm_travels(name: str) -> None:
    for x in SPECIAL:
        agree(name, [0.25, x, *[0.125] * 270], [1.0, 0.5])
    for x, other in itertools.combinations([0.0, -1.0, 2.0, math.inf, -math.inf, math.nan], 2):
        agree(name, [x, *[0.125] * 270, other], [1.0, 0.5])


def test_nests_and_branches_share_a_product() -> None:
    text = (
        "data { int J; int K; matrix[J, K] x; } parameters { real u; } model { for (j in 1 : J) { "
        "target += -log1p_exp(u * j); for (k in 1 : K) { if (x[j, k] > 0) target += log_inv_logit(u * x[j, k]); "
        "else target += log1p_exp(u + x[j, k]); } for (k in 1 : K) target += log(u * k); } "
        "for (k in 1 : 3) target += log(u + k); }"
    )
    generator = np.random.default_rng(4)
    for rows, columns in ((0, 3), (700, 3), (3, 700), (40, 40)):
        values = {"J": rows, "K": columns, "x": (generator.normal(size=(rows, columns)) * 30).tolist()}
        plain, product = (ulam.StanModel(text, values, opt_level=level) for level in (1, 3))
        value, gradient = plain.log_density_gradient(np.array([0.6]))
        found, found_gradient = product.log_density_gradient(np.array([0.6]))
        assert found == pytest.approx(value, rel=1e-12)
        np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11)


def test_sums_that_only_the_target_gets() -> None:
    text = (
        "functions { real f(vector x, real u) { real s = 1; for (n in 1 : size(x)) s += x[n] - log1p_exp(u * x[n]); "
        "return s; } } data { int N; vector[N] x; } parameters { real u; real v; } model { real s = 2; real t = 0; "
        "for (n in 1 : N) { for (k in 1 : 7) s += log1p_exp(u * x[n] + k); s += log(square(x[n] - u) + 1); } "
        "for (n in 1 : N) t += log1p_exp(v * x[n]); "
        "target += f(x, u) - 3 * s + v; target += t * v; target += -sum(log1p_exp(v - x)); }"
    )
    values = {"N": 700, "x": (np.random.default_rng(6).normal(size=700) * 5).tolist()}
    plain, product = (ulam.StanModel(text, values, opt_level=level) for level in (1, 3))
    point = np.array([0.6, -0.4])
    value, gradient = plain.log_density_gradient(point)
    found, found_gradient = product.log_density_gradient(point)
    assert found == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(found_gradient, gradient, rtol=1e-11)
    body = llvm(text, 3)
    assert body.count("fmul reassoc contract double") >= 4


def test_levels_that_keep_sums_and_targets_that_are_read() -> None:
    text = program(TERMS["log1p_exp"])
    assert "exp_minus_magnitude" in llvm(text, 3) and "exp_minus_magnitude" not in llvm(text, 2)
    read = text.replace("target += -", "target += target() > 1e3 ? 0 : -")
    assert "exp_minus_magnitude" not in llvm(read, 3)


def llvm(text: str, level: int) -> str:
    return Compiler(text, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")


def test_remarks() -> None:
    with collect_remarks() as remarks:
        llvm(program(TERMS["several"]), 3)
    told = [r.message for r in remarks if r.pass_name == "logs-to-products"]
    assert told and all("factor" in message for message in told)
