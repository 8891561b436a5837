"""What it costs that a gradient can be interrupted, over a posteriordb checkout.

    python benchmarks/interrupts.py --posteriordb DIR [--only NAME] [--rounds N] [--json FILE]

Both sides run the same code in the same process by turns: in a context that SIGINT and time limits may stop, as
`StanModel` has them, and in one that they may not, as it is when ulam is called from C. CPU time of the thread, best of
the rounds. `in a row`: gradients in a loop in C, as `ulam bench` times them. `from Python`: one `ctypes` call for each;
the difference counts against the time of `StanModel.log_density_gradient`, which does more around it.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from posteriordb import posteriors

from ulam.runtime.c_library import library
from ulam.runtime.comparison import first_points
from ulam.runtime.model import StanModel
from ulam.runtime.native import Context

BATCH_SECONDS = 2e-3


@dataclass
class Cost:
    """Nanoseconds per gradient, without and with the possibility to stop it."""

    name: str
    row: tuple[float, float]
    single: tuple[float, float]
    method: float
    """Of `log_density_gradient`."""

    @property
    def ratios(self) -> tuple[float, float]:
        """How many times as long: in a row, from Python (the difference on the time of the method)."""
        return self.row[1] / self.row[0], 1 + (self.single[1] - self.single[0]) / self.method

    def line(self) -> str:
        """The line of the report."""
        row, single = self.ratios
        return f"{self.name:62} {self.row[0]:10.0f} ns {row:7.4f} {self.single[0]:10.0f} ns {single:7.4f}"


def best(sides: list[Callable[[int], None]], rounds: int) -> list[float]:
    """Nanoseconds of each side, the best of its batches; they take turns."""
    counts = [1 for _ in sides]
    for n, side in enumerate(sides):
        while seconds(side, counts[n]) < BATCH_SECONDS:
            counts[n] *= 2
    found = [math.inf for _ in sides]
    for number in range(rounds):
        for n in range(len(sides)) if number % 2 else reversed(range(len(sides))):
            found[n] = min(found[n], seconds(sides[n], counts[n]) / counts[n])
    return [1e9 * value for value in found]


def seconds(side: Callable[[int], None], count: int) -> float:
    start = time.thread_time()
    side(count)
    return time.thread_time() - start


def measured(name: str, model: StanModel, rounds: int) -> Cost:
    theta = first_points([model], None, 1)[0]
    model.log_density_gradient(theta)
    unit = next(unit for unit in model.loaded_units() if unit.name == "gradient_propto")
    gradient = np.zeros(len(theta))
    to, at = gradient.ctypes.data, theta.ctypes.data
    native = library()
    contexts = [Context(stoppable=False), Context(stoppable=True)]

    def in_a_row(context: Context) -> Callable[[int], None]:
        return lambda count: native.ulam_repeat_gradient(context.address, unit.entry, unit.bound, at, to, 1, count)

    def from_python(context: Context) -> Callable[[int], None]:
        run, address, entry, bound = context.run_gradient, context.address, unit.entry, unit.bound

        def side(count: int) -> None:
            for _ in range(count):
                run(address, entry, bound, at, to, 1)

        return side

    def method(count: int) -> None:
        for _ in range(count):
            model.log_density_gradient(theta, out=gradient)

    row = best([in_a_row(context) for context in contexts], rounds)
    *single, whole = best([*map(from_python, contexts), method], rounds)
    return Cost(name, (row[0], row[1]), (single[0], single[1]), whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--every", type=int, default=1, help="take every so many posteriors")
    parser.add_argument("--json")
    arguments = parser.parse_args()
    from pathlib import Path

    costs: list[Cost] = []
    chosen = [p for p in posteriors(Path(arguments.posteriordb)) if arguments.only in p.name]
    for posterior in chosen[:: arguments.every]:
        try:
            costs.append(measured(posterior.name, StanModel(posterior.code, posterior.data), arguments.rounds))
            print(costs[-1].line(), flush=True)
        except Exception as error:
            print(f"{posterior.name:62} FAILED {type(error).__name__}: {str(error).splitlines()[0]}", flush=True)
    for n, what in enumerate(("in a row", "from Python")):
        ratios = [cost.ratios[n] for cost in costs]
        print(f"{what}: geometric mean {statistics.geometric_mean(ratios):.4f}, largest {max(ratios):.4f}")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump([asdict(cost) for cost in costs], file)


if __name__ == "__main__":
    main()
