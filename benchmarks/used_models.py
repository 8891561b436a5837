"""Models that are used again and again: the same bits come out, whatever was done with them before.

    python benchmarks/used_models.py [--programs groups] [--first 0] [--count 20] [--data 6] [--threads 6]

One program (as `row_layouts.py` has them) is bound with different data, whose layouts differ, and each model is
evaluated at a few points. Then the same is asked of models that were bound again, pickled, evaluated from several
threads, stopped by time limits, and of children of fork, which bind and evaluate. Told is what gives other bits, or
hangs. The exit status is 1 if anything did.
"""

from __future__ import annotations

import argparse
import pickle
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))

from forks import in_child
from row_layouts import OTHER_DATA, PROGRAMS

import ulam

SIZES = (0.3, 0.5, 1.0, 30.0)
LIMITS = (1e-7, 1e-6, 1e-5, 1e-4)
"""Seconds: most end evaluations before they have begun, or in their midst."""
EVALUATIONS = 60
"""Of each thread."""

Bits = bytes | str


class Used(NamedTuple):
    """A model with its data, points, and what it made of them at first."""

    model: ulam.StanModel
    data: dict[str, Any]
    points: list[np.ndarray[Any, Any]]
    bits: list[Bits]

    def is_as_before(self, model: ulam.StanModel) -> bool:
        """Whether a model of the same program and data gives the same."""
        return all(bits_at(model, point) == bits for point, bits in zip(self.points, self.bits, strict=True))


def bits_at(model: ulam.StanModel, point: np.ndarray[Any, Any]) -> Bits:
    """The log density and its gradient, or the text of the error."""
    try:
        value, gradient = model.log_density_gradient(point)
    except ulam.UlamError as error:
        return str(error)
    return np.array([value, *gradient]).tobytes()


def used(program: ulam.StanProgram, data: dict[str, Any], seed: int) -> Used:
    """A model that has been evaluated once."""
    model, rng = program(data), np.random.default_rng(seed)
    points = [rng.normal(0, size, model.param_unc_num()) for size in SIZES]
    return Used(model, data, points, [bits_at(model, point) for point in points])


def differences(program: ulam.StanProgram, models: list[Used], n_threads: int) -> Iterator[str]:
    """After what models give something else."""
    for each in models:
        if not each.is_as_before(program(each.data)) or not each.is_as_before(each.model):
            yield "bound again"
        if not each.is_as_before(pickle.loads(pickle.dumps(each.model))):
            yield "pickled"
    wrong: list[int] = []

    def evaluate(number: int) -> None:
        rng = random.Random(number)
        for _ in range(EVALUATIONS):
            each, at = rng.choice(models), rng.randrange(len(SIZES))
            if bits_at(each.model, each.points[at]) != each.bits[at]:
                wrong.append(number)

    threads = [threading.Thread(target=evaluate, args=(number,)) for number in range(n_threads)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        yield f"{len(wrong)} evaluations beside others"
    for each in models:
        for limit in LIMITS:
            try:
                each.model.log_density_gradient(each.points[0], time_limit=limit)
            except (ulam.UlamError, TimeoutError):
                pass
            if not each.is_as_before(each.model):
                yield f"after a time limit of {limit}"
    if not in_child(lambda: all(each.is_as_before(each.model) for each in models)):
        yield "in a child"
    if not in_child(lambda: all(each.is_as_before(program(each.data)) for each in models)):
        yield "bound in a child"
    if not all(each.is_as_before(each.model) for each in models):
        yield "at the end"


def main() -> int:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--programs", choices=PROGRAMS, default="groups")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--data", type=int, default=6, help="how many data a program gets")
    parser.add_argument("--threads", type=int, default=6)
    asked = parser.parse_args()
    program_of, data_of = PROGRAMS[asked.programs]
    failures = 0
    for seed in range(asked.first, asked.first + asked.count):
        program, models = ulam.StanProgram(program_of(seed)), []
        for number in range(asked.data):
            try:
                models.append(used(program, data_of(seed + number * OTHER_DATA), number))
            except ulam.UlamError:  # data that the program rejects
                continue
        found = list(differences(program, models, asked.threads)) if models else []
        failures += bool(found)
        for told in found:
            print(f"{seed}: {told}", flush=True)
    print(f"{asked.count} programs, {failures} with differences")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
