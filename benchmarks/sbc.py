"""Simulation-based calibration: ranks of what data were simulated from among the draws given these data are uniform.

    python benchmarks/sbc.py [--simulations N] [--results FILE] [--only MODEL ...]

Of each simulation parameters are drawn from their prior by NumPy, data from them, and the model is sampled for these
data (Talts, Betancourt, Simpson, Vehtari and Gelman 2018, "Validating Bayesian inference algorithms with
simulation-based calibration", arXiv 1804.06788). Three models: a simplex, a correlation matrix, and one whose generated
quantities draw random numbers. Of each quantity, the log likelihood among them, the ECDF of the ranks has to stay in a
band that it leaves nowhere with a probability of 1 - 1e-3 (Säilynoja, Bürkner and Vehtari 2022, "Graphical test for
discrete uniformity and its applications in goodness-of-fit evaluation and multiple sample comparison", Statistics and
Computing 32). Ranks that are in FILE already are not computed again. Exit status 1 if an ECDF leaves its band.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Generator = np.random.Generator
Values = dict[str, float]
"""Quantities by the names of their elements, as `theta.2`."""

SIMULATIONS = 500
RISK = 1e-3
WARMUP, DRAWS, THIN = 500, 1000, 10
RANKS = DRAWS // THIN
"""Draws that a rank is among: 1,000 of one chain, every tenth, which are nearly independent."""


@dataclass(frozen=True)
class Calibrated:
    """A model, and how data are simulated: the data, and the quantities that they are from."""

    name: str
    code: str
    simulate: Callable[[Generator], tuple[dict[str, Any], Values]]


SIMPLEX = """
data { array[4] int y; vector[4] a; }
parameters { simplex[4] theta; }
model { theta ~ dirichlet(a); y ~ multinomial(theta); }
generated quantities { real log_lik = multinomial_lpmf(y | theta); }
"""


def simulate_simplex(generator: Generator) -> tuple[dict[str, Any], Values]:
    """Ten counts of four kinds; the prior favours the edges."""
    a = np.array([0.7, 1.0, 2.0, 1.5])
    theta = generator.dirichlet(a)
    y = generator.multinomial(10, theta)
    log_lik = (
        math.lgamma(11) - sum(math.lgamma(k + 1) for k in y) + float(np.sum(y * np.log(np.maximum(theta, 1e-300))))
    )
    return {"y": y.tolist(), "a": a.tolist()}, {f"theta.{k + 1}": theta[k] for k in range(4)} | {"log_lik": log_lik}


CORRELATION = """
data { int N; array[N] vector[3] y; }
parameters { corr_matrix[3] Omega; }
model { Omega ~ lkj_corr(1.5); y ~ multi_normal(rep_vector(0, 3), Omega); }
generated quantities { real log_lik = multi_normal_lpdf(y | rep_vector(0, 3), Omega); }
"""


def simulate_correlation(generator: Generator) -> tuple[dict[str, Any], Values]:
    """Eight observations; the matrix is made of partial correlations (Lewandowski, Kurowicka and Joe 2009)."""
    eta, rows = 1.5, 8
    r12, r13 = 2 * generator.beta(eta + 0.5, eta + 0.5, size=2) - 1
    partial = 2 * generator.beta(eta, eta) - 1
    r23 = r12 * r13 + partial * math.sqrt((1 - r12**2) * (1 - r13**2))
    omega = np.array([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
    y = generator.multivariate_normal(np.zeros(3), omega, size=rows, method="cholesky")
    quadratic = float(np.sum(y * np.linalg.solve(omega, y.T).T))
    log_lik = -0.5 * (quadratic + rows * (np.linalg.slogdet(omega)[1] + 3 * math.log(2 * math.pi)))
    return {"N": rows, "y": y.tolist()}, {"Omega.2.1": r12, "Omega.3.1": r13, "Omega.3.2": r23, "log_lik": log_lik}


PREDICTION = """
data { int N; array[N] int y; }
parameters { real<lower=0> rate; real<lower=0, upper=1> p; }
model { rate ~ gamma(4, 1); p ~ beta(2, 3); y ~ poisson(rate); }
generated quantities {
  real waited = exponential_rng(rate);
  real both = waited + normal_rng(p, 0.5);
  real log_lik = poisson_lpmf(y | rate);
}
"""


def simulate_prediction(generator: Generator) -> tuple[dict[str, Any], Values]:
    """Three counts; what is predicted is drawn from the same parameters as they are. Of `p` there are no data."""
    rate, p = generator.gamma(4), generator.beta(2, 3)
    y = generator.poisson(rate, size=3)
    waited = generator.exponential(1 / rate)
    both = waited + generator.normal(p, 0.5)
    log_lik = float(sum(k * math.log(rate) - rate - math.lgamma(k + 1) for k in y))
    return {"N": 3, "y": y.tolist()}, {"rate": rate, "p": p, "waited": waited, "both": both, "log_lik": log_lik}


MODELS = (
    Calibrated("simplex", SIMPLEX, simulate_simplex),
    Calibrated("correlation_matrix", CORRELATION, simulate_correlation),
    Calibrated("prediction", PREDICTION, simulate_prediction),
)


# ---------------------------------------------------------------- ranks


def ranks(model: Calibrated, number: int) -> dict[str, int]:
    """The ranks of a simulation's quantities among the draws: from 0 to RANKS."""
    import ulam

    generator = np.random.default_rng([number, len(model.name)])
    data, values = model.simulate(generator)
    fitted = ulam.StanModel(model.code, data=data)
    fit = fitted.sample(chains=1, warmup=WARMUP, draws=DRAWS, thin=THIN, seed=number + 1, progress=False)
    columns = dict(zip(fit.names, fit.values[0].T, strict=True))
    return {name: int((columns[name] < value).sum()) for name, value in values.items()}


# ---------------------------------------------------------------- the band


@lru_cache
def _log_choose(count: int) -> Array:
    """log of the binomial coefficients (n over k), row n, column k; -infinity where k > n."""
    factorials = np.array([math.lgamma(k + 1) for k in range(count + 1)])
    n, k = np.arange(count + 1)[:, np.newaxis], np.arange(count + 1)
    return np.where(k <= n, factorials[n] - factorials[k] - factorials[np.maximum(n - k, 0)], -np.inf)


@lru_cache(maxsize=1000)
def _cumulative(count: int, probability: float) -> Array:
    """P(X <= k) of a binomial distribution, for k from 0."""
    k = np.arange(count + 1)
    logs = _log_choose(count)[count] + k * math.log(probability) + (count - k) * math.log1p(-probability)
    return np.minimum(np.cumsum(np.exp(logs)), 1.0)


def limits(count: int, points: Array, risk: float) -> tuple[Array, Array]:
    """The smallest and largest counts at each point that a single one has at most the risk to leave."""
    found = [_cumulative(count, point) for point in points]
    lower = np.array([int(np.searchsorted(values, risk / 2, side="right")) for values in found])
    upper = np.array([int(np.searchsorted(values, 1 - risk / 2, side="left")) for values in found])
    return lower, np.minimum(upper, count)


def coverage(count: int, points: Array, lower: Array, upper: Array) -> float:
    """The probability that the counts below all points stay within the limits (Säilynoja et al., section 2.2).

    From point to point the count is a Markov chain: of those that are not yet below, each is with the same probability.
    """
    chosen = _log_choose(count)
    state = np.zeros(count + 1)
    state[0] = 1.0
    before = 0.0
    for point, low, high in zip(points, lower, upper, strict=True):
        step = (point - before) / (1 - before)
        old = np.flatnonzero(state)[:, np.newaxis]
        new = np.arange(low, high + 1)
        more = np.maximum(new - old, 0)
        logs = chosen[count - old, more] + more * math.log(step) + (count - old - more) * math.log1p(-step)
        moved = np.zeros(count + 1)
        moved[new] = state[old[:, 0]] @ np.where(new >= old, np.exp(logs), 0.0)
        state, before = moved, point
    return float(state.sum())


@lru_cache
def band(count: int, levels: int, risk: float = RISK) -> tuple[Array, Array, Array]:
    """Points, and the limits of the counts of `count` ranks below them; all of `levels` ranks are equally likely.

    The pointwise risk is the largest for which the limits are left anywhere with the probability `risk` at most.
    """
    points = np.arange(1, levels) / levels
    low, high = math.log(risk / (10 * levels)), math.log(risk)
    for _ in range(16):
        middle = (low + high) / 2
        if coverage(count, points, *limits(count, points, math.exp(middle))) >= 1 - risk:
            low = middle
        else:
            high = middle
    return points, *limits(count, points, math.exp(low))


def outside(found: Sequence[int], levels: int, risk: float = RISK) -> float:
    """How far the ECDF of ranks from 0 to `levels` - 1 leaves its band, as a share of all; 0 within."""
    _, lower, upper = band(len(found), levels, risk)
    below = np.array([sum(rank < k for rank in found) for k in range(1, levels)])
    return float(np.maximum(lower - below, below - upper).max(initial=0)) / len(found)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--only", action="append", default=[], choices=[model.name for model in MODELS])
    options = parser.parse_args(arguments)
    kept: dict[str, list[dict[str, int]]] = {}
    if options.results is not None and options.results.exists():
        kept = json.loads(options.results.read_text())
    left = 0
    for model in MODELS:
        if options.only and model.name not in options.only:
            continue
        done, began = kept.setdefault(model.name, []), time.process_time()
        while len(done) < options.simulations:
            done.append(ranks(model, len(done)))
            if options.results is not None and (len(done) % 20 == 0 or len(done) == options.simulations):
                options.results.write_text(json.dumps(kept))
        seconds = time.process_time() - began
        for name in done[0]:
            found = [each[name] for each in done[: options.simulations]]
            excess = outside(found, RANKS + 1)
            left += excess > 0
            mean = float(np.mean(found)) / RANKS
            verdict = f"OUTSIDE by {excess:.3f}" if excess else "within"
            print(f"{model.name} {name:<12} mean rank {mean:.3f}, {verdict}")
        print(f"{model.name}: {len(done)} simulations, {seconds:.0f} s of CPU", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
