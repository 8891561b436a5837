"""What the sampler itself costs: nanoseconds per gradient beside the gradient, for trees of several sizes.

    python benchmarks/sampler_share.py [--parameters N] [--draws N] [--rounds N]

Draws of independent standard normals with metrics and step sizes that are given, so that iterations have about as many
leapfrog steps as asked for; processor time of a whole chain in C (momenta, trees, copies, statistics, blocks of draws),
less that of as many gradients alone, by turns, the best of each. Values of generated quantities are not part of it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import ulam
from ulam.runtime.sampling.native_chain import NativeChain
from ulam.runtime.sampling.settings import SamplingSettings

PROGRAM = "parameters {{ vector[{n}] theta; }} model {{ theta ~ std_normal(); }}"
STEP_SIZES = (1.2, 0.7, 0.35, 0.2, 0.1)
"""Of trees of 3 to 63 steps with 10 parameters."""
METRICS = ("diag", "dense")


def chain_seconds(model: ulam.StanModel, metric: str, step_size: float, draws: int) -> tuple[float, int]:
    """Processor time of a chain without warmup, and its gradients."""
    settings = SamplingSettings(warmup=0, draws=draws, metric=metric)
    n = model.param_unc_num()
    unit = model.density_gradient_unit()
    chain = NativeChain(settings, unit, model.new_context(), np.zeros(n), None, step_size, 1, draws)
    begin = time.thread_time()
    while chain.phase != "done":
        chain.run(1e9)
    return time.thread_time() - begin, chain.state.gradients


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=int, default=10)
    parser.add_argument("--draws", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    model = ulam.StanModel(PROGRAM.format(n=options.parameters))
    theta = np.random.default_rng(1).normal(size=options.parameters)
    print(f"{options.parameters} parameters; nanoseconds per gradient")
    print("metric  gradients/draw  own share  gradient")
    for metric in METRICS:
        for step_size in STEP_SIZES:
            whole = alone = float("inf")
            gradients = 0
            for _ in range(options.rounds):
                seconds, gradients = chain_seconds(model, metric, step_size, options.draws)
                whole = min(whole, seconds / gradients)
                alone = min(alone, model.time_gradients(theta, 200_000) / 200_000)
            per_draw = gradients / options.draws
            print(f"{metric:6}  {per_draw:14.1f}  {1e9 * (whole - alone):9.0f}  {1e9 * alone:8.0f}", flush=True)


if __name__ == "__main__":
    main()
