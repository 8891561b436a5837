"""Sampling speed: CPU seconds of warmup and draws per effective draw, against stanli and Stan's own services.

    python benchmarks/sampling_speed.py --posteriordb DIR --results FILE [--only MODEL ...] [--seeds N] [--without NAME]

Four chains of 1,000 iterations of warmup and 1,000 draws with the default settings of each side; models are compiled
beforehand and not timed. The figure of a run is the processor time of all its threads divided by the smallest bulk ESS
of the parameters; that of a model is the median over the seeds. Runs take turns, seed by seed. A run with an R-hat of
1.01 or more does not count, nor one with a chain that has no draws, and seeds go on until each side has its number, or
twice as many were tried.

Needs `stanli`, and `httpstan` with g++ for Stan's services (hmc_nuts_diag_e_adapt, compiled with its own flags, -O3).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import multiprocessing
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from posteriordb import Posterior, posteriors

Array = npt.NDArray[np.float64]

EXAMPLES = Path(__file__).parent.parent / "examples"
FROM_POSTERIORDB = (
    "radon_mn-radon_hierarchical_intercept_noncentered",
    "hmm_example-hmm_example",
    "hudson_lynx_hare-lotka_volterra",
)
CHAINS, WARMUP, DRAWS = 4, 1000, 1000
CONVERGED = 1.01

LOGISTIC = """
data { int N; int K; matrix[N, K] X; array[N] int<lower=0, upper=1> y; }
parameters { real alpha; vector[K] beta; }
model {
  alpha ~ normal(0, 2);
  beta ~ normal(0, 1);
  y ~ bernoulli_logit(alpha + X * beta);
}
"""


class NoDraws(Exception):
    """A chain has ended without any, as where it found no initial point."""


class Workload(NamedTuple):
    """A program with its data."""

    name: str
    code: str
    data: dict[str, Any]


def logistic(rows: int = 5000, columns: int = 10) -> Workload:
    """A logistic regression with simulated data."""
    generator = np.random.default_rng(5000)
    x = generator.normal(size=(rows, columns))
    slopes = generator.normal(size=columns)
    y = generator.random(rows) < 1 / (1 + np.exp(-(0.3 + x @ slopes)))
    return Workload(
        "logistic_regression", LOGISTIC, {"N": rows, "K": columns, "X": x.tolist(), "y": y.astype(int).tolist()}
    )


def workloads(folder: Path) -> list[Workload]:
    """The five models."""
    schools = EXAMPLES / "eight_schools.stan"
    found = [
        Workload("eight_schools", schools.read_text(), json.loads(schools.with_suffix(".json").read_text())),
        logistic(),
    ]
    by_name: dict[str, Posterior] = {posterior.name: posterior for posterior in posteriors(folder)}
    return found + [Workload(n, by_name[n].code, json.loads(by_name[n].data)) for n in FROM_POSTERIORDB]


# ---------------------------------------------------------------- sides


class Side(Protocol):
    """What samples a model: draws (chains, draws, elements) of its parameters, and processor seconds."""

    def run(self, seed: int) -> tuple[Array, float]: ...


class OurSide:
    """ulam."""

    def __init__(self, load: Workload) -> None:
        import ulam

        self.model = ulam.StanModel(load.code, data=load.data)
        self.model.sample(chains=1, warmup=20, draws=20, progress=False)
        self.names = self.model.param_names()

    def run(self, seed: int) -> tuple[Array, float]:
        began = time.process_time()
        fit = self.model.sample(chains=CHAINS, warmup=WARMUP, draws=DRAWS, seed=seed, progress=False)
        seconds = time.process_time() - began
        return fit.values[..., : len(self.names)], seconds


class Stanli:
    """stanli with its default options."""

    def __init__(self, load: Workload) -> None:
        import stanli  # pyright: ignore[reportMissingImports]

        import ulam

        self.model = stanli.Model(stan_code=load.code, data=load.data)
        self.parameters = [v.name for v in ulam.StanModel(load.code, data=load.data).parameter_variables()]

    def run(self, seed: int) -> tuple[Array, float]:
        began = time.process_time()
        fit = self.model.sample(chains=CHAINS, warmup=WARMUP, samples=DRAWS, seed=seed, refresh=0)
        seconds = time.process_time() - began
        return np.concatenate(
            [np.asarray(fit.draws(name), dtype=float).reshape(CHAINS, DRAWS, -1) for name in self.parameters], axis=-1
        ), seconds


class StanServices:
    """Stan's `hmc_nuts_diag_e_adapt`, as httpstan compiles it; each chain in a process of its own."""

    def __init__(self, load: Workload) -> None:
        import httpstan.models  # pyright: ignore[reportMissingImports]

        import ulam

        self.data = load.data
        self.name = httpstan.models.calculate_model_name(load.code)
        self.count = len(ulam.StanModel(load.code, data=load.data).param_names())
        try:
            httpstan.models.import_services_extension_module(self.name)
        except KeyError:
            # With other flags than those of the services, which are compiled already, it does not run.
            asyncio.run(httpstan.models.build_services_extension_module(load.code))

    def run(self, seed: int) -> tuple[Array, float]:
        chains = [self._chain(seed, chain) for chain in range(1, CHAINS + 1)]
        return np.stack([draws for draws, _ in chains]), sum(seconds for _, seconds in chains)

    def _chain(self, seed: int, chain: int) -> tuple[Array, float]:
        """Draws come as lines of JSON over sockets, which a thread reads meanwhile."""
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listener:
            place = os.path.join(folder, "s")
            listener.bind(place)
            listener.listen(8)
            lines: list[bytes] = []
            receiver = threading.Thread(target=_receive, args=(listener, lines), daemon=True)
            receiver.start()
            ours, theirs = multiprocessing.Pipe()
            process = multiprocessing.get_context("fork").Process(
                target=_services, args=(self.name, place, self.data, seed, chain, theirs)
            )
            process.start()
            seconds: float = ours.recv()
            process.join()
            receiver.join(60)
        header: list[str] = []
        rows: list[list[float]] = []
        for line in b"".join(lines).splitlines():
            if b'"topic":"sample"' not in line.replace(b" ", b""):
                continue
            values = json.loads(line)["values"]
            if isinstance(values, dict):
                header = header or list(values)
                rows.append([float(value) for value in values.values()])
        if not rows:
            raise NoDraws
        first = next(k for k, name in enumerate(header) if not name.endswith("__"))
        return np.array(rows)[:, first : first + self.count], seconds


WRITERS = 4
"""Of a chain: log, initial values, draws, diagnostics, each with a connection of its own."""


def _receive(listener: socket.socket, lines: list[bytes]) -> None:
    """What all writers send until they close their connections."""

    def read(connection: socket.socket) -> None:
        parts: list[bytes] = []
        while part := connection.recv(1 << 16):
            parts.append(part)
        lines.append(b"".join(parts))

    readers = [threading.Thread(target=read, args=(listener.accept()[0],)) for _ in range(WRITERS)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def _services(name: str, place: str, data: dict[str, Any], seed: int, chain: int, told: Any) -> None:
    """Runs one chain; in a process of its own."""
    import httpstan.models  # pyright: ignore[reportMissingImports]
    import httpstan.services.arguments as arguments  # pyright: ignore[reportMissingImports]

    module = httpstan.models.import_services_extension_module(name)
    method = arguments.Method["SAMPLE"]
    known = arguments.function_arguments("hmc_nuts_diag_e_adapt", module)
    options = {
        argument: arguments.lookup_default(method, argument) for argument in known if argument not in ("data", "init")
    }
    options |= {
        "init": {},
        "num_warmup": WARMUP,
        "num_samples": DRAWS,
        "random_seed": seed,
        "chain": chain,
        "refresh": 0,
    }
    began = time.process_time()
    module.hmc_nuts_diag_e_adapt_wrapper(place, data=data, **{k: v for k, v in options.items() if k in known})
    told.send(time.process_time() - began)


SIDES: dict[str, type[Any]] = {"ulam": OurSide, "stanli": Stanli, "services": StanServices}


# ---------------------------------------------------------------- runs


def measure(side: Side, seed: int) -> dict[str, float]:
    """A run: seconds, smallest bulk ESS, largest R-hat."""
    from ulam.runtime.sampling.draw_statistics import ess_bulk, rhat

    try:
        draws, seconds = side.run(seed)
    except NoDraws:
        return {"seconds": math.nan, "ess": math.nan, "rhat": math.inf}
    moving = draws[..., draws.reshape(-1, draws.shape[-1]).std(axis=0) > 0]
    return {"seconds": seconds, "ess": float(np.min(ess_bulk(moving))), "rhat": float(np.max(rhat(moving)))}


def figure(runs: Sequence[dict[str, float]], count: int) -> float:
    """The median of CPU seconds per effective draw, of the first runs that converged."""
    good = [run["seconds"] / run["ess"] for run in runs if run["rhat"] < CONVERGED][:count]
    return statistics.median(good) if good else math.nan


def processor() -> str:
    """What it was measured on."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")


def compare(load: Workload, chosen: Sequence[str], seeds: int) -> dict[str, list[dict[str, float]]]:
    """All runs of a model."""
    sides = {name: SIDES[name](load) for name in chosen}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in sides}
    for seed in range(1, 2 * seeds + 1):
        for name, side in sides.items():
            if sum(run["rhat"] < CONVERGED for run in runs[name]) < seeds:
                runs[name].append(measure(side, seed))
    return runs


def line(name: str, runs: dict[str, list[dict[str, float]]], seeds: int) -> tuple[str, float]:
    """A model's figures as a line, and how many times as fast we are as the better of the others."""
    figures = {side: figure(found, seeds) for side, found in runs.items()}
    others = [value for side, value in figures.items() if side != "ulam" and not math.isnan(value)]
    ratio = min(others) / figures["ulam"] if others else math.nan
    parts = []
    for side, value in figures.items():
        left_out = sum(run["rhat"] >= CONVERGED for run in runs[side])
        without = f" ({left_out} of {len(runs[side])} runs left out)" if left_out else ""
        seconds = statistics.median(run["seconds"] for run in runs[side])
        parts.append(f"{side} {1e3 * value:.3f} ms/ESS, {seconds:.2f} s{without}")
    return f"{name:<52} {'; '.join(parts)}: {ratio:.2f} times as fast", ratio


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, required=True)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--without", action="append", default=[], choices=list(SIDES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--build", action="store_true", help="only compile the models of Stan's services")
    options = parser.parse_args(arguments)
    chosen = [name for name in SIDES if name not in options.without]
    results: dict[str, Any] = json.loads(options.results.read_text()) if options.results.exists() else {}
    print(f"on {processor()}", flush=True)
    ratios: list[float] = []
    for load in workloads(options.posteriordb):
        if options.only and load.name not in options.only:
            continue
        if options.build:
            StanServices(load)
            print(f"{load.name} compiled", flush=True)
            continue
        if load.name not in results:
            results[load.name] = compare(load, chosen, options.seeds)
            options.results.write_text(json.dumps(results))
        text, ratio = line(load.name, results[load.name], options.seeds)
        ratios.append(ratio)
        print(text, flush=True)
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"geometric mean {mean:.2f}, smallest {min(ratios):.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
