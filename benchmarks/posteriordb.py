"""Every posterior of a posteriordb checkout: does it compile, do log density and gradient agree, how fast is it.

    python benchmarks/posteriordb.py --posteriordb DIR [--reference FILE] [--only NAME] [--isolate]

One line each: status, largest relative error, compile seconds, nanoseconds per gradient. Never stops at a failure.
Reference values: `tests/reference/posteriordb.jsonl`, computed with Stan Math (see tests/reference/README.md).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REFERENCE = Path(__file__).parent.parent / "tests" / "reference" / "posteriordb.jsonl"


@dataclass
class Posterior:
    """A model with its data, as posteriordb has them."""

    name: str
    model: Path
    data: str

    @property
    def code(self) -> str:
        return self.model.read_text(encoding="utf-8")


def posteriors(folder: Path) -> Iterator[Posterior]:
    """All posteriors of a checkout whose data are there, by name."""
    base = folder / "posterior_database"
    for path in sorted((base / "posteriors").glob("*.json")):
        info = json.loads(path.read_text(encoding="utf-8"))
        archive = base / "data" / "data" / f"{info['data_name']}.json.zip"
        if archive.exists():
            with zipfile.ZipFile(archive) as z:
                data = z.read(z.namelist()[0]).decode()
            yield Posterior(path.stem, base / "models" / "stan" / f"{info['model_name']}.stan", data)


def relative_error(found: Any, expected: Any) -> float:
    """Largest |difference| / max(1, |expected|); infinities and NaN must match."""
    worst = 0.0
    for a, b in zip(np.ravel(found), np.ravel(expected), strict=True):
        if math.isnan(b) or math.isinf(b):
            worst = max(worst, 0.0 if (math.isnan(a) and math.isnan(b)) or a == b else math.inf)
        else:
            error = abs(a - b) / max(1.0, abs(b))
            worst = max(worst, error if error == error else math.inf)
    return worst


def numbers(values: Sequence[Any]) -> list[float]:
    """Reference numbers; non-finite ones are strings there."""
    return [float(v) for v in values]


def errors(model: Any, points: Sequence[dict[str, Any]]) -> float:
    """Largest error over the points of a reference line."""
    worst = 0.0
    for point in points:
        theta = np.array(numbers(point["theta"]))
        value, gradient = model.log_density_gradient(theta, propto=True, jacobian=True)
        worst = max(worst, relative_error([value], numbers([point["lp_propto_jac"]])))
        worst = max(worst, relative_error(gradient, numbers(point["grad"])))
        for key, propto, jacobian in (("lp_full_jac", False, True), ("lp_full_nojac", False, False)):
            if point.get(key) is not None:
                found = model.log_density(theta, propto=propto, jacobian=jacobian)
                worst = max(worst, relative_error([found], numbers([point[key]])))
    return worst


def time_gradient(model: Any, theta: np.ndarray, budget: float = 0.05) -> float:
    """Nanoseconds per gradient, best of batches, over points that change from call to call."""
    thetas = [theta * (1 + 1e-6 * k) for k in range(8)]
    best = math.inf
    end = time.perf_counter() + budget
    out = np.empty_like(theta)
    batch = 8
    while time.perf_counter() < end:
        start = time.perf_counter()
        for k in range(batch):
            model.log_density_gradient(thetas[k & 7], out=out)
        elapsed = time.perf_counter() - start
        best = min(best, elapsed / batch)
        if elapsed < 2e-3:
            batch *= 2
    return best * 1e9


def run(posterior: Posterior, reference: dict[str, Any] | None, opt_level: int) -> str:
    """The line of one posterior."""
    import ulam

    start = time.perf_counter()
    try:
        model = ulam.StanModel(posterior.code, data=posterior.data, opt_level=opt_level)
        dim = model.param_unc_num()
        theta = np.array(numbers(reference["points"][0]["theta"])) if reference else np.full(dim, 0.1)
        model.log_density_gradient(theta)
        compile_seconds = time.perf_counter() - start
        error = errors(model, reference["points"]) if reference else math.nan
        nanoseconds = time_gradient(model, theta)
    except Exception as problem:  # noqa: BLE001 - every failure is a line of the report
        text = str(problem).strip().splitlines()
        return f"{posterior.name:64} FAILED {type(problem).__name__}: {text[0] if text else ''}"
    status = "ok" if error <= 1e-8 else "unchecked" if math.isnan(error) else "WRONG"
    return f"{posterior.name:64} {status:9} {error:10.2e} {compile_seconds:7.2f} s {nanoseconds:12.0f} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, required=True)
    parser.add_argument("--reference", type=Path, default=REFERENCE)
    parser.add_argument("--only", action="append", default=[], help="posteriors whose name contains this")
    parser.add_argument("--opt-level", type=int, default=3)
    arguments = parser.parse_args()
    lines = arguments.reference.read_text(encoding="utf-8").splitlines() if arguments.reference.exists() else []
    reference = {line["posterior"]: line for line in map(json.loads, lines)}
    counts: dict[str, int] = {}
    for posterior in posteriors(arguments.posteriordb):
        if arguments.only and not any(text in posterior.name for text in arguments.only):
            continue
        line = run(posterior, reference.get(posterior.name), arguments.opt_level)
        print(line, flush=True)
        status = line[65:].split()[0]
        counts[status] = counts.get(status, 0) + 1
    print(", ".join(f"{n} {status}" for status, n in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
