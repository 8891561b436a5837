"""SIGINT at random times: does everything end in time, and leave nothing behind?

    python benchmarks/interrupt_sweep.py [--times 100] [--seed 1] [--only NAME] [--within SECONDS]

Each case is a command, or a call of the Python interface in a process of its own, that would take long or for ever. It
gets SIGINT at a random time of its run, some a second one. A line for each case: how often it was interrupted, the
latency (median, largest), and what went wrong: an exit that is no exit of an interrupt, a traceback, a result that is
not there, temporary files, partial output, children or threads that are left. Exit status 1 if anything did.

`--within` is the longest latency that passes: native code ends at once, Python and LLVM at the end of their step.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ENDLESS = """
parameters { real x; }
model { real s = x; while (s > -100) { s += 1e-300; } target += s; }
"""
RECURSIVE = """
functions { void f(real x) { f(x * 0.5); } }
parameters { real x; }
model { f(x); x ~ normal(0, 1); }
"""
BOUND = """
transformed data { real s = 0; while (s < 1) { s = s * 0.5; } }
parameters { real x; }
model { x ~ normal(s, 1); }
"""
KERNEL = """
transformed data { int n = 500; }
parameters { real<lower=0> a; }
model {
  matrix[n, n] m = diag_matrix(rep_vector(n + a, n)) + 0.5;
  for (i in 1:100) target += sum(cholesky_decompose(add_diag(m, i * a))) - a;
}
"""
SLOW = """
functions { vector f(real t, vector y, real a) { return [y[2], -a * y[1]]'; } }
parameters { vector<lower=0>[4] a; }
model {
  profile("ode") {
    for (k in 1:20) {
      array[20] vector[2] y = ode_rk45(f, [1, 0]', 0, linspaced_array(20, 1, 20), a[1 + k % 4]);
      for (i in 1:20) y[i] ~ normal(0, 1);
    }
  }
  a ~ lognormal(0, 1);
}
generated quantities { real z = 0; for (i in 1:100000) z += normal_rng(0, 1); print("z ", z); }
"""
PROGRAMS = {"endless": ENDLESS, "recursive": RECURSIVE, "bound": BOUND, "kernel": KERNEL, "slow": SLOW}

TIDY = """
import os, signal, sys, threading, time
import numpy as np
import ulam

def tasks(): return len(os.listdir("/proc/self/task"))
def model(name, **options): return ulam.StanModel(name + ".stan", **options)
def check(work, *expected):
    before, threads, begun = signal.getsignal(signal.SIGINT), tasks(), os.listdir("/proc/self/fd")
    print("begin", flush=True)
    try:
        result = work()
    except expected as error:
        print("ended", time.monotonic(), type(error).__name__, flush=True)
    except KeyboardInterrupt:
        print("ended", time.monotonic(), "KeyboardInterrupt", flush=True)
    else:
        print("ended", time.monotonic(), getattr(getattr(result, "termination", None), "label", result), flush=True)
    assert signal.getsignal(signal.SIGINT) is before
    for _ in range(100):
        if tasks() <= threads and threading.active_count() == 1: break
        time.sleep(0.01)
    assert tasks() <= threads and threading.active_count() == 1, (tasks(), threads, threading.enumerate())
    assert len(os.listdir("/proc/self/fd")) <= len(begun) + 1
    small = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 1); }")
    assert small.log_density([2.0]) == -2.0 and small.optimize().converged
"""
CALLS = {
    "log_density": "m = model('endless'); check(lambda: m.log_density([0.3]))",
    "gradient": "m = model('endless', opt_level=0); check(lambda: m.log_density_gradient([0.3]))",
    "recursion": "m = model('recursive', opt_level=0); check(lambda: m.log_density([0.3]))",
    "kernel": "m = model('kernel'); check(lambda: m.log_density_gradient([0.3]))",
    "binding": "check(lambda: model('bound'))",
    "compiling": "check(lambda: [model('slow', cache=False).log_density_gradient(np.zeros(4)) for _ in range(99)])",
    "short calls": "m = model('slow'); check(lambda: [m.log_density_gradient(np.zeros(4)) for _ in range(99999)])",
    "quantities": "m = model('slow'); r = m.new_rng(1)\n"
    "check(lambda: [m.param_constrain(np.zeros(4), include_gq=True, rng=r) for _ in range(9999)])",
    "optimize": "m = model('slow'); check(lambda: [m.optimize(seed=n) for n in range(999)][0])",
    "many starts": "m = model('slow'); check(lambda: m.optimize(n_starts=999))",
    "endless starts": "m = model('endless'); check(lambda: m.optimize(n_starts=9))",
    "laplace": "m = model('slow'); check(lambda: m.laplace(draws=10**6) and 'draws')",
    "trace": "m = model('slow'); check(lambda: [m.track_density(np.zeros(4)) for _ in range(999)])",
    "threads": '''
m, ends, begun = model('endless'), [], []
def call(work):
    begun.append(work)
    try: work()
    except ulam.Interrupted: ends.append("Interrupted")
threads = [threading.Thread(target=call, args=(w,)) for w in (lambda: m.log_density([0.3]), lambda: m.optimize(init=0))]
for thread in threads: thread.start()
while len(begun) < 2: time.sleep(0.001)
def work():
    try: time.sleep(100)
    finally:  # an interrupted `join` may take the thread for ended
        while len(ends) < 2: time.sleep(0.001)
check(work)
''',
    "own handler": '''
signal.signal(signal.SIGINT, lambda *_: None)
m = model('endless'); check(lambda: m.log_density([0.3]), ulam.Interrupted)
''',
}
COMMANDS = {
    "ulam log-density": ["log-density", "endless.stan", "--unconstrained", "0.3"],
    "ulam optimize": ["optimize", "slow.stan", "--output", "out.csv", "--tol-rel-obj", "0", "--iter", "1000000"],
    "ulam optimize --starts": ["optimize", "slow.stan", "--starts", "999", "--output", "out.csv"],
    "ulam optimize (endless)": ["optimize", "endless.stan", "--output", "out.csv"],
    "ulam laplace": ["laplace", "slow.stan", "--draws", "1000000", "--output", "out.csv"],
    "ulam profile": ["profile", "slow.stan", "--gradients", "100000000", "--output", "out.csv"],
    "ulam profile --threads": ["profile", "slow.stan", "--threads", "3", "--gradients", "100000000"],
    "ulam bench": ["bench", "slow.stan", "--vs-opt-level", "0", "--rounds", "100000"],
    "ulam trace": ["trace", "endless.stan", "--density", "--unconstrained", "0.3", "--output", "out.txt"],
    "ulam explain": ["explain", "endless.stan", "--unconstrained", "0.3"],
    "ulam optimize --no-cache": ["optimize", "slow.stan", "--no-cache", "--tol-rel-obj", "0", "--iter", "1000000"],
}

@dataclass
class Tally:
    """What became of one case."""

    name: str
    latencies: list[float] = field(default_factory=list)
    ends: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def line(self) -> str:
        """The line of the report."""
        times = sorted(self.latencies) or [float("nan")]
        ends = ", ".join(f"{count} {end}" for end, count in sorted(self.ends.items()))
        median = statistics.median(times)
        return f"{self.name:26} {len(self.latencies):4} times, {median:6.3f} s, at most {times[-1]:6.3f} s: {ends}"


def interrupted(process: subprocess.Popen[str], delay: float, second: float | None) -> float:
    """Sends SIGINT after a delay; when it was sent."""
    time.sleep(delay)
    sent = time.monotonic()
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
    if second is not None:
        time.sleep(second)
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
    return sent


def run(argv: list[str], folder: Path, is_call: bool, rng: random.Random, second: bool) -> tuple[str, float, str, int]:
    """How a process ended, how long after SIGINT, what it wrote to standard error, and its status.

    SIGINT is not sent before the first line of the script: what Python does then is its own.
    """
    errors = (folder / "errors").open("w+")
    process = subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT, start_new_session=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    sent = interrupted(process, rng.uniform(0, 1.0 if is_call else 3.0), rng.uniform(0.15, 0.4) if second else None)
    try:
        printed, _ = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return "did not end", 60.0, "", 0
    ended = time.monotonic()
    errors.seek(0)
    text = errors.read()
    errors.close()
    end, seconds = f"status {process.returncode}", ended - sent
    for line in printed.splitlines():
        if line.startswith("ended "):
            _, at, end = line.split(" ", 2)
            seconds = float(at) - sent
    return end, max(0.0, seconds), text, process.returncode


def left_over(before: set[str], folder: Path, temporary: Path) -> list[str]:
    """What should not be there."""
    found = sorted({str(p.relative_to(folder)) for p in folder.rglob("*")} - before - {"errors"})
    return [name for name in found if name != "out.csv"] + [p.name for p in temporary.iterdir()]


def sweep(name: str, argv: list[str], is_call: bool, arguments: argparse.Namespace, folder: Path) -> Tally:
    tally, rng = Tally(name), random.Random(f"{arguments.seed} {name}")
    temporary = Path(ENVIRONMENT["TMPDIR"])
    for _ in range(arguments.times):
        before = {str(p.relative_to(folder)) for p in folder.rglob("*")} | {"out.csv"}
        second = not is_call and rng.random() < 0.2
        end, seconds, errors, status = run(argv, folder, is_call, rng, second)
        tally.ends[end] = tally.ends.get(end, 0) + 1
        tally.latencies.append(seconds)
        problems = [f"left: {left}" for left in left_over(before, folder, temporary)]
        if "Traceback" in errors:
            problems.append(f"traceback: {errors[-600:]}")
        if status not in ((0,) if is_call else (130, -signal.SIGINT)):
            problems.append(f"status {status}: {errors[-600:]}")
        if seconds > arguments.within:
            problems.append(f"took {seconds:.3f} s")
        output = folder / "out.csv"
        if output.exists():
            if not output.read_text().startswith("#") and "profile" not in name:
                problems.append("partial output")
            output.unlink()
        tally.problems += problems
    return tally


ENVIRONMENT: dict[str, str] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--within", type=float, default=2.0)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children would ignore it
    tallies: list[Tally] = []
    with tempfile.TemporaryDirectory() as base:
        folder, temporary, cache = (Path(base) / name for name in ("work", "tmp", "cache"))
        for path in (folder, temporary, cache):
            path.mkdir(mode=0o700)
        ENVIRONMENT.update(os.environ, TMPDIR=str(temporary), ULAM_CACHE_DIR=str(cache))
        for name, text in PROGRAMS.items():
            (folder / f"{name}.stan").write_text(text)
        begin = "print('begin', flush=True); from ulam.tools.entry import ulam; raise SystemExit(ulam())"
        command = [sys.executable, "-c", begin]
        cases = [(name, [sys.executable, "-c", TIDY + code], True) for name, code in CALLS.items()]
        cases += [(name, [*command, *words], False) for name, words in COMMANDS.items()]
        for name, argv, is_call in cases:
            if arguments.only in name:
                tallies.append(sweep(name, argv, is_call, arguments, folder))
                print(tallies[-1].line(), flush=True)
                for problem in tallies[-1].problems[:5]:
                    print(f"    {problem}", flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps([t.__dict__ for t in tallies]))
    return int(any(tally.problems for tally in tallies))


if __name__ == "__main__":
    raise SystemExit(main())
