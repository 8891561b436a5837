"""Time of a gradient: the same densities in JAX (jit, float64, CPU) and in Stan, by turns.

    pip install jax
    python benchmarks/against_jax.py [--only NAME ...] [--rounds 15] [--target x86-64-v3] [--calls compiled]

What counts is the CPU time of all threads, batches of at least 20 ms, the best one of each side; the point changes from
call to call. Each side is in a process of its own, so that none pays for threads of the other. Both sides are called
from Python with an array of the unconstrained parameters, JAX with one of its own arrays, and its result is waited for;
with `--calls compiled` the calls are in a loop that is compiled as well, on both sides. The densities are without
constants and with the Jacobian, and written as one writes them in JAX: whole arrays, no loops. Gradients, and values up
to a constant, are compared at all points.

`--target x86-64-v3` is as on a processor with AVX2 and without AVX-512, on both sides. XLA and its LAPACK are kept to
one thread, as ulam is: threads that wait for each other spin, and take several times the CPU time for small matrices.
With `--all-threads` they do as JAX has them by itself.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Density = Callable[[Any], Any]

POINTS = 8
BATCH_SECONDS = 0.02
SAME = 1e-8
SMALLEST, MEAN = 1.2, 4.0
"""What no ratio may be below, and what the geometric mean may not."""

TARGETS = {"x86-64-v3": "AVX2", "x86-64-v4": "AVX512"}
"""XLA's names of processors."""

LOGISTIC = """
data { int N; int K; matrix[N, K] X; array[N] int<lower=0, upper=1> y; }
parameters { real alpha; vector[K] beta; }
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 1);
  y ~ bernoulli_logit(alpha + X * beta);
}
"""

HIERARCHICAL = """
data { int N; int J; array[N] int<lower=1, upper=J> group; vector[N] x; vector[N] y; }
parameters { real mu; real<lower=0> tau; vector[J] z; real beta; real<lower=0> sigma; }
model {
  vector[J] alpha = mu + tau * z;
  mu ~ normal(0, 5);
  tau ~ normal(0, 1);
  z ~ std_normal();
  beta ~ normal(0, 1);
  sigma ~ normal(0, 1);
  y ~ normal(alpha[group] + beta * x, sigma);
}
"""

MIXTURE = """
data { int N; vector[N] y; }
parameters { ordered[2] mu; array[2] real<lower=0> sigma; real<lower=0, upper=1> theta; }
model {
  sigma ~ normal(0, 2);
  mu ~ normal(0, 2);
  theta ~ beta(5, 5);
  for (n in 1:N)
    target += log_mix(theta, normal_lpdf(y[n] | mu[1], sigma[1]), normal_lpdf(y[n] | mu[2], sigma[2]));
}
"""

GAUSSIAN_PROCESS = """
data { int N; array[N] real x; vector[N] y; }
parameters { real<lower=0> rho; real<lower=0> alpha; real<lower=0> sigma; }
model {
  matrix[N, N] K = add_diag(gp_exp_quad_cov(x, alpha, rho), square(sigma));
  rho ~ inv_gamma(5, 5);
  alpha ~ std_normal();
  sigma ~ std_normal();
  y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(K));
}
"""


class Model(NamedTuple):
    """A density in both languages, with simulated data. `in_jax` is a function of the unconstrained parameters."""

    name: str
    code: str
    data: dict[str, Any]
    dim: int
    in_jax: Callable[[Any], Density]


def logistic(rows: int, columns: int) -> Model:
    generator = np.random.default_rng(1)
    x = generator.normal(size=(rows, columns))
    y = generator.random(rows) < 1 / (1 + np.exp(-(0.3 + x @ generator.normal(size=columns))))

    def in_jax(jax: Any) -> Density:
        jnp, matrix, sign = jax.numpy, jax.numpy.asarray(x), jax.numpy.asarray(1.0 - 2.0 * y)

        def density(theta: Any) -> Any:
            alpha, beta = theta[0], theta[1:]
            prior = -0.5 * (alpha / 2) ** 2 - 0.5 * beta @ beta
            logits = sign * (alpha + matrix @ beta)
            # stable, and in less time than jax.nn.softplus
            return prior - (jnp.maximum(logits, 0) + jnp.log1p(jnp.exp(-jnp.abs(logits)))).sum()

        return density

    data = {"N": rows, "K": columns, "X": x, "y": y.astype(int)}
    return Model(f"logistic-{rows}x{columns}", LOGISTIC, data, columns + 1, in_jax)


def hierarchical(groups: int, rows: int) -> Model:
    generator = np.random.default_rng(2)
    group = generator.integers(0, groups, rows)
    x = generator.normal(size=rows)
    y = 1 + generator.normal(size=groups)[group] + 0.5 * x + 0.7 * generator.normal(size=rows)

    def in_jax(jax: Any) -> Density:
        jnp = jax.numpy
        indices, covariate, outcome = jnp.asarray(group), jnp.asarray(x), jnp.asarray(y)

        def density(theta: Any) -> Any:
            mu, log_tau, z, beta, log_sigma = theta[0], theta[1], theta[2 : 2 + groups], theta[-2], theta[-1]
            tau, sigma = jnp.exp(log_tau), jnp.exp(log_sigma)
            prior = -0.5 * ((mu / 5) ** 2 + tau**2 + z @ z + beta**2 + sigma**2)
            residual = (outcome - (mu + tau * z)[indices] - beta * covariate) / sigma
            return prior + log_tau + log_sigma - 0.5 * residual @ residual - rows * log_sigma

        return density

    data = {"N": rows, "J": groups, "group": group + 1, "x": x, "y": y}
    return Model(f"hierarchical-{groups}", HIERARCHICAL, data, groups + 4, in_jax)


def mixture(rows: int) -> Model:
    generator = np.random.default_rng(3)
    y = np.where(generator.random(rows) < 0.4, generator.normal(-1.5, 0.8, rows), generator.normal(1.5, 1.1, rows))

    def in_jax(jax: Any) -> Density:
        jnp, outcome = jax.numpy, jax.numpy.asarray(y)

        def density(theta: Any) -> Any:
            mu = jnp.stack([theta[0], theta[0] + jnp.exp(theta[1])])
            log_sigma = theta[2:4]
            sigma = jnp.exp(log_sigma)
            weights = jnp.stack([jax.nn.log_sigmoid(theta[4]), jax.nn.log_sigmoid(-theta[4])])
            # beta(5, 5) and the Jacobian of theta
            prior = -0.5 * (sigma @ sigma + mu @ mu) / 4 + 5 * weights.sum()
            first, second = (weights[k] - log_sigma[k] - 0.5 * ((outcome - mu[k]) / sigma[k]) ** 2 for k in range(2))
            return prior + theta[1] + log_sigma.sum() + jnp.logaddexp(first, second).sum()

        return density

    return Model(f"mixture-{rows}", MIXTURE, {"N": rows, "y": y}, 5, in_jax)


def gaussian_process(rows: int) -> Model:
    generator = np.random.default_rng(4)
    x = np.sort(generator.uniform(-3, 3, rows))
    y = np.sin(2 * x) + 0.3 * generator.normal(size=rows)

    def in_jax(jax: Any) -> Density:
        jnp, outcome = jax.numpy, jax.numpy.asarray(y)
        squares = jnp.asarray((x[:, None] - x[None, :]) ** 2)

        def density(theta: Any) -> Any:
            rho, alpha, sigma = jnp.exp(theta)
            covariance = alpha**2 * jnp.exp(-0.5 / rho**2 * squares) + sigma**2 * jnp.eye(rows)
            factor = jnp.linalg.cholesky(covariance)
            whitened = jax.scipy.linalg.solve_triangular(factor, outcome, lower=True)
            prior = -6 * theta[0] - 5 / rho - 0.5 * alpha**2 - 0.5 * sigma**2 + theta.sum()
            return prior - 0.5 * whitened @ whitened - jnp.log(jnp.diagonal(factor)).sum()

        return density

    return Model(f"gaussian-process-{rows}", GAUSSIAN_PROCESS, {"N": rows, "x": x, "y": y}, 3, in_jax)


MODELS = (
    logistic(5000, 8), hierarchical(100, 2000), mixture(1000), gaussian_process(60), gaussian_process(200),
)  # fmt: skip


# ---------------------------------------------------------------------- the sides


class InJax:
    """`evaluate` gives value and gradient, `run` makes a number of calls."""

    def __init__(self, model: Model, points: Array, compiled_loop: bool) -> None:
        import jax

        jax.config.update("jax_enable_x64", True)
        both = jax.value_and_grad(model.in_jax(jax))
        self._both = jax.jit(both)
        self._points = [jax.device_put(point) for point in points]
        self._run = self._python_loop
        if compiled_loop:
            stacked = jax.numpy.asarray(points)

            def one(index: Any, sums: Any) -> Any:
                value, gradient = both(stacked[index % len(points)])
                return sums[0] + value, sums[1] + gradient

            zero = (jax.numpy.zeros(()), jax.numpy.zeros(model.dim))
            loop = jax.jit(lambda count: jax.lax.fori_loop(0, count, one, zero))
            self._run = lambda count: jax.block_until_ready(loop(count))

    def _python_loop(self, count: int) -> Any:
        both, points = self._both, self._points
        for call in range(count):
            both(points[call % POINTS])[1].block_until_ready()

    def evaluate(self, point: Array) -> tuple[float, Array]:
        value, gradient = self._both(point)
        return float(value), np.asarray(gradient)

    def run(self, count: int) -> None:
        self._run(count)


class InUlam:
    """The same of the Stan program."""

    def __init__(self, model: Model, points: Array, opt_level: int, compiled_loop: bool) -> None:
        from ulam import StanModel

        self._model = StanModel(model.code, model.data, opt_level=opt_level)
        if self._model.param_unc_num() != model.dim:
            raise ValueError(f"{model.name}: {self._model.param_unc_num()} parameters in Stan, {model.dim} in JAX")
        self._points = list(points)
        self._run = self._compiled_loop if compiled_loop else self._python_loop

    def _python_loop(self, count: int) -> None:
        gradient, points = self._model.log_density_gradient, self._points
        for call in range(count):
            gradient(points[call % POINTS])

    def _compiled_loop(self, count: int) -> None:
        for point in self._points:
            self._model.time_gradients(point, max(1, count // POINTS))

    def evaluate(self, point: Array) -> tuple[float, Array]:
        return self._model.log_density_gradient(point)

    def run(self, count: int) -> None:
        self._run(count)


def serve(pipe: Connection, which: str, index: int, options: argparse.Namespace) -> None:
    """The work of a process: answers for one side of a model until it is asked for no more."""
    model = MODELS[index]
    points, compiled = points_of(model), options.calls == "compiled"
    try:
        side = InJax(model, points, compiled) if which == "jax" else InUlam(model, points, options.opt_level, compiled)
        pipe.send([side.evaluate(point) for point in points])
        while calls := pipe.recv():
            start = time.process_time()
            side.run(calls)
            pipe.send(time.process_time() - start)
    except Exception as problem:  # noqa: BLE001 - the other process tells
        pipe.send(f"{which}: {type(problem).__name__}: {problem}")


class Process:
    """One side in a process of its own."""

    def __init__(self, which: str, index: int, options: argparse.Namespace) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=serve, args=(other, which, index, options))
        self._process.start()
        other.close()
        self.found: list[tuple[float, Array]] = self._answer()

    def _answer(self) -> Any:
        answer = self._pipe.recv()
        if isinstance(answer, str):
            raise RuntimeError(answer)
        return answer

    def seconds(self, calls: int) -> float:
        """CPU time of that many calls, of all threads."""
        self._pipe.send(calls)
        return self._answer()

    def close(self) -> None:
        self._pipe.send(0)
        self._process.join()


@dataclass(frozen=True)
class Row:
    """Nanoseconds per gradient, and the largest difference of gradients and values."""

    name: str
    jax_ns: float
    ulam_ns: float
    difference: float

    @property
    def ratio(self) -> float:
        """How many times faster than JAX."""
        return self.jax_ns / self.ulam_ns

    def line(self) -> str:
        """The line of the report."""
        note = "  DIFFERENT" if not self.difference <= SAME else ""
        return f"{self.name:24} {self.jax_ns:12.0f} {self.ulam_ns:12.0f} {self.ratio:8.2f} {self.difference:.1e}{note}"


def points_of(model: Model) -> Array:
    """Points near each other, away from the origin."""
    index = np.arange(model.dim)
    return np.array([0.3 * np.sin(1.7 * index + 0.4) + 0.1 * np.sin(1.3 * index + 0.9 * k) for k in range(POINTS)])


def difference(sides: tuple[Process, Process]) -> float:
    """The largest one over all points, relative to what is above 1; values are compared with that at the first."""
    values = np.array([[value - side.found[0][0] for value, _ in side.found] for side in sides])
    gradients = np.array([[gradient for _, gradient in side.found] for side in sides])
    return max(float(np.max(np.abs(a - b) / np.maximum(1, np.abs(b)))) for a, b in (values, gradients))


def calls_per_batch(side: Process) -> int:
    calls = POINTS
    side.seconds(calls)
    while (took := side.seconds(calls)) < BATCH_SECONDS:
        calls = POINTS * math.ceil(min(100 * calls, 1.2 * calls * BATCH_SECONDS / max(took, 1e-6)) / POINTS)
    return calls


def measure(index: int, options: argparse.Namespace) -> Row:
    """Both sides of a model by turns."""
    sides = (Process("jax", index, options), Process("ulam", index, options))
    calls = [calls_per_batch(side) for side in sides]
    best = [math.inf, math.inf]
    for turn in range(options.rounds):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            best[which] = min(best[which], sides[which].seconds(calls[which]) / calls[which])
    for side in sides:
        side.close()
    return Row(MODELS[index].name, 1e9 * best[0], 1e9 * best[1], difference(sides))


def surroundings(options: argparse.Namespace) -> dict[str, str]:
    """The variables for another processor, and for fewer threads: both libraries read them when they are loaded."""
    environment, flags = dict(os.environ), os.environ.get("XLA_FLAGS", "").split()
    if options.target is not None:
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
        from processor_levels import surroundings

        environment = surroundings(options.target[-2:])
        flags.append(f"--xla_cpu_max_isa={TARGETS[options.target]}")
    if not options.all_threads:
        environment.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
        flags.append("--xla_cpu_multi_thread_eigen=false")
    return {**environment, "XLA_FLAGS": " ".join(flags), "JAX_PLATFORMS": "cpu"}


def report(rows: list[Row]) -> None:
    ratios = [row.ratio for row in rows]
    slowest = min(rows, key=lambda row: row.ratio)
    print(
        f"geometric mean {statistics.geometric_mean(ratios):.2f} (the bar: {MEAN}), smallest {slowest.ratio:.2f} "
        f"({slowest.name}; the bar: {SMALLEST})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", default=[], help="models whose name contains this")
    parser.add_argument("--rounds", type=int, default=15, help="batches of each side")
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--calls", choices=("python", "compiled"), default="python", help="where the loop of calls is")
    parser.add_argument("--target", choices=TARGETS, help="both sides as for this processor, not this machine's")
    parser.add_argument("--all-threads", action="store_true", help="XLA and LAPACK with all threads they like")
    parser.add_argument("--json", type=Path, help="results as JSON")
    parser.add_argument("--prepared", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.prepared:
        command = [sys.executable, __file__, "--prepared", *sys.argv[1:]]
        return subprocess.run(command, env=surroundings(options)).returncode
    try:
        import jax
    except ImportError:
        print("there is no JAX here: pip install jax", file=sys.stderr)
        return 2
    threads = "all threads" if options.all_threads else "one thread"
    print(f"# JAX {jax.__version__}, {threads}, target {options.target or 'native'}, loop of calls {options.calls}")
    print(f"# {'model':22} {'JAX ns':>12} {'ulam ns':>12} {'ratio':>8} difference")
    rows: list[Row] = []
    for index, model in enumerate(MODELS):
        if not options.only or any(text in model.name for text in options.only):
            rows.append(measure(index, options))
            print(rows[-1].line(), flush=True)
    if not rows:
        print(f"no model has such a name; there are {', '.join(model.name for model in MODELS)}", file=sys.stderr)
        return 2
    report(rows)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(row) for row in rows], indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
