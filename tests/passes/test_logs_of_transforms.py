"""`logs-of-transforms` and `share-exponentials`: values and slopes of level 1, also where parameters reach a bound."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

PROGRAM = (
    "data { int k; int n; } parameters { real<lower=0, upper=1> p; real<lower=0> s; real x; } model { "
    "k ~ binomial(n, p); target += log(p) + 2 * log1m(p) + log(1 - p); s ~ gamma(2, 3); s ~ lognormal(0, 1); "
    "0.3 ~ normal(0, s); if (k > 0) { n - k ~ binomial_logit(n, x); } target += -log1p_exp(x) + inv_logit(-x); "
    "target += lmultiply(k, s); }"
)
POINTS = [0.0, -0.0, 0.7, -0.7, 5.0, -5.0, 12.0, -12.0, 36.0, -36.0, -300.0, -700.0]
BEYOND = [-720.0, -740.0, 36.8, 40.0, 300.0, 720.0, 800.0, -746.0, -800.0, math.inf, -math.inf, math.nan]


@pytest.fixture(scope="module", params=[(2, 5), (0, 5), (5, 5)])
def models(request: pytest.FixtureRequest) -> tuple[ulam.StanModel, ulam.StanModel]:
    data = {"k": request.param[0], "n": request.param[1]}
    return ulam.StanModel(PROGRAM, data, opt_level=1), ulam.StanModel(PROGRAM, data, opt_level=3)


def told(model: ulam.StanModel, point: np.ndarray, jacobian: bool) -> tuple[float, np.ndarray] | str:
    try:
        return model.log_density_gradient(point, jacobian=jacobian)
    except ulam.Rejection as error:
        return str(error)


@pytest.mark.parametrize("jacobian", [True, False])
def test_values_and_slopes_are_those_of_level_1(models: tuple[ulam.StanModel, ulam.StanModel], jacobian: bool) -> None:
    for place, u in ((place, u) for place in range(3) for u in POINTS + BEYOND):
        point = np.array([0.3, -0.2, 0.1])
        point[place] = u
        expected, found = (told(model, point, jacobian) for model in models)
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected, (place, u)
            continue
        # level 1 takes the logarithms of a p that was rounded to 1 - n 2^-53, or to a subnormal number
        lost = 0.0 if place else 3e-16 * math.exp(min(u, 36.7)) if u > 0 else math.exp(min(-u - 744.0, 0.0))
        assert found[0] == pytest.approx(expected[0], rel=1e-13, abs=8 * lost, nan_ok=True), (place, u)
        if u not in BEYOND:
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-12, atol=1e-12 + lost, err_msg=str((place, u)))


EDGES = [-800.0, -745.0, -40.0, -37.0, -36.0, 0.0, 36.0, 37.0, 40.0, 710.0, 800.0, math.inf, -math.inf, math.nan]
ROUNDED = (36.0, -745.0)
"""Where level 0 takes the logarithm of a rounded argument: 1 - n 2^-53, or a subnormal number."""
CHAINS = {
    "lower=0": ["log(x)", "log1m(x)", "lmultiply(3, x)", "lmultiply(z, x)", "log1p(x)", "log_inv_logit(x)",
                "3 * log(x) + 2 * log1p(x)", "y > 0 ? log(x) : log1p(x)", "1e-3 * log(x)"],
    "upper=0": ["log(-x)", "log1m(x)", "lmultiply(3, -x)", "lmultiply(z, -x)", "log1p(-x)", "log_inv_logit(x)"],
    "lower=0, upper=1": [
        "log(x)", "log1m(x)", "lmultiply(3, x)", "lmultiply(z, x)", "log1p(x)", "log_inv_logit(x)", "log1m(x * x)",
        "lmultiply(3, 1 - x)", "lmultiply(z, 1 - x)", "log1m(1 - x)", "bernoulli_lpmf(z | x)",
        "binomial_lpmf(2 | 3, 1 - x)", "3 * log(x) + 2 * log1m(x)", "y > 0 ? log1m(x) : log(x)"],
    "lower=-0.5, upper=1": ["log(x + 0.5)", "log1m(x)", "lmultiply(3, x + 0.5)", "log1p(x)", "log_inv_logit(x)",
                            "log1m(x * x)", "lmultiply(3, 1 - x)"],
    "": ["lmultiply(3, inv_logit(x))", "lmultiply(z, inv_logit(x))", "lmultiply(3, exp(x))", "log1p(inv_logit(x))"],
}  # fmt: skip


QUICK = (("lower=0", False), ("lower=0, upper=1", True))


@pytest.mark.parametrize(
    ("bounds", "is_loop"),
    [
        pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow)
        for case in itertools.product(CHAINS, (False, True))
    ],
)
def test_edges_are_of_the_kind_of_level_0(bounds: str, is_loop: bool) -> None:
    """Finite, infinite and NaN: densities and slopes where a parameter reaches its bound are those of level 0.

    What is NaN at level 0 may be anything.
    """
    chains = CHAINS[bounds]
    size = 2
    kind = f"<{bounds}>" if bounds else ""
    if is_loop:
        declared = "".join(f"vector{kind}[{size}] x{n}; " for n in range(len(chains)))
        terms = "".join(f"target += {_of(chain, f'x{n}[i]')}; " for n, chain in enumerate(chains))
        terms = f"for (i in 1:{size}) {{ {terms} }}"
    else:
        size = 1
        declared = "".join(f"real{kind} x{n}; " for n in range(len(chains)))
        terms = "".join(f"target += {_of(chain, f'x{n}')}; " for n, chain in enumerate(chains))
    text = f"data {{ int y; int z; }} parameters {{ {declared} }} model {{ {terms} }}"
    level_0, level_3 = (ulam.StanModel(text, {"y": 1, "z": 0}, opt_level=level) for level in (0, 3))
    for place, u in ((n * size, u) for n in range(len(chains)) for u in EDGES):
        point = np.full(len(chains) * size, -0.3)
        point[place] = u
        expected, found = (told(model, point, True) for model in (level_0, level_3))
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected, (chains[place // size], u)
            continue
        expected, found = np.hstack(expected), np.hstack(found)
        known = ~np.isnan(expected)
        rtol = 0.3 if u in ROUNDED or (u < -30 and "1 - x" in chains[place // size]) else 1e-9
        np.testing.assert_allclose(
            found[known], expected[known], rtol=rtol, atol=1e-9, err_msg=str((chains[place // size], u))
        )


def _of(chain: str, x: str) -> str:
    return re.sub(r"\bx\b", x, chain)


@pytest.mark.parametrize("function", ["inv_logit(x)", "exp(x)", "inv_logit(exp(x))"])
def test_probabilities_in_containers(function: str) -> None:
    """What a loop fills a vector with, and another one takes the logarithms of: one of an argument that is chosen."""
    text = (
        "data { int N; array[N] int y; array[N] int k; } parameters { vector[N] x; } transformed parameters { "
        f"vector[N] p = {function}; }} model {{ y ~ bernoulli(p); "
        "for (n in 1:N) if (k[n] > 0) target += log1m(p[n]); else target += log(p[n]); }"
    )
    data = {"N": 2 * len(EDGES), "y": [0, 1] * len(EDGES), "k": [1, 0, 0, 1] * (len(EDGES) // 2)}
    level_0, level_3 = (ulam.StanModel(text, data, opt_level=level) for level in (0, 3))
    for place, u in ((place, u) for place in (0, 1, 2, 3, 2 * len(EDGES) - 1) for u in (*EDGES, -1e-300, 1e-20)):
        point = np.linspace(-3.0, -0.1, 2 * len(EDGES))
        point[place] = u
        expected, found = (told(model, point, True) for model in (level_0, level_3))
        if isinstance(expected, str) or isinstance(found, str):
            assert found == expected, (place, u)
            continue
        expected, found = np.hstack(expected), np.hstack(found)
        # slopes at probabilities that are rounded to 0 or 1, or subnormal, are infinite or NaN at level 0
        known = np.isfinite(expected)
        known[0] = not math.isnan(expected[0])
        rtol = 0.35 if abs(u) in (36.0, 37.0, 745.0) else 1e-9
        np.testing.assert_allclose(found[known], expected[known], rtol=rtol, atol=1e-9, err_msg=str((place, u)))


def test_one_exponential_and_one_logarithm() -> None:
    text = "parameters { real<lower=0, upper=1> p; } model { target += 3.5 * log(p) + 2.5 * log1m(p); }"
    count = calls(text, 3)
    assert count["exp"] + count["exp_minus_magnitude"] == 1 and count["log"] == 1 and count["log1m"] == 0, count
    assert calls(text, 2)["log1m"] == 1
    count = calls("parameters { real<lower=0> s; } model { 1.5 ~ normal(0, s); }", 3)
    assert count["log"] == 0 and count["exp"] == 1, count


def calls(text: str, level: int) -> dict[str, int]:
    llvm = Compiler(text, "model.stan", CompileOptions(level)).llvm_text("gradient_propto")
    body = llvm[llvm.index("@evaluate") :]
    body = body[: body.index("\n}")]
    return {
        name: body.count(f"@ulam.{name}(") + body.count(f"@{name}(")
        for name in ("exp", "exp_minus_magnitude", "log", "log1p", "log1m")
    }


def test_choices_are_of_arguments() -> None:
    for choice in ("y ? log_inv_logit(x) : log1m_inv_logit(x)", "y ? -log1p_exp(3 * x) : -log1p_exp(-x)"):
        text = f"data {{ int y; }} parameters {{ real x; }} model {{ target += {choice}; }}"
        for y, x in ((0, 0.7), (1, 0.7), (0, -800.0), (1, -800.0), (1, math.inf), (0, math.nan)):
            plain, chosen = (ulam.StanModel(text, {"y": y}, opt_level=level) for level in (1, 3))
            expected, found = (model.log_density_gradient(np.array([x])) for model in (plain, chosen))
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
            np.testing.assert_allclose(found[1], expected[1], rtol=1e-14)


def test_what_is_checked_of_exponentials_alone_is_checked_of_arguments() -> None:
    """Exactly where they are 0 or infinity by rounding."""
    text = "parameters { real u; } model { 3 ~ neg_binomial_2(exp(u), 2); }"
    plain, checked = (ulam.StanModel(text, opt_level=level) for level in (1, 3))
    outcomes: list[bool] = []
    for border in (-745.1332191019412, 709.782712893384):
        for u in (np.nextafter(border, -1e4), border, np.nextafter(border, 1e4), border - 1, border + 1):
            expected, found = (told(model, np.array([u]), jacobian=True) for model in (plain, checked))
            assert isinstance(expected, str) == isinstance(found, str), u
            assert not isinstance(found, str) or found == expected
            outcomes.append(isinstance(found, str))
    assert outcomes == [True, True, False, True, False, False, False, True, False, True]
    for u in (math.inf, -math.inf, math.nan):
        assert told(plain, np.array([u]), jacobian=True) == told(checked, np.array([u]), jacobian=True)


def test_remarks_name_the_line() -> None:
    from ulam.passes.remarks import collect_remarks

    with collect_remarks() as remarks:
        calls("parameters { real<lower=0> s; }\nmodel {\n  target += log(s);\n}", 3)
    (remark,) = {r for r in remarks if r.pass_name == "logs-of-transforms"}
    assert remark.place is not None and remark.place[1] == 3 and remark.done
