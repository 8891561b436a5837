"""Time of a gradient: stanli, by default and with fast_math=True, against ulam, over a posteriordb checkout.

    python benchmarks/against_stanli.py --posteriordb DIR --results FILE [--only NAME ...] [--rounds 3] [--table]

One machine, one run: levels 3 and 4 of ulam and both modes of stanli by turns, as `gradient_turns.py` says. The log
density is without constants and with the Jacobian. A run that was stopped goes on with its file of results.

Bars, of level 3: stanli's default takes at least 5 times as long on the geometric mean and longer on 97% of the
posteriors; with fast_math 1.8 times as long, and longer on 90%. The exit status is 1 if one is not reached.

Needs `stanli`, and a C++ compiler for the timed loop.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import os
import shutil
import statistics
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from gradient_turns import (
    SAME,
    CompiledSide,
    JobError,
    Side,
    add_result,
    answer,
    answer_of,
    driver,
    earlier_results,
    find_points,
    names_of_table,
    time_sides,
)  # fmt: skip
from posteriordb import Posterior, posteriors

LEVELS = {"level 3": 3, "level 4": 4}
MODES = {"default": False, "fast_math": True}
BARS = {"default": (5.0, 0.97), "fast_math": (1.8, 0.90)}
"""Times as fast on the geometric mean, and the share of posteriors on which ulam is faster."""


class StanliSide:
    """A model of stanli with data."""

    def __init__(self, loops: Path, code: str, data: str, *, fast_math: bool) -> None:
        import stanli  # pyright: ignore[reportMissingImports]

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model: Any = stanli.Model(stan_code=code, data=data, fast_math=fast_math)
        self.dim: int = self._model.n_unconstrained
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        self._run = ctypes.cast(stanli._lib.stanli_grad, pointer)
        self._time = ctypes.CDLL(str(loops)).stanli_time
        self._time.restype = ctypes.c_double
        self._time.argtypes = [pointer] * 3 + [i64] * 3

    def gradient(self, theta: np.ndarray) -> np.ndarray | None:
        """None if it is refused there, or not finite."""
        try:
            value, out = self._model.log_prob_grad(theta)
        except RuntimeError:
            return None
        return out if math.isfinite(value) and np.isfinite(out).all() else None

    def seconds(self, points: np.ndarray, calls: int) -> float:
        """CPU time of so many gradients."""
        return self._time(self._run, self._model._m, points.ctypes.data, len(points), self.dim, calls)


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """The work of a process: nanoseconds of each side by rounds, and differences from level 3."""
    import ulam

    code, data = (Path(job[name]).read_text(encoding="utf-8") for name in ("model", "data"))
    loops = Path(job["driver"])
    sides: dict[str, Side] = {
        name: CompiledSide(loops, ulam.StanModel(Path(job["model"]), data=data, opt_level=level))
        for name, level in LEVELS.items()
    }
    sides |= {name: StanliSide(loops, code, data, fast_math=fast) for name, fast in MODES.items()}
    dims = {name: side.dim for name, side in sides.items()}
    if len(set(dims.values())) > 1:
        raise ValueError(f"numbers of unconstrained parameters differ: {dims}")
    points, differences = find_points(sides)
    rounds = time_sides(list(sides.values()), points, job["rounds"], job["batches"])
    times = {name: [found[n] for found in rounds] for n, name in enumerate(sides)}
    return {"name": job["name"], "dim": dims["level 3"], "ns": times, "differences": differences}


def times_as_fast(result: dict[str, Any], side: str, base: str = "level 3") -> float:
    """How many times as long as `base` a side takes, of the best rounds."""
    return min(result["ns"][side]) / min(result["ns"][base])


def line(result: dict[str, Any]) -> str:
    """The line of the report."""
    if "problem" in result:
        return f"{result['name']:62} FAILED {result['problem']}"
    times = " ".join(f"{min(result['ns'][name]):11.0f}" for name in (*LEVELS, *MODES))
    ratios = " ".join(f"{times_as_fast(result, mode):8.2f}" for mode in MODES)
    others = [name for name, difference in result["differences"].items() if difference > SAME]
    note = f"  OTHER GRADIENTS: {', '.join(others)}" if others else ""
    return f"{result['name']:62} {result['dim']:5} {times} {ratios}{note}"


def summary(results: list[dict[str, Any]]) -> bool:
    """Prints what the bars are about; whether they are reached."""
    timed = [result for result in results if "problem" not in result]
    print(f"{len(timed)} posteriors, {len(results) - len(timed)} failed")
    fine = bool(timed)
    for level in LEVELS:
        for mode, (mean_bar, share_bar) in BARS.items() if timed else ():
            ratios = {result["name"]: times_as_fast(result, mode, level) for result in timed}
            mean = statistics.geometric_mean(ratios.values())
            faster = sum(ratio > 1 for ratio in ratios.values())
            slowest = sorted(ratios, key=lambda name: ratios[name])[:5]
            print(
                f"{level} against {mode}: geometric mean {mean:.2f}, median {statistics.median(ratios.values()):.2f}, "
                f"faster on {faster} ({faster / len(timed):.1%}); smallest: "
                + ", ".join(f"{name} {ratios[name]:.2f}" for name in slowest)
            )
            if level == "level 3":
                fine = fine and mean >= mean_bar and faster >= share_bar * len(timed)
    return fine


def measured(posterior: Posterior, job: dict[str, Any], timeout: float) -> dict[str, Any]:
    """A result, of a process of its own."""
    job = {"name": posterior.name, "model": str(posterior.model), **job}
    try:
        return answer_of(__file__, job, posterior.data, timeout, dict(os.environ))
    except JobError as problem:
        return {"name": posterior.name, "problem": str(problem)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, required=True, help="checkout of posteriordb")
    parser.add_argument("--results", type=Path, help="a file of results, which is continued")
    parser.add_argument("--only", action="append", default=[], help="posteriors whose name contains this")
    parser.add_argument("--table", action="store_true", help="only the posteriors of the table of docs/performance.md")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batches", type=int, default=6, help="batches of each side in a round")
    parser.add_argument("--timeout", type=float, default=300, help="seconds for one posterior")
    arguments = parser.parse_args()
    compiler = shutil.which("g++") or shutil.which("c++")
    if compiler is None:
        parser.error("a C++ compiler is needed for the timed loop")
    table = names_of_table() if arguments.table else None
    known = {result["name"]: result for result in earlier_results(arguments.results)}
    print(f"# {'posterior':60} {'dim':>5} " + " ".join(f"{name:>11}" for name in (*LEVELS, *MODES)) + "  times as fast")
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        job = {
            "driver": str(driver(Path(folder), compiler)), "rounds": arguments.rounds, "batches": arguments.batches
        }  # fmt: skip
        for posterior in posteriors(arguments.posteriordb):
            if arguments.only and not any(text in posterior.name for text in arguments.only):
                continue
            if table is not None and posterior.name not in table:
                continue
            if (result := known.get(posterior.name)) is None:
                result = measured(posterior, job, arguments.timeout)
                add_result(arguments.results, result)
            results.append(result)
            print(line(result), flush=True)
    return 0 if summary(results) else 1


if __name__ == "__main__":
    sys.exit(answer(sys.argv[2], measure) if sys.argv[1:2] == ["--child"] else main())
