"""Gradients of several implementations of one posterior, timed by turns: what `against_stan.py` and others share.

One thread of one process, the order swapped from round to round, CPU time of the thread, batches of at least 5 ms, the
best batch counts, and the point changes from call to call. Each posterior is measured in a process of its own, so that
none can stop the rest.
"""

from __future__ import annotations

import ctypes
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from stan_reference import HERE, run

POINTS = 8
SCALES = (0.5, 0.1, 0.02, 2.0)
PHASES = 6
BATCH_SECONDS = 5e-3
SAME = 1e-8
"""Gradients that differ by no more, of 1 or their entry's size, are the same."""


class Side(Protocol):
    """An implementation with data. `gradient`: None if it is refused there, or not finite."""

    dim: int

    def gradient(self, theta: np.ndarray) -> np.ndarray | None: ...

    def seconds(self, points: np.ndarray, calls: int) -> float: ...


class CompiledSide:
    """A `StanModel`, called from a compiled loop."""

    def __init__(self, driver: Path, model: Any) -> None:
        from ulam.runtime.c_library import library
        from ulam.runtime.native import Context

        self.model = model
        self.dim: int = self.model.param_unc_num()
        self._unit = self.model._program.unit("gradient_propto")
        self._context = Context()
        self._run = ctypes.cast(library().ulam_run_gradient, ctypes.c_void_p)
        pointer, i64 = ctypes.c_void_p, ctypes.c_int64
        self._time = ctypes.CDLL(str(driver)).compiled_time
        self._time.restype = ctypes.c_double
        self._time.argtypes = [pointer] * 5 + [i64] * 3

    def gradient(self, theta: np.ndarray) -> np.ndarray | None:
        """None if it is refused there, or not finite."""
        import ulam

        try:
            value, out = self.model.log_density_gradient(theta)
        except ulam.UlamError:
            return None
        return out if math.isfinite(value) and np.isfinite(out).all() else None

    def seconds(self, points: np.ndarray, calls: int) -> float:
        """CPU time of so many gradients."""
        context, unit = self._context, self._unit
        return self._time(
            self._run, context.address, unit.entry, unit.bound, points.ctypes.data, len(points), self.dim, calls
        )


def driver(folder: Path, compiler: str) -> Path:
    """The loops that call entries of ulam and others, built into `folder`."""
    sources = [HERE / "compiled_gradient.cpp", HERE / "gradient_loop.hpp"]
    library = folder / "compiled_gradient.so"
    if not library.exists() or library.stat().st_mtime < max(source.stat().st_mtime for source in sources):
        run([compiler, "-O2", "-shared", "-fPIC", str(sources[0]), "-o", str(library)], HERE)
    return library


# ---------------------------------------------------------------------- points and times


def candidate_points(dim: int) -> Iterator[np.ndarray]:
    """Groups of points near each other, the first ones away from the origin; a model may refuse the most of them."""
    index = np.arange(dim)
    offsets = np.array([np.sin(1.3 * index + 0.9 * k) for k in range(POINTS)]).reshape(POINTS, dim)
    for scale in SCALES:
        for phase in range(PHASES):
            yield scale * (np.sin(1.7 * index + 0.4 + 2.4 * phase) + 0.1 * offsets)


def find_points(sides: Mapping[str, Side]) -> tuple[np.ndarray, dict[str, float]]:
    """Points where all sides have a finite gradient, and the largest difference of each from the first one there."""
    refused: set[str] = set()
    for points in candidate_points(next(iter(sides.values())).dim):
        found = {name: [side.gradient(point) for point in points] for name, side in sides.items()}
        missing = {name for name, gradients in found.items() if any(gradient is None for gradient in gradients)}
        if not missing:
            gradients = {name: np.array(values, dtype=float) for name, values in found.items()}
            first = next(iter(gradients.values()))
            size = np.maximum(1, np.abs(first))
            return points, {n: float(np.max(np.abs(g - first) / size, initial=0)) for n, g in gradients.items()}
        refused |= missing
    raise ValueError(f"no points with finite gradients on all sides (refused by {' and '.join(sorted(refused))})")


def calls_per_batch(side: Side, points: np.ndarray, batch_seconds: float) -> int:
    """So many gradients take that long."""
    calls = 1
    while (seconds := side.seconds(points, calls)) < batch_seconds:
        if seconds < 0:
            raise ValueError("an evaluation fails now that did not before")
        calls = max(2 * calls, min(100 * calls, int(1.2 * calls * batch_seconds / max(seconds, 1e-9))))
    return calls


def time_sides(sides: Sequence[Side], points: np.ndarray, rounds: int, batches: int) -> list[list[float]]:
    """Nanoseconds per gradient: for each round, the best batch of each side."""
    calls = [calls_per_batch(side, points, BATCH_SECONDS) for side in sides]
    order = list(range(len(sides)))
    found: list[list[float]] = []
    for _ in range(rounds):
        best = [math.inf] * len(sides)
        for _ in range(batches):
            for n in order:
                best[n] = min(best[n], sides[n].seconds(points, calls[n]) / calls[n] * 1e9)
        order.reverse()
        found.append(best)
    return found


# ---------------------------------------------------------------------- a process for each job


class JobError(Exception):
    """A job has no answer; the message is a line that says why."""


def answer_of(script: str, job: Mapping[str, Any], data: str, timeout: float, environment: dict[str, str]) -> Any:
    """What `script` answers to a job in a process of its own, where `job["data"]` is a file of the data."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data.json").write_text(data, encoding="utf-8")
        path = folder / "job.json"
        path.write_text(json.dumps({**job, "data": str(folder / "data.json")}), encoding="utf-8")
        command = [sys.executable, script, "--child", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)
        except subprocess.TimeoutExpired:
            raise JobError(f"more than {timeout:.0f} s") from None
        result = path.with_suffix(".result")
        if not result.exists():
            lines = done.stderr.strip().splitlines() or ["no message"]
            raise JobError(f"process ended with {done.returncode}: {lines[-1]}")
        found = json.loads(result.read_text(encoding="utf-8"))
    if "problem" in found:
        raise JobError(found["problem"])
    return found["answer"]


def answer(job_file: str, measure: Callable[[dict[str, Any]], Any]) -> int:
    """Measures the job of a file and writes the result beside it. Text printed by models stays apart from it."""
    path = Path(job_file)
    try:
        found = {"answer": measure(json.loads(path.read_text(encoding="utf-8")))}
    except Exception as problem:  # noqa: BLE001 - every failure is a line of the report
        text = (str(problem).strip().splitlines() or [""])[0]
        found = {"problem": f"{type(problem).__name__}: {text}"}
    path.with_suffix(".result").write_text(json.dumps(found), encoding="utf-8")
    return 0


def earlier_results(path: Path | None) -> list[dict[str, Any]]:
    """What a run that was stopped has measured."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def add_result(path: Path | None, result: dict[str, Any]) -> None:
    """Lets a run that is stopped go on behind this result."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(result) + "\n")


def names_of_table() -> frozenset[str]:
    """The posteriors of the table in docs/performance.md."""
    text = (HERE.parent / "docs" / "performance.md").read_text(encoding="utf-8")
    rows = text.partition("| posterior | dim |")[2].partition("\n\n")[0].splitlines()[2:]
    return frozenset(row.split("|")[1].strip() for row in rows)
