"""L-BFGS against Stan's own on posteriordb, and the time that an optimizer spends outside the model's gradient.

    python benchmarks/optimizers.py --posteriordb DIR --oracle-python PYTHON [--starts N] [--only NAME] [--json FILE]
    python benchmarks/optimizers.py --overhead

Parity: both run with the Jacobian adjustment from the same explicit initial points. A start is `ok` if our final log
density is at least Stan's, less 1e-6. Stan's L-BFGS is that of `stanli` (which builds on Stan 2.40), run by the Python
given; its gradient evaluations are counted by a `print` that is put into the program's model block. Posteriors that
either of the two cannot run are listed as skipped, with the reason.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from posteriordb import Posterior, posteriors  # noqa: E402

TOLERANCE = 1e-6
MAX_RATIO = 1.1
MARK = "gradient-evaluation"

# Runs in the oracle's Python: a task as JSON on standard input, a line of JSON for each start on standard output.
ORACLE = r"""
import json, os, sys, tempfile
import numpy as np
import stanli

task = json.load(sys.stdin)
out = os.fdopen(os.dup(1), "w")

def captured(call):
    with tempfile.TemporaryFile() as file:
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            result = call()
        finally:
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        return result, file.read().count(task["mark"].encode())

plain = stanli.Model(stan_code=task["code"], data=task["data"])
counting = stanli.Model(stan_code=task["counting_code"], data=task["data"])
for init in task["inits"]:
    line = {}
    try:
        result = plain.optimize(init=init, iter=task["iter"])
        line = {"log_density": result.lp, "end": list(result.unconstrained)}
        again, count = captured(lambda: counting.optimize(init=init, iter=task["iter"]))
        line["n_gradients"] = count
        line["same"] = bool(again.lp == result.lp)
    except Exception as error:
        line["error"] = str(error).strip().splitlines()[0][:120]
    print(json.dumps(line), file=out, flush=True)
"""


@dataclass
class Start:
    """One start of one posterior: our end and Stan's."""

    posterior: str
    number: int
    ours: dict[str, Any]
    theirs: dict[str, Any]

    @property
    def failed(self) -> str:
        """Why Stan's run has no result; empty if it has one."""
        return self.theirs.get("error", "")

    @property
    def difference(self) -> float:
        """By how much our log density is higher."""
        return self.ours["log_density"] - self.theirs["log_density"]

    @property
    def ratio(self) -> float:
        """Our gradient evaluations for each of Stan's."""
        return self.ours["n_gradients"] / self.theirs["n_gradients"]

    @property
    def verdict(self) -> str:
        return "ok" if self.difference >= -TOLERANCE else "LOWER"

    def row(self) -> str:
        if self.failed:
            return (
                f"{self.posterior:58} {self.number:2} {'':6} {'':10} {self.ours['log_density']:14.6f} "
                f"{self.ours['n_gradients']:6} {'':6} {'':6} {self.ours['status']}; Stan: {self.failed}"
            )
        return (
            f"{self.posterior:58} {self.number:2} {self.verdict:6} {self.difference:10.2e} "
            f"{self.ours['log_density']:14.6f} {self.ours['n_gradients']:6} {self.theirs['n_gradients']:6} "
            f"{self.ratio:6.3f} {self.ours['status']}"
        )


def counting_code(code: str) -> str:
    """The program with a `print` as the first statement of its model block."""
    blanked = re.sub(r"//[^\n]*|/\*.*?\*/", lambda found: " " * len(found[0]), code, flags=re.DOTALL)
    place = re.search(r"\bmodel\s*\{", blanked)
    if place is None:
        raise ValueError("no model block")
    return f'{code[: place.end()]} print("{MARK}"); {code[place.end() :]}'


def oracle_runs(python: str, posterior: Posterior, inits: list[list[float]], limit: int, seconds: float) -> Any:
    """Results of Stan's optimizer for each start, or the reason why there are none."""
    task = {
        "code": posterior.code, "counting_code": counting_code(posterior.code), "data": posterior.data,
        "inits": inits, "iter": limit, "mark": MARK,
    }  # fmt: skip
    try:
        done = subprocess.run(
            [python, "-c", ORACLE], input=json.dumps(task), capture_output=True, text=True, timeout=seconds
        )
    except subprocess.TimeoutExpired:
        return f"oracle: more than {seconds:g} s"
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if len(lines) != len(inits):
        return f"oracle: {(done.stderr.strip().splitlines() or ['no output'])[-1][:120]}"
    return lines


def compare(posterior: Posterior, python: str, n_starts: int, limit: int, seconds: float) -> list[Start] | str:
    """All starts of a posterior, or why it is skipped."""
    from ulam import StanModel

    try:
        model = StanModel(posterior.code, posterior.data)
        size = model.param_unc_num()
        generator = np.random.default_rng(2024)
        starts: list[tuple[list[float], dict[str, Any]]] = []
        began, reason = time.perf_counter(), ""
        for _ in range(10 * n_starts):
            init = generator.uniform(-2, 2, size)
            try:
                fit = model.optimize(init=init, jacobian=True, iter=limit)
            except RuntimeError as error:
                reason = str(error)
                continue
            starts.append(
                (
                    init.tolist(),
                    {
                        "log_density": fit.log_density, "n_gradients": fit.n_gradients, "status": fit.status,
                        "n_rejections": fit.n_rejections, "n_iterations": fit.n_iterations,
                    },
                )
            )  # fmt: skip
            if len(starts) == n_starts or time.perf_counter() - began > seconds:
                break
        if not starts:
            return f"no start: {reason.splitlines()[0][:120]}"
    except Exception as error:  # noqa: BLE001 - every failure is a line of the report
        return f"{type(error).__name__}: {str(error).splitlines()[0][:120]}"
    theirs = oracle_runs(python, posterior, [init for init, _ in starts], limit, seconds)
    if isinstance(theirs, str):
        return theirs
    return [
        Start(posterior.name, number, ours, other)
        for number, ((_, ours), other) in enumerate(zip(starts, theirs, strict=True), 1)
    ]


def parity(arguments: argparse.Namespace) -> int:
    """Prints a line for each start and a summary; 1 if a start ends lower or the median ratio is above the limit."""
    if not Path(arguments.oracle_python).exists():
        print(f"skipped: {arguments.oracle_python} does not exist")
        return 0
    results: list[Start] = []
    skipped: dict[str, str] = {}
    print(
        f"{'posterior':58} st {'':6} {'ours-Stan':>10} {'log density':>14} {'evals':>6} {'Stan':>6} {'ratio':>6} status"
    )
    for posterior in posteriors(arguments.posteriordb):
        if arguments.only and not any(text in posterior.name for text in arguments.only):
            continue
        found = compare(posterior, arguments.oracle_python, arguments.starts, arguments.iter, arguments.seconds)
        if isinstance(found, str):
            skipped[posterior.name] = found
            print(f"{posterior.name:58}    skipped: {found}", flush=True)
            continue
        results += found
        for start in found:
            print(start.row(), flush=True)
    summary = summarize(results)
    for name, value in summary.items():
        print(f"{name:32} {value:.6g}" if isinstance(value, float) else f"{name:32} {value}")
    if arguments.json:
        record = {
            "summary": summary,
            "skipped": skipped,
            "starts": [
                {"posterior": s.posterior, "number": s.number, "ours": s.ours, "theirs": s.theirs} for s in results
            ],
        }
        Path(arguments.json).write_text(json.dumps(record, indent=1), encoding="utf-8")
    return int(summary["lower"] > 0 or summary["median ratio"] > MAX_RATIO)


def summarize(results: list[Start]) -> dict[str, Any]:
    """Figures over all starts; ratios are of starts that end within the tolerance of each other, and of all."""
    failed = sum(bool(start.failed) for start in results)
    results = [start for start in results if not start.failed]
    if not results:
        return {"starts": 0, "without a result of Stan": failed, "lower": 0, "median ratio": math.nan}
    ratios = sorted(start.ratio for start in results)
    same = [start.ratio for start in results if abs(start.difference) <= TOLERANCE]
    lower = [start for start in results if start.verdict == "LOWER"]
    return {
        "posteriors": len({start.posterior for start in results}),
        "starts": len(results),
        "without a result of Stan": failed,
        "same end": len(same),
        "higher": sum(start.difference > TOLERANCE for start in results),
        "lower": len(lower),
        "posteriors with a lower start": len({start.posterior for start in lower}),
        "median ratio": statistics.median(ratios),
        "median ratio, same end": statistics.median(same) if same else math.nan,
        "90 % quantile of the ratio": ratios[int(0.9 * (len(ratios) - 1))],
    }


# ---------------------------------------------------------------- overhead

# 10,000 parameters: a logistic regression with an intercept for each of 9,997 groups (persons, who answer 20 items).
HIERARCHICAL = """
data {
  int<lower=0> N, J;
  array[N] int<lower=1, upper=J> group;
  vector[N] x;
  array[N] int<lower=0, upper=1> y;
}
parameters {
  real mu, beta;
  real<lower=0> tau;
  vector[J] a;
}
model {
  mu ~ normal(0, 5);
  beta ~ normal(0, 5);
  tau ~ normal(0, 2);
  a ~ std_normal();
  y ~ bernoulli_logit(mu + tau * a[group] + beta * x);
}
"""


def hierarchical_data(n_groups: int, per_group: int) -> dict[str, Any]:
    generator = np.random.default_rng(7)
    group = np.repeat(np.arange(n_groups), per_group)
    x = generator.normal(size=group.size)
    logit = generator.normal(0.5, 1, n_groups)[group] + 0.7 * x
    y = (generator.uniform(size=group.size) < 1 / (1 + np.exp(-logit))).astype(int)
    return {"N": group.size, "J": n_groups, "group": group + 1, "x": x, "y": y}


def overhead(arguments: argparse.Namespace) -> int:
    """Prints where the time of a run with 10,000 parameters goes; 1 if more than a fifth is outside the gradient.

    CPU time, so that other work on the machine does not count; the best of five runs decides. All that Python does
    counts as outside, the copying of points and gradients by the model included.
    """
    from ulam import StanModel

    model = StanModel(HIERARCHICAL, hierarchical_data(9_997, arguments.per_group))
    init = np.zeros(model.param_unc_num())
    timed = NativeTime(model, init)
    worst = 0.0
    for algorithm in arguments.algorithm or ["lbfgs"]:
        model.optimize(algorithm, init=init, jacobian=True, iter=1)  # compiles what is missing
        best = math.inf
        for _ in range(5):
            timed.seconds, timed.calls = 0.0, 0
            began = time.thread_time()
            fit = model.optimize(algorithm, init=init, jacobian=True)
            total = time.thread_time() - began
            outside = 1 - timed.seconds / total
            best = min(best, outside)
            print(
                f"{algorithm}: {init.size} parameters, {fit.n_iterations} iterations, {fit.n_gradients} evaluations: "
                f"{total * 1e3:.1f} ms CPU, of which {timed.seconds * 1e3:.1f} ms in the compiled gradient "
                f"({timed.seconds / timed.calls * 1e6:.0f} us each); outside {100 * outside:.1f} %"
            )
        worst = max(worst, best)
    return int(worst > 0.2)


class NativeTime:
    """Time spent in compiled gradients, without what Python does before and after."""

    def __init__(self, model: Any, theta: np.ndarray) -> None:
        self.seconds, self.calls = 0.0, 0
        model.log_density_gradient(theta)  # makes the call that later ones use
        for propto, call in model._gradients.items():
            model._gradients[propto] = SimpleNamespace(unit=call.unit, evaluate=self._timed(call.evaluate))

    def _timed(self, call: Any) -> Any:
        clock = time.thread_time

        def timed(*arguments: Any) -> Any:
            began = clock()
            found = call(*arguments)
            self.seconds += clock() - began
            self.calls += 1
            return found

        return timed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posteriordb", type=Path, help="a checkout of posteriordb")
    parser.add_argument("--oracle-python", default="", help="a Python that has stanli")
    parser.add_argument("--only", action="append", default=[], help="posteriors whose name contains this")
    parser.add_argument("--starts", type=int, default=3)
    parser.add_argument("--iter", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60, help="time limit of a posterior")
    parser.add_argument("--json", help="file to write all figures to")
    parser.add_argument("--overhead", action="store_true")
    parser.add_argument("--per-group", type=int, default=20, help="observations of each group, with --overhead")
    parser.add_argument("--algorithm", action="append", help="with --overhead")
    arguments = parser.parse_args()
    if arguments.overhead:
        return overhead(arguments)
    if arguments.posteriordb is None or not arguments.oracle_python:
        parser.error("--posteriordb and --oracle-python are needed, or --overhead")
    return parity(arguments)


if __name__ == "__main__":
    sys.exit(main())
