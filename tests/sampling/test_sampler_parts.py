"""The parts of the sampler, one by one: the generator, leapfrog steps, the U-turn criterion, transitions against the
published algorithm, adaptation.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np
import pytest
from nuts_reference import Reference, State, turns

import ulam
from ulam.runtime.c_library import library
from ulam.runtime.native import Context, Rng
from ulam.runtime.random_numbers import UniformNumbers, generator_words
from ulam.runtime.sampling.chain import QUANTITIES_STREAM, TRAJECTORY_STREAM, chain_stream, quantities_rng
from ulam.runtime.sampling.native_chain import NativeChain
from ulam.runtime.sampling.settings import checked_settings

pytestmark = pytest.mark.usefixtures("quick_code")

BANANA = """
parameters { real x; real y; }
model { x ~ normal(0, 2); y ~ normal(0.3 * square(x), 1); }
"""
GAUSSIAN = """
data { int N; matrix[N, N] P; }
parameters { vector[N] x; }
model { target += -0.5 * quad_form(P, x); }
"""


def settings(**options: Any) -> Any:
    given = {"sampler": "nuts", "metric": "diag", "adapt": None, "init": "", "chains": 1} | options
    return checked_settings(**given)


# ------------------------------------------------------------------------------------------------ random numbers


SEEDS = (0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, 2**70, 2**300 + 1, 8191, 20261123)


@pytest.mark.parametrize("stream", [0, 1, 2**32, 2**40 + 7])
def test_seeds_are_those_of_numpy(stream: int) -> None:
    for seed in SEEDS:
        state = np.random.PCG64DXSM(np.random.SeedSequence((seed, stream))).state["state"]
        high, low, *increment = generator_words(seed, stream)
        assert [high << 64 | low, increment[0] << 64 | increment[1]] == [state["state"], state["inc"]]
        numbers = UniformNumbers(seed, stream)
        expected = np.random.Generator(Rng(seed, stream).generator)
        for low, high in ((-2.0, 2.0), (0.0, 1.0), (-0.1, 0.3)):
            assert (numbers.draw(low, high, 50) == expected.uniform(low, high, 50)).all()
    with pytest.raises(ValueError, match="negative"):
        generator_words(-1, stream)


@pytest.mark.parametrize("jumps", [0, 1, 2, 1000, (1 << 62) + 5])
def test_generator_has_the_numbers_of_numpy(jumps: int) -> None:
    bits, uniform = np.empty(200, np.uint64), np.empty(200)
    for seed, stream in ((0, 0), (1, 9), (2**70, 3)):
        words = generator_words(seed, stream)
        library().ulam_try_generator(ctypes.addressof(words), jumps, 200, bits.ctypes.data, uniform.ctypes.data)
        expected = Rng(seed, stream).generator.jumped(jumps)
        assert (bits == expected.random_raw(200)).all()
        assert (uniform == np.random.Generator(expected).random(200)).all()


def test_distributions_take_the_same_numbers() -> None:
    """32 bits at a time, too, as counts of few do."""
    model = ulam.StanModel(
        """generated quantities {
             real a = normal_rng(0, 1); int b = poisson_rng(3); real c = gamma_rng(2, 1);
             int d = categorical_rng([.2, .8]'); int e = binomial_rng(40, 0.4); real f = uniform_rng(0, 1);
           }"""
    )
    fit = model.sample(chains=2, draws=30, seed=7, progress=False)
    for chain in range(2):
        for draw in range(30):
            rng = quantities_rng(7, chain + 1, draw)
            again = model.param_constrain(np.empty(0), include_gq=True, rng=rng)
            assert (fit.values[chain, draw] == again).all()
    assert chain_stream(1, QUANTITIES_STREAM) != chain_stream(1, TRAJECTORY_STREAM)


# ------------------------------------------------------------------------------------------------ leapfrog


def leapfrog(
    model: ulam.StanModel, q: Any, p: Any, step: float, steps: int, inverse: Any = None
) -> tuple[Any, Any, Any]:
    """Where it ends, and the energies on the way."""
    unit, context = model.density_gradient_unit(), Context()
    q, p, energies = np.array(q, float), np.array(p, float), np.empty(steps + 1)
    kind = 1 if inverse is None else np.ndim(inverse)
    metric = None if inverse is None else np.ascontiguousarray(inverse, float)
    status = library().ulam_try_leapfrog(
        context.address, unit.entry, unit.bound, q.size, kind, None if metric is None else metric.ctypes.data, step,
        steps, q.ctypes.data, p.ctypes.data, energies.ctypes.data,
    )  # fmt: skip
    assert status == 0
    return q, p, energies


METRICS = {"unit": None, "diag": [0.5, 2.0], "dense": [[1.5, 0.4], [0.4, 0.7]]}


@pytest.mark.parametrize("metric", METRICS)
def test_leapfrog(metric: str) -> None:
    model, inverse = ulam.StanModel(BANANA), METRICS[metric]
    q, p = [0.7, -0.4], [1.1, 0.3]
    there = leapfrog(model, q, p, 0.1, 37, inverse)
    back = leapfrog(model, there[0], -there[1], 0.1, 37, inverse)
    assert np.allclose(back[0], q, rtol=0, atol=1e-11) and np.allclose(-back[1], p, rtol=0, atol=1e-11)
    assert not np.allclose(there[0], q, atol=0.1)
    # The error of the energy after the same time falls with the square of the step size.
    errors = [np.abs(np.diff(leapfrog(model, q, p, 1 / n, n, inverse)[2][[0, -1]]))[0] for n in (20, 40, 80, 160)]
    orders = [math.log2(a / b) for a, b in zip(errors, errors[1:], strict=False)]
    assert orders == pytest.approx([2, 2, 2], abs=0.15)
    # By hand: one step, from the definition.
    matrix = np.eye(2) if inverse is None else np.diag(inverse) if np.ndim(inverse) == 1 else np.array(inverse)
    half = np.array(p) + 0.05 * model.log_density_gradient(np.array(q))[1]
    end = np.array(q) + 0.1 * matrix @ half
    lp, gradient = model.log_density_gradient(end)
    momentum = half + 0.05 * gradient
    one = leapfrog(model, q, p, 0.1, 1, inverse)
    assert np.allclose(one[0], end, rtol=1e-14) and np.allclose(one[1], momentum, rtol=1e-13)
    assert one[2][1] == pytest.approx(0.5 * momentum @ matrix @ momentum - lp, rel=1e-13)


@pytest.mark.parametrize("n", [1, 7, 8, 9, 19])
def test_leapfrog_of_any_size(n: int) -> None:
    """Loops go by groups of numbers."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    precision = root @ root.T / n + np.eye(n)
    model = ulam.StanModel(GAUSSIAN, {"N": n, "P": precision.tolist()})
    q, p = rng.normal(size=(2, n))
    dense = np.linalg.inv(precision)
    for inverse in (np.diag(dense).copy(), dense):
        matrix = np.diag(inverse) if inverse.ndim == 1 else inverse
        x, y = q.copy(), p.copy()
        for _ in range(5):
            y = y - 0.1 * precision @ x
            x = x + 0.2 * matrix @ y
            y = y - 0.1 * precision @ x
        found = leapfrog(model, q, p, 0.2, 5, inverse)
        assert np.allclose(found[0], x, rtol=1e-11, atol=1e-12) and np.allclose(found[1], y, rtol=1e-11, atol=1e-12)
        assert found[2][-1] == pytest.approx(0.5 * (y @ matrix @ y + x @ precision @ x), rel=1e-11)


# ------------------------------------------------------------------------------------------------ the criterion


def first_turn(momenta: Any, velocities: Any = None) -> int:
    p = np.ascontiguousarray(momenta, float)
    v = p if velocities is None else np.ascontiguousarray(velocities, float)
    depth = len(p).bit_length() - 1
    return library().ulam_try_turns(p.shape[1], depth, p.ctypes.data, v.ctypes.data)


def test_criterion_by_hand() -> None:
    # On a line: points that go on do not turn, and two that go against each other do.
    assert first_turn([[1.0], [2.0]]) == 0
    assert first_turn([[1.0], [-2.0]]) == 1
    assert first_turn([[1.0], [-1.0]]) == 1  # the sum is 0, and does not point away
    # On a circle, in steps of 50 degrees: after 150 degrees the ends are still within 90 degrees of the sum.
    circle = [[math.cos(math.radians(50 * k)), math.sin(math.radians(50 * k))] for k in range(8)]
    assert first_turn(circle[:2]) == 0
    assert first_turn(circle[:4]) == 0
    assert first_turn(circle) == 3
    # In steps of 70 degrees the ends of four points are at 210 degrees: each 105 from the sum.
    assert first_turn([[math.cos(math.radians(70 * k)), math.sin(math.radians(70 * k))] for k in range(4)]) == 2
    # Velocities count, not momenta: here the metric turns them.
    assert first_turn([[1.0, 0.0], [1.0, 0.1]], [[1.0, 0.0], [-1.0, 0.1]]) == 1


def test_criterion_across_halves() -> None:
    """Ends may look at the whole as if it went on, while one half turns away from its neighbour."""
    momenta = np.array([[3.0, 0.0], [-1.0, 2.0], [-1.0, -1.0], [3.0, 0.0]])
    states = [State(p, p, p, p, 0.0, 0.0) for p in momenta]
    whole = momenta.sum(axis=0)
    assert momenta[0] @ whole > 0 and momenta[3] @ whole > 0
    assert momenta[2] @ (momenta[0] + momenta[1] + momenta[2]) < 0  # the first half and what follows it
    assert turns(states[:2], states[2:])
    assert first_turn(momenta) in (1, 2)


def test_criterion_of_random_trajectories() -> None:
    rng = np.random.default_rng(3)
    found = set()
    for _ in range(300):
        depth, n = int(rng.integers(1, 5)), int(rng.integers(1, 12))
        p = np.cumsum(rng.normal(size=(1 << depth, n)), axis=0) + 2 * rng.normal(size=n)
        v = p * rng.uniform(0.5, 2, n)
        states = [State(a, a, b, a, 0.0, 0.0) for a, b in zip(p, v, strict=True)]
        levels = [
            level
            for level in range(1, depth + 1)
            for k in range(0, 1 << depth, 1 << level)
            if turns(states[k : k + (1 << level - 1)], states[k + (1 << level - 1) : k + (1 << level)])
        ]
        assert first_turn(p, v) == min(levels, default=0)
        found.add(min(levels, default=0))
    assert found == {0, 1, 2, 3, 4}


# ------------------------------------------------------------------------------------------------ transitions


@pytest.mark.parametrize("metric", ["diag", "dense"])
@pytest.mark.parametrize("step", [0.05, 0.4, 1.9])
def test_transitions_are_those_of_the_published_algorithm(metric: str, step: float) -> None:
    model = ulam.StanModel(BANANA)
    inverse = np.array([1.3, 0.8]) if metric == "diag" else np.array([[1.2, -0.3], [-0.3, 0.9]])
    run = settings(metric=metric, warmup=0, draws=60, max_depth=6)
    unit, start = model.density_gradient_unit(), np.array([0.3, -0.2])
    chain = NativeChain(run, unit, Context(), start, inverse, step, 11, 100)
    block = chain.run(60)
    assert block.status == 0 and len(block.points) == 60 and chain.phase == "done"
    rng = np.random.Generator(Rng(run.seed, 11).generator)
    matrix = np.diag(inverse) if inverse.ndim == 1 else inverse
    reference = Reference(model.log_density_gradient, matrix, step, 6, rng)
    q, depths = start, set()
    for point, row in zip(block.points, block.statistics, strict=True):
        state, depth, steps, diverged, accept = reference.transition(q)
        assert np.allclose(point, state.q, rtol=1e-9, atol=1e-9)
        assert row[[2, 3, 4, 5]] == pytest.approx([step, depth, steps, float(diverged)])
        assert row[[0, 1, 6]] == pytest.approx([state.lp, accept, state.energy], rel=1e-8, abs=1e-8)
        q = point.copy()  # no rounding error lasts
        depths.add(depth)
    assert len(depths) > 1 or step < 0.1


def test_divergences() -> None:
    """Of a density that is much too narrow for the step."""
    model = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 0.001); }")
    fit = model.sample(chains=1, warmup=0, draws=20, step_size=1.0, init=0, progress=False)
    assert fit.stats["divergent"].all() and (fit.stats["n_leapfrog"] == 1).all()
    assert (fit.stats["treedepth"] == 0).all() and (fit.values == 0).all()
    assert (fit.stats["accept_stat"] == 0).all()


def test_large_gains_of_energy() -> None:
    """From far outside weights would exceed the largest number: the sampler goes to where the density is."""
    model = ulam.StanModel("parameters { vector[3] x; } model { x ~ std_normal(); }")
    fit = model.sample(chains=4, warmup=0, draws=60, step_size=0.3, init=[200.0, -150.0, 100.0], progress=False)
    assert np.isfinite(fit.stats["lp"]).all() and not fit.stats["divergent"].any()
    assert (np.abs(fit["x"][:, -1]) < 6).all()


# ------------------------------------------------------------------------------------------------ adaptation


class Averaging(ctypes.Structure):
    _fields_ = [(name, ctypes.c_double) for name in ("delta", "gamma", "kappa", "t0", "mu", "count", "error", "mean")]


def test_dual_averaging() -> None:
    """Against the recurrences of Hoffman and Gelman (2014), equation 6."""
    state = Averaging(0.8, 0.05, 0.75, 10.0)
    native, address = library(), ctypes.addressof(state)
    rng = np.random.default_rng(5)
    for start in (0.3, 2.0):  # twice: a restart forgets
        native.ulam_dual_averaging_restart(address, start)
        error, log_mean = 0.0, 0.0
        for t, accept in enumerate(rng.uniform(0, 1, 50), 1):
            error = (1 - 1 / (t + 10)) * error + (0.8 - accept) / (t + 10)
            log_step = math.log(10 * start) - math.sqrt(t) / 0.05 * error
            log_mean = t**-0.75 * log_step + (1 - t**-0.75) * log_mean
            assert native.ulam_dual_averaging_learn(address, accept) == pytest.approx(math.exp(log_step), rel=1e-12)
        assert native.ulam_dual_averaging_mean(address) == pytest.approx(math.exp(log_mean), rel=1e-12)


class Windows(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("begin", "end", "size", "last")]


WINDOWS = {
    # warmup, init_buffer, term_buffer, window: the last iterations of the windows, recorded from Stan 2.35's
    # windowed_adaptation, except where the warmup is too short for all three, for which its manual has the rule
    (1000, 75, 50, 25): [99, 149, 249, 449, 949],
    (500, 75, 50, 25): [99, 149, 249, 449],
    (300, 75, 50, 25): [99, 149, 249],
    (250, 75, 50, 25): [99, 199],
    (200, 75, 50, 25): [99, 149],
    (150, 75, 50, 25): [99],
    (2000, 75, 50, 25): [99, 149, 249, 449, 849, 1949],
    (10000, 75, 50, 25): [99, 149, 249, 449, 849, 1649, 3249, 9949],
    (700, 100, 100, 30): [129, 189, 309, 599],
    (400, 0, 0, 25): [24, 74, 174, 399],
    (149, 75, 50, 25): [134],
    (100, 75, 50, 25): [89],
    (20, 75, 50, 25): [17],
    (19, 75, 50, 25): [],
    (1, 75, 50, 25): [],
}


@pytest.mark.parametrize("given", WINDOWS)
def test_windows(given: tuple[int, int, int, int]) -> None:
    state, native = Windows(), library()
    native.ulam_windows_begin(ctypes.addressof(state), *given)
    begin, end = state.begin, state.end
    seen = [native.ulam_windows_at(ctypes.addressof(state), k) for k in range(given[0])]
    assert [k for k, where in enumerate(seen) if where == 2] == WINDOWS[given]
    assert [k for k, where in enumerate(seen) if where] == list(range(begin, end))
    if sum(given[1:]) <= given[0]:
        assert (begin, end) == (given[1], given[0] - given[2])


def test_metric_is_the_regularised_covariance() -> None:
    """Of the last window: the draws of warmup are saved, and say what it must be."""
    precision = np.linalg.inv([[1.0, 0.5], [0.5, 2.0]])
    model = ulam.StanModel(GAUSSIAN, {"N": 2, "P": precision.tolist()})
    for metric in ("diag", "dense"):
        fit = model.sample(chains=2, warmup=250, draws=1, metric=metric, save_warmup=True, progress=False)
        assert fit.warmup is not None and fit.metric is not None
        for points, found in zip(fit.warmup.unconstrained, fit.metric, strict=True):
            window = points[100:200]
            covariance = np.cov(window.T) * (100 / 105) + 1e-3 * 5 / 105 * np.eye(2)
            assert found == pytest.approx(np.diag(covariance) if metric == "diag" else covariance, rel=1e-10)
    fit = model.sample(chains=1, warmup=250, draws=1, metric="unit", progress=False)
    assert fit.metric is None


def learned(draws: Any, kind: int) -> tuple[int, Any]:
    rows = np.ascontiguousarray(draws, float)
    count, n = rows.shape
    found = np.empty((n, n) if kind == 2 else n)
    return library().ulam_try_metric(n, kind, count, rows.ctypes.data, found.ctypes.data), found


@pytest.mark.parametrize("n", [1, 7, 8, 17])
def test_metrics_of_any_size(n: int) -> None:
    rng = np.random.default_rng(n)
    draws = 1e3 + rng.normal(size=(40, n)) @ rng.normal(size=(n, n))
    expected = np.atleast_2d(np.cov(draws.T)) * (40 / 45) + 1e-3 * 5 / 45 * np.eye(n)
    for kind, wanted in ((1, np.diag(expected)), (2, expected)):
        status, found = learned(draws, kind)
        assert status == 1 and found == pytest.approx(wanted, rel=1e-9)


def test_metrics_of_draws_on_a_line() -> None:
    """Of a scale that makes what is added to the variances nothing: the covariance is singular, and then diagonal."""
    line = np.linspace(-1, 1, 30)[:, None] * np.array([1e12, 2e12, -1e12])
    status, found = learned(line, 2)
    variances = np.var(line, axis=0, ddof=1) * 30 / 35
    assert status == 1 and found == pytest.approx(np.diag(variances), rel=1e-9)
    assert learned(1e-20 * line, 2)[1] == pytest.approx(1e-3 / 7 * np.eye(3), abs=1e-10)
    assert learned(1e180 * line, 2)[0] == -1


def test_step_size_comes_to_the_target() -> None:
    model = ulam.StanModel("parameters { vector[20] x; } model { x ~ std_normal(); }")
    reached: list[float] = []
    for target in (0.6, 0.75, 0.9):
        fit = model.sample(chains=4, target_accept=target, draws=400, warmup=600, progress=False)
        reached.append(fit.stats["accept_stat"].mean())
        assert (
            target - 0.05 < reached[-1] < target + 0.18
        )  # a mean of steps is less than the mean of acceptances asks for
        assert (fit.stats["stepsize"] == fit.step_size[:, None]).all()
    assert reached == sorted(reached)


def test_improper_posteriors() -> None:
    with pytest.raises(ulam.SamplingError, match="improper"):
        ulam.StanModel("parameters { real x; } model { }").sample(chains=1, progress=False)


def test_jitter() -> None:
    model = ulam.StanModel("parameters { real x; } model { x ~ std_normal(); }")
    fit = model.sample(chains=2, warmup=0, draws=300, step_size=0.5, step_size_jitter=0.4, progress=False)
    steps = fit.stats["stepsize"]
    assert steps.min() >= 0.3 and steps.max() <= 0.7 and steps.mean() == pytest.approx(0.5, abs=0.03)
    assert fit.step_size == pytest.approx([0.5, 0.5])


def test_static_trajectories() -> None:
    model = ulam.StanModel("parameters { vector[3] x; } model { x ~ std_normal(); }")
    fit = model.sample(chains=2, warmup=0, draws=50, sampler="hmc", step_size=0.3, integration_time=1.0, progress=False)
    assert (fit.stats["n_leapfrog"] == 3).all()
    assert fit.stats["int_time"] == pytest.approx(0.9)
