"""Two versions of ulam by turns in one run: CPU time of gradients and of compiling, over the posteriors of posteriordb.

    python benchmarks/compare_versions.py --old OLD/bin/python --new NEW/bin/python --posteriordb DIR
        [--only NAME ...] [--turns 9] [--compile-turns 1] [--repeats 3] [--opt-level 3] [--results FILE]

Each version runs in its own process, from the interpreter of an environment with it; each repeat has processes of its
own, since where a process's memory happens to lie can change the time of a loop by a third. For every posterior
both compile the gradient without the cache, and take turns at evaluating it; the best of the turns counts. What is
judged is the geometric mean over all, and what is slower by more than `--single` in most of the repeats: the rule for
time bars of docs/performance.md. Values are compared, too. With `--results` a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from posteriordb import Posterior, posteriors

WORKER = """
import json, sys, time
import numpy as np
from ulam import StanModel
model, theta = None, None
for line in sys.stdin:
    request = json.loads(line)
    try:
        if request["do"] == "compile":
            start = time.process_time()
            model = StanModel(request["program"], request["data"], opt_level=request["opt_level"], cache=False)
            theta = 0.1 * np.sin(np.arange(1.0, 1 + model.param_unc_num()))
            value, _ = model.log_density_gradient(theta)
            answer = {"seconds": time.process_time() - start, "value": float(value)}
        else:
            answer = {"seconds": model.time_gradients(theta, request["count"])}
    except Exception as error:
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(answer), flush=True)
"""


class Version:
    """A process of one version."""

    def __init__(self, python: str) -> None:
        self._process = subprocess.Popen(
            [python, "-c", WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


Pair = tuple[Version, Version]
"""The old and the new version."""


@dataclass(frozen=True)
class Row:
    """Seconds of the old and the new version: per gradient in each repeat, and to compile."""

    name: str
    gradient: list[tuple[float, float]]
    compile: tuple[float, float]

    def ratio(self) -> float:
        """Of gradients, over all repeats."""
        return min(new for _, new in self.gradient) / min(old for old, _ in self.gradient)

    def is_slower(self, factor: float) -> bool:
        """Whether the new version took that much longer in most of the repeats."""
        slower = sum(new > factor * old for old, new in self.gradient)
        return 3 * slower >= 2 * len(self.gradient)


def compile_by_turns(pair: Pair, posterior: Posterior, options: argparse.Namespace) -> tuple[float, float] | str:
    """Seconds of both versions; a text if one of them cannot compile the posterior."""
    request = {
        "do": "compile", "program": str(posterior.model), "data": posterior.data, "opt_level": options.opt_level,
    }  # fmt: skip
    best, values = [math.inf, math.inf], [0.0, 0.0]
    for turn in range(options.compile_turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            answer = pair[which].ask(**request)
            if "error" in answer:
                return f"{'old' if which == 0 else 'new'}: {answer['error']}"
            best[which] = min(best[which], answer["seconds"])
            values[which] = answer["value"]
    if not math.isclose(*values, rel_tol=1e-8, abs_tol=1e-8):
        print(f"{posterior.name}: the log density is {values[0]!r}, now {values[1]!r}", flush=True)
    return best[0], best[1]


def gradients_by_turns(pair: Pair, options: argparse.Namespace) -> tuple[float, float]:
    """Seconds of both versions for one gradient of what they compiled last."""
    count = 1
    while (took := pair[0].ask(do="time", count=count)["seconds"]) < options.seconds / 4:
        count *= 4
    count = max(1, round(count * options.seconds / took))
    best = [math.inf, math.inf]
    for turn in range(options.turns):
        for which in (0, 1) if turn % 2 == 0 else (1, 0):
            best[which] = min(best[which], pair[which].ask(do="time", count=count)["seconds"] / count)
    return best[0], best[1]


def measure(pairs: Sequence[Pair], posterior: Posterior, options: argparse.Namespace) -> Row | str:
    """One posterior; a text if it cannot be measured."""
    compiled: list[tuple[float, float]] = []
    repeats: list[tuple[float, float]] = []
    for pair in pairs:
        seconds = compile_by_turns(pair, posterior, options)
        if isinstance(seconds, str):
            return seconds
        compiled.append(seconds)
        repeats.append(gradients_by_turns(pair, options))
    old, new = zip(*compiled, strict=True)
    return Row(posterior.name, repeats, (min(old), min(new)))


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def known(path: Path | None) -> dict[str, Row]:
    """What an earlier run has measured."""
    if path is None or not path.exists():
        return {}
    entries = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {e["name"]: Row(e["name"], [(a, b) for a, b in e["gradient"]], tuple(e["compile"])) for e in entries}


def report(rows: Sequence[Row], single: float) -> None:
    ratios = [row.ratio() for row in rows]
    compiling = [row.compile[1] / row.compile[0] for row in rows]
    print(f"{len(rows)} posteriors")
    print(f"gradients  {geometric_mean(ratios):.4f} (new over old, geometric mean)")
    print(f"compiling  {geometric_mean(compiling):.4f}")
    slower = [row for row in rows if row.is_slower(1 + single)]
    print(f"slower by more than {single:.0%} in most repeats: {', '.join(row.name for row in slower) or 'none'}")
    for row in sorted(rows, key=Row.ratio)[::-1][:10]:
        times = "  ".join(f"{new / old:.3f}" for old, new in row.gradient)
        print(f"  {row.name:50} {row.ratio():.3f}  in repeats {times}  compiling {row.compile[1] / row.compile[0]:.3f}")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--old", required=True, help="interpreter of the old version's environment")
    parser.add_argument("--new", required=True, help="that of the new one")
    parser.add_argument("--posteriordb", type=Path, required=True)
    parser.add_argument("--only", nargs="*", default=[], help="names of posteriors, or parts of them")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--compile-turns", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.01, help="of a turn")
    parser.add_argument("--single", type=float, default=0.1, help="from which ratio on a posterior is named")
    parser.add_argument("--opt-level", type=int, default=3)
    parser.add_argument("--results", type=Path, help="a file of rows, which is continued")
    options = parser.parse_args()
    rows = known(options.results)
    pairs = [(Version(options.old), Version(options.new)) for _ in range(options.repeats)]
    try:
        for posterior in posteriors(options.posteriordb):
            wanted = not options.only or any(part in posterior.name for part in options.only)
            if not wanted or posterior.name in rows:
                continue
            row = measure(pairs, posterior, options)
            if isinstance(row, str):
                print(f"{posterior.name}: {row}", flush=True)
                continue
            rows[row.name] = row
            if options.results is not None:
                entry = {"name": row.name, "gradient": row.gradient, "compile": row.compile}
                with open(options.results, "a", encoding="utf-8") as file:
                    file.write(json.dumps(entry) + "\n")
            print(f"{row.name:50} {row.ratio():.3f}  compiling {row.compile[1] / row.compile[0]:.3f}", flush=True)
    finally:
        for version in (version for pair in pairs for version in pair):
            version.close()
    if rows:
        report(list(rows.values()), options.single)
    return 0


if __name__ == "__main__":
    sys.exit(main())
