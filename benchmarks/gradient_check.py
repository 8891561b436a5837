"""Gradients on the tape against compiled ones: `check_gradient` at several points of every model of a corpus.

    python benchmarks/gradient_check.py [--posteriordb DIR] [--only NAME] [--points N]

Without a posteriordb checkout the examples are checked. One line for each model: greatest error of the gradient at
level 0 and at level 3 against the tape, whether the traced value has the bits of the untraced one, nodes of the tape,
seconds for compiling all variants and the first check, microseconds per node of the last walk. A model that does not
agree is followed by what `check_gradient` says.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from posteriordb import posteriors  # noqa: E402

from ulam.runtime.errors import ProgramError, UlamError  # noqa: E402
from ulam.runtime.model import StanModel  # noqa: E402
from ulam.trace import Axis, TraceContext, query  # noqa: E402

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
SOLVERS = ("ode_", "integrate_ode", "algebra_solver", "solve_newton", "solve_powell", "integrate_1d", "dae")
TRIES = 40


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--posteriordb", type=Path, help="a checkout")
    parser.add_argument("--only", action="append", help="names of models")
    parser.add_argument("--points", type=int, default=5)
    arguments = parser.parse_args()
    count = agreeing = 0
    for name, source, data in corpus(arguments.posteriordb):
        if arguments.only and name not in arguments.only:
            continue
        count += 1
        try:
            line, agrees = checked(source, data, arguments.points)
        except UlamError as problem:
            print(f"{name:60s} {type(problem).__name__}: {str(problem).splitlines()[0][:160]}", flush=True)
            continue
        agreeing += agrees
        print(f"{name:60s} {line}", flush=True)
    print(f"{agreeing} of {count} models agree")
    return 0


def corpus(folder: Path | None) -> Iterator[tuple[str, Any, Any]]:
    """Name, source and data of each model."""
    if folder is None:
        for path in sorted(EXAMPLES.glob("*.stan")):
            yield path.stem, path, path.with_suffix(".json")
        return
    for posterior in posteriors(folder):
        yield posterior.name, posterior.code, posterior.data


def checked(source: Any, data: Any, points: int) -> tuple[str, bool]:
    """What is printed of a model, and whether all gradients agree at all points."""
    start = time.perf_counter()
    model = StanModel(source, data)
    text = model.source[0]
    rtol = 1e-8 if any(word in text for word in SOLVERS) else 1e-12
    rng = np.random.default_rng(0)
    worst: dict[str, float] = {}
    complaints: list[str] = []
    exact, done, compiling = True, 0, 0.0
    theta = np.zeros(0)
    for attempt in range(TRIES):
        spread = 0.9 ** max(0, attempt - points)  # where programs reject, nearer to 0
        theta = rng.uniform(-spread, spread, model.param_unc_num())
        try:
            check = model.check_gradient(theta, rtol=rtol, differences=False)
        except ProgramError:
            continue
        compiling = compiling or time.perf_counter() - start
        for name, error in check.errors.items():
            worst[name] = max(worst.get(name, 0.0), error)
        traced, untraced = check.values["tape"], check.values["level 0"]
        exact &= traced == untraced or (traced != traced and untraced != untraced)
        if not check:
            complaints.append(str(check))
        done += 1
        if done == points:
            break
    if not done:
        return "no point inside of the support", False
    nodes, seconds = walk(model, theta)
    errors = " ".join(f"{error:8.1e}" for error in worst.values())
    line = f"{errors} {'exact' if exact else 'OTHER'} {nodes:8d} {compiling:6.1f} s {seconds / nodes * 1e6:6.1f} µs"
    return "\n".join([line, *complaints[:1]]), exact and not complaints


def walk(model: StanModel, theta: np.ndarray) -> tuple[int, float]:
    """Nodes of a tape, and seconds of a walk over it, pullbacks having been compiled before."""
    trace = model.track_density(theta, context=TraceContext(containers="copy")).trace
    if trace.failed:
        return 1, 0.0
    trace.adjoint()
    start = time.perf_counter()
    trace.adjoint()
    seconds = time.perf_counter() - start
    return 1 + sum(1 for _ in query(trace.root, Axis.DESCENDANT)), seconds


if __name__ == "__main__":
    raise SystemExit(main())
