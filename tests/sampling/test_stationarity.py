"""The sampler leaves distributions as they are whose moments are known: many short chains from exact draws.

Chains are independent, so the standard errors of their means are exact; a bound of 5 of them would fail by chance once
in a million quantities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.native import Context
from ulam.runtime.sampling.draw_statistics import mcse_mean, rhat
from ulam.runtime.sampling.native_chain import NativeChain
from ulam.runtime.sampling.settings import checked_settings

pytestmark = pytest.mark.usefixtures("quick_code")

CHAINS, ITERATIONS = 1000, 4
BOUND = 5.0

CORRELATION = np.array([[1.0, 0.99 * 2], [0.99 * 2, 4.0]])

GAUSSIAN = """
data { matrix[2, 2] P; }
parameters { vector[2] x; }
model { target += -0.5 * quad_form(P, x - 1); }
"""
FUNNEL = """
parameters { real z; vector[3] raw; }
transformed parameters { vector[3] x = exp(1.5 * z) * raw; }
model { z ~ std_normal(); raw ~ std_normal(); }
"""
BANANA = """
parameters { real x; real y; }
model { x ~ normal(0, 2); y ~ normal(0.3 * square(x), 1); }
"""
SIMPLEX = """
parameters { simplex[4] s; }
model { s ~ dirichlet([0.8, 1, 2, 5]'); }
"""


def gaussian(rng: np.random.Generator, count: int) -> Any:
    return 1 + rng.multivariate_normal([0, 0], CORRELATION, count)


def banana(rng: np.random.Generator, count: int) -> Any:
    x = rng.normal(0, 2, count)
    return np.column_stack([x, 0.3 * x**2 + rng.normal(size=count)])


class Target:
    """A program, exact draws of its parameters (constrained), and functions of them with their means."""

    def __init__(
        self,
        program: str,
        data: Any,
        draw: Callable[[Any, int], Any],
        means: dict[str, tuple[Any, float]],
        step: float = 0.35,
    ) -> None:
        self.program, self.data, self.draw, self.means, self.step = program, data, draw, means, step


A = np.array([0.8, 1, 2, 5])
TARGETS = {
    "gaussian": Target(
        GAUSSIAN,
        {"P": np.linalg.inv(CORRELATION).tolist()},
        gaussian,
        {
            "x1": (lambda q: q[:, 0], 1),
            "x2": (lambda q: q[:, 1], 1),
            "narrow": (lambda q: (2 * q[:, 0] - q[:, 1] - 1) ** 2, 4 + 4 - 4 * 2 * 0.99),
            "wide": (lambda q: (q[:, 1] - 1) ** 2, 4),
        },
        0.15,
    ),
    "funnel": Target(
        FUNNEL,
        None,
        lambda rng, count: rng.normal(size=(count, 4)),
        {
            "z": (lambda q: q[:, 0], 0),
            "z squared": (lambda q: q[:, 0] ** 2, 1),
            "below": (lambda q: q[:, 0] < -1, 0.158655),
            "log of x": (lambda q: np.log(np.abs(np.exp(1.5 * q[:, 0]) * q[:, 1])), -0.635181),
        },
    ),
    "banana": Target(
        BANANA,
        None,
        banana,
        {
            "x": (lambda q: q[:, 0], 0),
            "x squared": (lambda q: q[:, 0] ** 2, 4),
            "y": (lambda q: q[:, 1], 1.2),
            "off": (lambda q: (q[:, 1] - 0.3 * q[:, 0] ** 2) ** 2, 1),
            "far": (lambda q: q[:, 0] > 4, 0.0227501),
        },
    ),
    "simplex": Target(
        SIMPLEX,
        None,
        lambda rng, count: rng.dirichlet(A, count),
        {
            **{f"s{k}": (lambda q, k=k: q[:, k], A[k] / A.sum()) for k in range(4)},
            "square": (lambda q: q[:, 0] ** 2, 0.8 * 1.8 / (8.8 * 9.8)),
            "below": (lambda q: q[:, 1] < 0.05, 1 - 0.95**7.8),
        },
    ),
}

KINDS: dict[str, dict[str, Any]] = {
    "nuts": {"metric": "diag"},
    "dense": {"metric": "dense"},
    "jitter": {"metric": "diag", "step_size_jitter": 0.7},
    "shallow": {"metric": "diag", "max_depth": 2},
    "hmc": {"metric": "diag", "sampler": "hmc", "integration_time": 1.0},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TARGETS)
def test_exact_draws_stay_exact(name: str, kind: str) -> None:
    target = TARGETS[name]
    model = ulam.StanModel(target.program, target.data)
    rng = np.random.default_rng(4)
    constrained = np.asarray(target.draw(rng, CHAINS), float)
    start = np.array([model.param_unconstrain(row) for row in constrained])
    options = {"sampler": "nuts", "warmup": 0, "draws": ITERATIONS, "adapt": None, "init": ""} | KINDS[kind]
    settings = checked_settings(**options)
    n, unit, context = start.shape[1], model.density_gradient_unit(), Context()
    inverse = np.full(n, 0.8) if settings.metric == "diag" else 0.8 * np.eye(n) + 0.1
    moved = np.empty_like(constrained)
    for k, point in enumerate(start):
        block = NativeChain(settings, unit, context, point, inverse, target.step, 8 + k, ITERATIONS).run(60)
        assert block.status == 0 and len(block.points) == ITERATIONS
        moved[k] = model.param_constrain(block.points[-1])
    assert (moved != constrained).any(axis=1).mean() > 0.5
    for what, (function, mean) in target.means.items():
        for draws in (constrained, moved):  # what is drawn here is right, too
            values = np.asarray(function(draws), float)
            z = (values.mean() - mean) / (values.std(ddof=1) / np.sqrt(CHAINS))
            assert abs(z) < BOUND, (what, z)


@pytest.mark.parametrize("name", TARGETS)
def test_adapted_chains(name: str) -> None:
    """From anywhere, with warmup."""
    target = TARGETS[name]
    model = ulam.StanModel(target.program, target.data)
    fit = model.sample(chains=4, draws=1500, seed=11, progress=False, target_accept=0.9)
    parameters = fit.values[:, :, : model.param_num()]
    for what, (function, mean) in target.means.items():
        values = np.array([function(chain) for chain in parameters], float)
        z = (values.mean() - mean) / mcse_mean(values)
        assert abs(z) < BOUND and rhat(values) < 1.03, (what, z, rhat(values))
