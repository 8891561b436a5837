"""Simulation-based calibration: ranks of what data were simulated from among the draws given these data are uniform.

    python benchmarks/sbc.py [--simulations N] [--results FOLDER] [--only MODEL ...] [--seed N]

Of each simulation parameters are drawn from their prior by NumPy, data from them, and `ulam.sbc` samples the model for
these data. Three models: a simplex, a correlation matrix, and one whose generated quantities draw random numbers. Of
all quantities of a model, the log likelihood among them, the ECDFs of the ranks have to stay in bands that a right one
leaves with a probability of 1e-3. What is in FOLDER already is not computed again. Exit status 1 if an ECDF leaves its
band.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import ulam
from ulam.runtime.studies.calibration import CalibrationResult

Generator = np.random.Generator
Values = dict[str, float]
"""Quantities by the names of their elements, as `theta.2`."""

SIMULATIONS = 500
RISK = 1e-3
WARMUP, DRAWS, THIN = 500, 1000, 10
"""A rank is among 100 draws: of 1,000 of one chain, every tenth, which are nearly independent."""


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


def calibrated(model: Calibrated, simulations: int, seed: int, folder: Path | None) -> CalibrationResult:
    """The ranks of so many simulations."""
    options = {"warmup": WARMUP, "draws": DRAWS, "thin": THIN, "progress": False}
    output = None if folder is None else folder / model.name
    return ulam.sbc(model.code, model.simulate, simulations, risk=RISK, seed=seed, output=output, **options)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--simulations", type=int, default=SIMULATIONS)
    parser.add_argument("--results", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], choices=[model.name for model in MODELS])
    options = parser.parse_args(arguments)
    left = 0
    for model in MODELS:
        if options.only and model.name not in options.only:
            continue
        began = time.process_time()
        found = calibrated(model, options.simulations, options.seed, options.results)
        left += len(found.problems)
        print(f"{model.name}\n{found}\n{time.process_time() - began:.0f} s of CPU\n", flush=True)
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
