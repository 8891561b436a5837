"""Products of Hessians with vectors: agreement with differences of gradients, and their time against a gradient's.

    python benchmarks/hessian.py --posteriordb DIR [--only NAME]

One line for each posterior of a posteriordb checkout: largest relative difference from central differences of 6th order
(of several steps the one that agrees best), seconds to compile, time of a gradient, and of a product against it.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from posteriordb import Posterior, posteriors  # noqa: E402

from ulam.runtime.errors import UlamError  # noqa: E402
from ulam.runtime.model import StanModel  # noqa: E402

TRIES = 20
STEPS = (1e-2, 1e-3, 1e-4)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--posteriordb", type=Path, required=True, help="a checkout")
    parser.add_argument("--only", action="append", help="names of posteriors")
    arguments = parser.parse_args()
    if not arguments.posteriordb.exists():
        print(f"{arguments.posteriordb} does not exist: skipped", file=sys.stderr)
        return 0
    ratios: list[float] = []
    agreeing = 0
    for posterior in posteriors(arguments.posteriordb):
        if arguments.only and posterior.name not in arguments.only:
            continue
        try:
            error, compiling, gradient, ratio = measure(posterior)
        except UlamError as problem:
            print(f"{posterior.name:60s} {type(problem).__name__}: {str(problem).splitlines()[0][:100]}", flush=True)
            continue
        ratios.append(ratio)
        agreeing += error < 1e-8
        print(f"{posterior.name:60s} {error:8.1e} {compiling:6.2f} s {gradient * 1e6:9.1f} µs {ratio:5.2f}", flush=True)
    if ratios:
        mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
        print(f"{len(ratios)} posteriors, {agreeing} agree to 1e-8; geometric mean of the ratios {mean:.2f}")
    return 0


def measure(posterior: Posterior) -> tuple[float, float, float, float]:
    """Largest relative difference, seconds to compile, seconds of a gradient, ratio."""
    model = StanModel(posterior.code, posterior.data)
    theta = first_point(model)
    direction = np.random.default_rng(3).normal(size=theta.size)
    direction /= np.linalg.norm(direction)
    start = time.perf_counter()
    product = model.log_density_hessian_vector_product(theta, direction)[1]
    compiling = time.perf_counter() - start

    def gradient(x: np.ndarray) -> np.ndarray:
        return model.log_density_gradient(x)[1]

    error = min(relative(product, differences(gradient, theta, direction, step)) for step in STEPS)
    of_gradient = seconds(lambda: model.log_density_gradient(theta))
    of_product = seconds(lambda: model.log_density_hessian_vector_product(theta, direction))
    return error, compiling, of_gradient, of_product / of_gradient


def first_point(model: StanModel) -> np.ndarray:
    """A point at which the gradient is finite."""
    draws = np.random.default_rng(3)
    for last in reversed(range(TRIES)):
        theta = draws.uniform(-0.5, 0.5, model.param_unc_num())
        try:
            value, gradient = model.log_density_gradient(theta)
        except UlamError:
            if not last:
                raise
            continue
        if math.isfinite(value) and np.isfinite(gradient).all():
            return theta
    raise UlamError("no point with a finite gradient was found")


def differences(
    gradient: Callable[[np.ndarray], np.ndarray], theta: np.ndarray, direction: np.ndarray, step: float
) -> np.ndarray:
    def across(reach: float) -> np.ndarray:
        return gradient(theta + reach * direction) - gradient(theta - reach * direction)

    return (45 * across(step) - 9 * across(2 * step) + across(3 * step)) / (60 * step)


def relative(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max(initial=0) / max(1.0, np.abs(expected).max(initial=0)))


def seconds(call: Callable[[], object], least: float = 0.1) -> float:
    """The mean time of a call."""
    count, start = 0, time.perf_counter()
    while time.perf_counter() - start < least:
        call()
        count += 1
    return (time.perf_counter() - start) / count


if __name__ == "__main__":
    sys.exit(main())
