"""Scripted draws go by inversion: a draw of a scalar distribution is the quantile at the next uniform number."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from ulam import StanModel
from ulam.frontend.functions.signatures import overloads
from ulam.library.kernels import KERNELS
from ulam.runtime.errors import ProgramError
from ulam.trace import DrawsExhausted, NestedCallNode, Replay, Scripted, Seeded, load
from ulam.tracing.tape.recorder import OtherDraws

UNIFORMS = [0.0025, 0.1, 0.5, 0.7595635877474407, 0.9, 0.9921875]

# name: literal arguments, SciPy's distribution
CONTINUOUS = {
    "std_normal": ("", stats.norm()),
    "normal": ("1.5, 2", stats.norm(1.5, 2)),
    "cauchy": ("1.5, 2", stats.cauchy(1.5, 2)),
    "student_t": ("3.5, 1.5, 2", stats.t(3.5, 1.5, 2)),
    "lognormal": ("0.5, 0.7", stats.lognorm(0.7, scale=math.exp(0.5))),
    "double_exponential": ("1.5, 2", stats.laplace(1.5, 2)),
    "logistic": ("1.5, 2", stats.logistic(1.5, 2)),
    "gumbel": ("1.5, 2", stats.gumbel_r(1.5, 2)),
    "skew_normal": ("1.5, 2, -3", stats.skewnorm(-3, 1.5, 2)),
    "exp_mod_normal": ("1.5, 2, 0.7", stats.exponnorm(1 / (2 * 0.7), 1.5, 2)),
    "exponential": ("2.5", stats.expon(scale=1 / 2.5)),
    "gamma": ("0.7, 2.5", stats.gamma(0.7, scale=1 / 2.5)),
    "inv_gamma": ("3.2, 2.5", stats.invgamma(3.2, scale=2.5)),
    "weibull": ("1.7, 2.5", stats.weibull_min(1.7, scale=2.5)),
    "frechet": ("1.7, 2.5", stats.invweibull(1.7, scale=2.5)),
    "rayleigh": ("2.5", stats.rayleigh(scale=2.5)),
    "chi_square": ("5", stats.chi2(5)),
    "inv_chi_square": ("5", stats.invgamma(2.5, scale=0.5)),
    "scaled_inv_chi_square": ("5, 2", stats.invgamma(2.5, scale=0.5 * 5 * 4)),
    "loglogistic": ("2, 3", stats.fisk(3, scale=2)),
    "pareto": ("2, 3", stats.pareto(3, scale=2)),
    "pareto_type_2": ("1, 2, 3", stats.lomax(3, loc=1, scale=2)),
    "beta": ("0.7, 2.5", stats.beta(0.7, 2.5)),
    "beta_proportion": ("0.3, 4", stats.beta(1.2, 2.8)),
    "uniform": ("-1, 3", stats.uniform(-1, 4)),
    "von_mises": ("0.5, 2", stats.vonmises(2, 0.5)),
}
DISCRETE = {
    "binomial": ("20, 0.3", stats.binom(20, 0.3)),
    "beta_binomial": ("20, 1.5, 0.7", stats.betabinom(20, 1.5, 0.7)),
    "hypergeometric": ("11, 15, 9", stats.hypergeom(24, 15, 11)),
    "poisson": ("6.5", stats.poisson(6.5)),
    "poisson_log": ("1.5", stats.poisson(math.exp(1.5))),
    "neg_binomial": ("2.5, 0.4", stats.nbinom(2.5, 0.4 / 1.4)),
    "neg_binomial_2": ("4, 2.5", stats.nbinom(2.5, 2.5 / 6.5)),
    "neg_binomial_2_log": ("1.2, 2.5", stats.nbinom(2.5, 2.5 / (2.5 + math.exp(1.2)))),
    "yule_simon": ("1.5", stats.yulesimon(1.5)),
}
FAR_CONTINUOUS = [
    ("student_t", "0.3, 0, 1", stats.t(0.3)),
    ("student_t", "1e6, 0, 1", stats.t(1e6)),
    ("gamma", "1e4, 1", stats.gamma(1e4)),
    ("gamma", "0.05, 1", stats.gamma(0.05)),
    ("beta", "300, 2e4", stats.beta(300, 2e4)),
    ("exp_mod_normal", "0, 1, 5", stats.exponnorm(0.2)),
    ("exp_mod_normal", "0, 1, 0.05", stats.exponnorm(20)),
    ("skew_normal", "0, 1, 0.4", stats.skewnorm(0.4)),
    ("skew_normal", "0, 1, 12", stats.skewnorm(12)),
    ("von_mises", "0, 5", stats.vonmises(5)),
]
FAR_DISCRETE = [
    ("beta_binomial", "30, 0.2, 0.3", stats.betabinom(30, 0.2, 0.3)),
    ("beta_binomial", "5000, 300, 20", stats.betabinom(5000, 300, 20)),
    ("hypergeometric", "3000, 40000, 20000", stats.hypergeom(60000, 40000, 3000)),
    ("poisson", "1e5", stats.poisson(1e5)),
    ("binomial", "1000000, 0.001", stats.binom(1000000, 0.001)),
    ("binomial", "7, 1", stats.binom(7, 1)),
]
# Those that ask for a number as it is, or that SciPy does not have: checked below.
OTHERS = {
    "skew_double_exponential": "real 1, 2, 0.3",
    "bernoulli": "int 0.3",
    "bernoulli_logit": "int log(0.3 / 0.7)",
    "discrete_range": "int 3, 7",
    "beta_neg_binomial": "int 2.5, 3.5, 4",
    "categorical": "int [0.2, 0.5, 0.3]'",
    "categorical_logit": "int log([0.2, 0.5, 0.3]')",
    "ordered_logistic": "int 0.5, [-1, 1]'",
    "ordered_probit": "int 0.5, [-1, 1]'",
}
# With several values: how many numbers they take.
SEVERAL = {
    "multinomial": ("array[] int", "[0.2, 0.5, 0.3]', 10", 2),
    "multinomial_logit": ("array[] int", "log([0.2, 0.5, 0.3]'), 10", 2),
    "dirichlet": ("vector", "[0.7, 2, 3]'", 6),
    "dirichlet_multinomial": ("array[] int", "[0.7, 2, 3]', 10", 8),
    "multi_normal": ("vector", "[1, 2]', [[4, 1], [1, 2]]", 2),
    "multi_normal_cholesky": ("vector", "[1, 2]', [[2, 0], [0.5, sqrt(1.75)]]", 2),
    "multi_student_t": ("vector", "4, [1, 2]', [[4, 1], [1, 2]]", 3),
    "multi_student_t_cholesky": ("vector", "4, [1, 2]', [[2, 0], [0.5, sqrt(1.75)]]", 3),
    "lkj_corr": ("matrix", "3, 1.5", 3),
    "lkj_corr_cholesky": ("matrix", "3, 1.5", 3),
    "wishart": ("matrix", "5, [[4, 1], [1, 2]]", 3),
    "wishart_cholesky": ("matrix", "5, [[2, 0], [0.5, sqrt(1.75)]]", 3),
    "inv_wishart": ("matrix", "5, inverse_spd([[4, 1], [1, 2]])", 3),
}
ALL_CONTINUOUS = [(name, *rest) for name, rest in CONTINUOUS.items()] + FAR_CONTINUOUS
ALL_DISCRETE = [(name, *rest) for name, rest in DISCRETE.items()] + FAR_DISCRETE


@pytest.fixture(scope="module")
def model() -> StanModel:
    lines = []
    for kind, rows in (("real", ALL_CONTINUOUS), ("int", ALL_DISCRETE)):
        calls = ", ".join(f"{name}_rng({arguments})" for name, arguments, _ in rows)
        lines.append(f"array[] {kind} all_{kind}_rng() {{ return {{{calls}}}; }}")
    for name, text in OTHERS.items():
        kind, _, arguments = text.partition(" ")
        lines.append(f"{kind} {name}_0_rng() {{ return {name}_rng({arguments}); }}")
    for name, (kind, arguments, _) in SEVERAL.items():
        lines.append(f"{kind} {name}_0_rng() {{ return {name}_rng({arguments}); }}")
    lines += [
        "array[] real many_rng() { return normal_rng({0, 1, 2}, 1); }",
        "int heavy_rng() { return neg_binomial_2_log_rng(30, 1); }",
        "real pair_rng() { return normal_rng(0, 1) + gamma_rng(2, 3); }",
    ]
    return StanModel("functions {\n" + "\n".join(lines) + "\n}\n")


def drawn(model: StanModel, name: str, uniforms: list[float], taken: int):
    """The value of a draw that takes `taken` of the numbers."""
    node = model.track(f"{name}_rng", rng=Scripted(uniforms), on_error="raise")
    assert node.trace.draws_used == taken
    return node.value


def test_all_distributions_are_here() -> None:
    """Those that this file does not know of would not be tested."""
    kernels = {name.removesuffix("_rng") for name in KERNELS if name.endswith("_rng") and overloads(name)}
    assert kernels == {*CONTINUOUS, *DISCRETE, *OTHERS, *SEVERAL}


def test_continuous_quantiles(model: StanModel) -> None:
    count = len(ALL_CONTINUOUS)
    for u in UNIFORMS:
        for (name, arguments, expected), x in zip(
            ALL_CONTINUOUS, drawn(model, "all_real", [u] * count, count), strict=True
        ):
            wanted = expected.ppf(u)
            scale = max(abs(wanted), expected.ppf(0.75) - expected.ppf(0.25))
            assert abs(x - wanted) <= 1e-12 * scale, (name, arguments, u, x, wanted)


def test_discrete_quantiles(model: StanModel) -> None:
    count = len(ALL_DISCRETE)
    for u in UNIFORMS:
        for (name, arguments, expected), k in zip(
            ALL_DISCRETE, drawn(model, "all_int", [u] * count, count), strict=True
        ):
            assert k == expected.ppf(u), (name, arguments, u)


def test_draws_of_uniform_numbers(model: StanModel) -> None:
    """They use the number as it is; a success is drawn where it is less than the probability."""
    for u in (0.0, 0.1, 0.2999, 0.3, 0.31, 0.5, 0.6, 0.95):
        below = math.log(u / 0.3) * 2 / (2 * 0.7) if u else -math.inf
        skewed = 1 + below if u < 0.3 else 1 - math.log((1 - u) / 0.7) * 2 / (2 * 0.3)
        assert drawn(model, "skew_double_exponential_0", [u], 1) == pytest.approx(skewed, rel=1e-13)
        assert drawn(model, "bernoulli_0", [u], 1) == (u < 0.3)
        assert drawn(model, "discrete_range_0", [u], 1) == 3 + int(5 * u)
        category = 1 + (u >= 0.2) + (u >= 0.7)
        assert drawn(model, "categorical_0", [u], 1) == category
        assert drawn(model, "categorical_logit_0", [u], 1) == category
        for name, latent in (("ordered_logistic", stats.logistic(0.5)), ("ordered_probit", stats.norm(0.5))):
            assert drawn(model, f"{name}_0", [u], 1) == 1 + sum(latent.ppf(u) >= cut for cut in (-1, 1))
    assert drawn(model, "bernoulli_logit_0", [0.29], 1) == 1


def test_beta_negative_binomial(model: StanModel) -> None:
    """The least k whose distribution function, a sum of probabilities, reaches u."""
    k = np.arange(100000)
    gammaln = np.vectorize(math.lgamma)

    def log_beta(a, b):
        return gammaln(a) + gammaln(b) - gammaln(a + b)

    terms = gammaln(2.5 + k) - gammaln(k + 1) - math.lgamma(2.5)
    cdf = np.cumsum(np.exp(terms + log_beta(3.5 + 2.5, 4 + k) - log_beta(3.5, 4.0)))
    for u in UNIFORMS:
        assert drawn(model, "beta_neg_binomial_0", [u], 1) == int(np.searchsorted(cdf, u))


def test_draws_with_several_values(model: StanModel) -> None:
    """They are made of scalar draws, one number each, in the order of their generators."""
    u = [0.3, 0.6, 0.9, 0.2, 0.45, 0.7, 0.15, 0.8]
    values = {name: drawn(model, f"{name}_0", u, taken) for name, (_, _, taken) in SEVERAL.items()}
    first = int(stats.binom(10, 0.2).ppf(u[0]))
    second = int(stats.binom(10 - first, 0.5 / 0.8).ppf(u[1]))
    assert values["multinomial"].tolist() == [first, second, 10 - first - second]
    assert values["multinomial_logit"].tolist() == values["multinomial"].tolist()
    alpha = np.array([0.7, 2, 3])
    logs = np.log(stats.gamma(alpha + 1).ppf(u[:6:2])) + np.log(u[1:6:2]) / alpha
    theta = np.exp(logs) / np.exp(logs).sum()
    assert values["dirichlet"] == pytest.approx(theta, rel=1e-12)
    first = int(stats.binom(10, theta[0]).ppf(u[6]))
    second = int(stats.binom(10 - first, theta[1] / (1 - theta[0])).ppf(u[7]))
    assert values["dirichlet_multinomial"].tolist() == [first, second, 10 - first - second]
    factor = np.array([[2, 0], [0.5, math.sqrt(1.75)]])
    normal = factor @ stats.norm.ppf(u[:2])
    assert values["multi_normal"] == pytest.approx([1, 2] + normal, rel=1e-12)
    assert values["multi_normal_cholesky"] == pytest.approx([1, 2] + normal, rel=1e-12)
    scale = math.sqrt(4 / stats.chi2(4).ppf(1 - u[0]))
    assert values["multi_student_t"] == pytest.approx([1, 2] + scale * factor @ stats.norm.ppf(u[1:3]), rel=1e-12)
    assert values["multi_student_t_cholesky"] == pytest.approx(values["multi_student_t"], rel=1e-12)
    z = [2 * stats.beta(1.5 + s, 1.5 + s).ppf(x) - 1 for s, x in ((0.5, u[0]), (0.5, u[1]), (0, u[2]))]
    lower = np.array([[1, 0, 0], [z[0], math.sqrt(1 - z[0] ** 2), 0], [z[1], z[2] * math.sqrt(1 - z[1] ** 2), 0]])
    lower[2, 2] = math.sqrt((1 - z[1] ** 2) * (1 - z[2] ** 2))
    assert values["lkj_corr_cholesky"] == pytest.approx(lower, rel=1e-12)
    assert values["lkj_corr"] == pytest.approx(lower @ lower.T, rel=1e-12)
    bartlett = np.array([
        [math.sqrt(stats.chi2(5).ppf(u[0])), 0], [stats.norm.ppf(u[1]), math.sqrt(stats.chi2(4).ppf(u[2]))],
    ])  # fmt: skip
    wishart = factor @ bartlett
    assert values["wishart_cholesky"] == pytest.approx(wishart, rel=1e-12)
    assert values["wishart"] == pytest.approx(wishart @ wishart.T, rel=1e-12)
    assert values["inv_wishart"] == pytest.approx(np.linalg.inv(wishart @ wishart.T), rel=1e-11)


def test_draws_of_containers(model: StanModel) -> None:
    """One number for each element."""
    assert drawn(model, "many", [0.5, 0.1, 0.9], 3) == pytest.approx([0, *stats.norm.ppf([0.1, 0.9]) + [1, 2]])


def test_too_few_numbers(model: StanModel) -> None:
    node = model.track("pair_rng", rng=Scripted([0.25]))
    assert isinstance(node, NestedCallNode) and node.trace.error is not None and node.trace.error.type is DrawsExhausted
    assert node[2].value == pytest.approx(stats.norm.ppf(0.25))
    assert node.trace.draws_used == 1
    with pytest.raises(DrawsExhausted) as raised:
        model.track("many_rng", rng=Scripted([]), on_error="raise")
    assert raised.value.trace.draws_used == 0


def test_a_quantile_beyond_int(model: StanModel) -> None:
    """As where the generator's gamma draw is too large: a rejection."""
    with pytest.raises(ProgramError, match="Quantile of the scripted number"):
        model.track("heavy_rng", rng=Scripted([0.5]), on_error="raise")


def test_replayed_scripts(model: StanModel, tmp_path) -> None:
    """What was scripted is replayed by inversion; what was drawn from a generator, as it was."""
    scripted = model.track("pair_rng", rng=Scripted([0.25, 0.75]))
    assert model.track("pair_rng", rng=Replay(scripted.trace)).value == scripted.value
    scripted.trace.save(tmp_path / "trace")
    assert model.track("pair_rng", rng=Replay(load(tmp_path / "trace").trace)).value == scripted.value
    seeded = model.track("pair_rng", rng=Seeded(1))
    assert model.track("pair_rng", rng=Replay(seeded.trace)).value == seeded.value
    node = model.track("bernoulli_0_rng", rng=Replay(seeded.trace))
    assert node.trace.error is not None and node.trace.error.type is OtherDraws
