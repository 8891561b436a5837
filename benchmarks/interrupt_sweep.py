"""SIGINT at random times: does everything end in time, and leave nothing behind?

    python benchmarks/interrupt_sweep.py [--times 100] [--seed 1] [--kind KIND] [--only NAME]...
        [--within SECONDS] [--results FILE]

Each case is a command in a process of its own, or a call of the Python interface that a process makes again and again.
All take long or for ever, so that the signal comes while they run; one that ended before is run again, not counted.
Some commands get a second SIGINT. A line for each case: how often it was interrupted, the latency (median, largest),
and what went wrong: an exit that is no exit of an interrupt, a command that does not say so, a traceback, a result that
is not there or in part, temporary files, children or threads that are left. Exit status 1 if anything did.

Latency is wall time less the time that a thread of the process waited for a processor, where Linux tells that: other
processes do not count; the largest wall time is shown beside. `--within` is the longest latency that passes: native
code ends at once, Python and LLVM at the end of their step, and Python takes some time to end. `--results` keeps the
runs in a file; the same command again goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import IO, Any

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
parameters { vector<lower=0>[40] a; }
model {
  profile("work") {
    real s = a[1];
    for (k in 1:500000) s = 0.5 * s + 1 / (1 + s);
    target += -1e-9 * square(s);
  }
  for (k in 2:40) target += -100 * square(a[k] - square(a[k - 1])) - square(1 - a[k - 1]);
}
generated quantities { real z = 0; for (i in 1:100000) z += normal_rng(0, 1); print("z ", z); }
"""  # a banana in 40 dimensions, milliseconds a gradient: hundreds of iterations
SHORT = "parameters { real x; } model { x ~ normal(0, 1); }"
PROGRAMS = {"endless": ENDLESS, "recursive": RECURSIVE, "bound": BOUND, "kernel": KERNEL, "slow": SLOW, "short": SHORT}

TIDY = """
import os, signal, sys, threading, time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
import numpy as np
import ulam

point = np.zeros(40)
def tasks(): return len(os.listdir("/proc/self/task"))
def model(name, **options): return ulam.StanModel(name + ".stan", **options)
def check(work, *expected):
    before, threads, begun = signal.getsignal(signal.SIGINT), tasks(), os.listdir("/proc/self/fd")
    try:
        print("begin", flush=True)
        result = work()
    except expected as error:
        print("ended", time.monotonic(), type(error).__name__, flush=True)
    except KeyboardInterrupt:
        print("ended", time.monotonic(), "KeyboardInterrupt", flush=True)
    else:
        print("ended", time.monotonic(), getattr(getattr(result, "termination", None), "label", result), flush=True)
    assert signal.getsignal(signal.SIGINT) is before
    for _ in range(300):
        if tasks() <= threads and threading.active_count() == 1: break
        time.sleep(0.01)
    assert tasks() <= threads and threading.active_count() == 1, (tasks(), threads, threading.enumerate())
    assert len(os.listdir("/proc/self/fd")) <= len(begun) + 1
    small = ulam.StanModel("parameters { real x; } model { x ~ normal(0, 1); }")
    assert small.log_density([2.0]) == -2.0 and small.optimize().converged
    print("tidy", flush=True)
def pool(m, work=lambda m, processes: m.optimize(n_starts=9, executor=processes)):
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        return work(m, processes)
def filed(m):
    try: return m.sample(draws=10**7, progress=False, output="out.csv", keep=False)
    finally: [os.remove(name) for name in os.listdir() if name.startswith("out_")]
def sampled(m, processes): return m.sample(draws=10**6, executor=processes, progress=False)
"""
COMPILED = """
import numpy as np, ulam
m, plain = (ulam.StanModel("slow.stan", profile=profile) for profile in (True, False))
for model in (m, plain):
    model.log_density_gradient(np.zeros(40))
m.log_density(np.zeros(40)), m.optimize(iter=1)
m.laplace({"a": [1.0] * 40}, draws=1), m.optimize(iter=1, jacobian=True)
try: ulam.StanModel("endless.stan").log_density_gradient([0.3], time_limit=1)
except ulam.TimeLimit: pass
"""
CALLS = {
    "log_density": ("m = model('endless')", "check(lambda: m.log_density([0.3]))"),
    "gradient": ("m = model('endless', opt_level=0)", "check(lambda: m.log_density_gradient([0.3]))"),
    "recursion": ("m = model('recursive', opt_level=0)", "check(lambda: m.log_density([0.3]))"),
    "kernel": ("m = model('kernel')", "check(lambda: m.log_density_gradient([0.3]))"),
    "binding": ("", "check(lambda: model('bound'))"),
    "compiling": ("", "check(lambda: [model('slow', cache=False).log_density_gradient(point) for _ in range(99)])"),
    "short calls": ("m = model('short')", "check(lambda: [m.log_density_gradient(point[:1]) for _ in range(10**8)])"),
    "quantities": (
        "m = model('slow'); r = m.new_rng(1)",
        "check(lambda: [m.param_constrain(point, include_gq=True, rng=r) for _ in range(9999)])",
    ),
    "optimize": ("m = model('slow')", "check(lambda: m.optimize(iter=10**6))"),
    "many starts": ("m = model('slow')", "check(lambda: m.optimize(n_starts=999))"),
    "endless starts": ("m = model('endless')", "check(lambda: m.optimize(n_starts=9))"),
    "laplace": ("m = model('slow')", "check(lambda: m.laplace({'a': [1.0] * 40}, draws=10**5) and 'draws')"),
    "pathfinder": ("m = model('slow')", "check(lambda: m.pathfinder(draws=10**5) and 'draws')"),
    "generate_quantities": (
        "m = model('slow')",
        "check(lambda: m.generate_quantities({'a': np.ones((2, 9999, 40))}) and 'draws')",
    ),
    "sample": ("m = model('short')", "check(lambda: m.sample(draws=10**7, progress=False) and 'draws')"),
    "sample slowly": ("m = model('slow')", "check(lambda: m.sample(draws=10**5, progress=False) and 'draws')"),
    "endless sample": ("m = model('endless')", "check(lambda: m.sample(draws=10**5, progress=False) and 'draws')"),
    "sample to files": ("m = model('short')", "check(lambda: filed(m) and 'draws')"),
    "trace": ("m = model('slow')", "check(lambda: [m.track_density(point) for _ in range(999)])"),
    "threads": (
        "m = model('endless')",
        """
ends, begun = [], []
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
""",
    ),
    "own handler": (
        "signal.signal(signal.SIGINT, lambda *_: None); m = model('endless')",
        "check(lambda: m.log_density([0.3]), ulam.Interrupted)",
    ),
    "processes": ("m = model('slow')", "check(lambda: pool(m))"),
    "endless processes": ("m = model('endless')", "check(lambda: pool(m))"),
    "sample in processes": ("m = model('short')", "check(lambda: pool(m, sampled) and 'draws')"),
}
"""What is done once, and what is interrupted."""

OPTIMIZE = ["optimize", "slow.stan", "--output", "out.csv", "--iter", "1000000"]
COMMANDS = {
    "ulam optimize": OPTIMIZE,
    "ulam optimize --starts": ["optimize", "slow.stan", "--starts", "999", "--output", "out.csv"],
    "ulam laplace": ["laplace", "slow.stan", "--draws", "100000", "--output", "out.csv"],
    "ulam laplace --mode": ["laplace", "slow.stan", "--mode", "mode.json", "--draws", "100000", "--output", "out.csv"],
    "ulam pathfinder": ["pathfinder", "slow.stan", "--draws", "100000", "--output", "out.csv"],
    "ulam profile": ["profile", "slow.stan", "--gradients", "100000000", "--output", "out.csv"],
    "ulam bench": ["bench", "slow.stan", "--vs-opt-level", "0", "--rounds", "100000"],
    "ulam trace": ["trace", "endless.stan", "--density", "--unconstrained", "0.3", "--output", "out.txt"],
    "ulam optimize --no-cache": [*OPTIMIZE, "--no-cache"],
    "ulam optimize (endless)": ["optimize", "endless.stan", "--output", "out.csv"],
    "ulam log-density": ["log-density", "endless.stan", "--unconstrained", "0.3"],
    "ulam profile --threads": ["profile", "slow.stan", "--threads", "3", "--gradients", "100000000"],
    "ulam explain": ["explain", "endless.stan", "--unconstrained", "0.3"],
}
CALL_SECONDS, COMMAND_SECONDS = 0.6, 3.0
"""When the signal comes at the latest, from the beginning of the call, or of the import of the command."""
PATIENCE = 60
"""What does not end within so many is killed."""


@dataclass
class Run:
    """What became of one run."""

    case: str
    number: int
    end: str
    wall: float
    seconds: float
    """The latency: `wall` without the time that other processes took."""
    problems: list[str] = field(default_factory=list)


def line(name: str, runs: list[Run]) -> str:
    """The line of the report for a case."""
    times = sorted(run.seconds for run in runs) or [float("nan")]
    counts: dict[str, int] = {}
    for run in runs:
        counts[run.end] = counts.get(run.end, 0) + 1
    ends = ", ".join(f"{count} {end}" for end, count in sorted(counts.items()))
    wall = max((run.wall for run in runs), default=float("nan"))
    return (
        f"{name:26} {len(runs):4} times, {statistics.median(times):6.3f} s, at most {times[-1]:6.3f} s "
        f"({wall:.3f} s): {ends}"
    )


# ---------------------------------------------------------------- latency


class Waiting:
    """How long threads of a process have waited for a processor, sampled from a moment on."""

    def __init__(self, pid: int) -> None:
        self.pid, self._stop = pid, Event()
        self._before = self._now()
        self._samples: list[tuple[float, float]] = []
        self._thread = Thread(target=self._sample, daemon=True)
        self._thread.start()

    def until(self, ended: float) -> float:
        """The longest wait of a thread, up to then."""
        self._stop.set()
        self._thread.join()
        return max((waited for at, waited in self._samples if at <= ended + 0.02), default=0.0)

    def _sample(self) -> None:
        while not self._stop.wait(0.01):
            now = self._now()
            waited = max((spent - self._before.get(task, 0.0) for task, spent in now.items()), default=0.0)
            self._samples.append((time.monotonic(), waited))

    def _now(self) -> dict[str, float]:
        found: dict[str, float] = {}
        tasks = f"/proc/{self.pid}/task"
        with suppress(OSError):  # the process has ended
            for task in os.listdir(tasks):
                with suppress(OSError):
                    found[task] = int(Path(tasks, task, "schedstat").read_text().split()[1]) / 1e9
        return found


def judged(run: Run, sent: float, ended: float, waiting: Waiting, within: float) -> None:
    run.wall = max(0.0, ended - sent)
    run.seconds = max(0.0, run.wall - waiting.until(ended))
    if run.seconds > within:
        run.problems.append(f"took {run.seconds:.3f} s ({run.wall:.3f} s)")


# ---------------------------------------------------------------- commands


def opened(argv: list[str], folder: Path, errors: IO[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv, cwd=folder, stdout=subprocess.PIPE, stderr=errors, text=True, env=ENVIRONMENT, start_new_session=True,
        **options,
    )  # fmt: skip


def command_run(name: str, number: int, folder: Path, rng: random.Random, within: float) -> Run | None:
    """One run of a command; None if it ended before the signal.

    SIGINT is not sent before the first line of the script: what Python does then is its own.
    """
    begin = (
        "from ulam.tools import entry; entry._end_at_once('ulam_main', True); print('begin', flush=True); "
        "raise SystemExit(entry.ulam())"
    )
    before, run = inside(folder), Run(name, number, "", 0.0, 0.0)
    with (folder / "errors").open("w+") as errors:
        process = opened([sys.executable, "-c", begin, *COMMANDS[name]], folder, errors)
        assert process.stdout is not None
        process.stdout.readline()
        delay, second = rng.uniform(0, COMMAND_SECONDS), rng.random() < 0.1
        time.sleep(delay)
        if process.poll() is not None:
            return None
        waiting, sent = Waiting(process.pid), time.monotonic()
        process.send_signal(signal.SIGINT)
        if second:
            time.sleep(rng.uniform(0.15, 0.4))
            process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        judged(run, sent, time.monotonic(), waiting, within)
        errors.seek(0)
        told = errors.read()
    run.end = f"status {process.returncode}"
    check_command(run, process, told, second, folder)
    run.problems += [f"left: {left}" for left in sorted(inside(folder) - before - {"errors"})]
    return run


def check_command(run: Run, process: subprocess.Popen[str], told: str, second: bool, folder: Path) -> None:
    """What the command says and writes, and what of it is left."""
    if "Traceback" in told:
        run.problems.append(f"traceback: {told[-600:]}")
    if process.returncode != 130 and not (second and process.returncode == -signal.SIGINT):
        run.problems.append(f"status {process.returncode}: {told[-600:]}")
    elif process.returncode == 130 and sum(row.startswith("ulam: interrupted") for row in told.splitlines()) != 1:
        run.problems.append(f"says {told[-600:]!r}")
    output, shown = folder / "out.csv", "far are shown" in told or "far is shown" in told
    if output.exists():
        run.end += ", result"
        rows = [row for row in output.read_text().splitlines() if not row.startswith("#")]
        if len({row.count(",") for row in rows}) != 1 or len(rows) < 2:
            run.problems.append("partial output")
        output.unlink()
    if shown and ", result" not in run.end and process.returncode == 130:
        run.problems.append("a result is told of that is not there")
    with suppress(ProcessLookupError):
        os.killpg(process.pid, 0)
        run.problems.append("a process is left")


def inside(folder: Path) -> set[str]:
    """What is in a folder, and among temporary files."""
    temporary = Path(ENVIRONMENT["TMPDIR"])
    return {str(p.relative_to(folder)) for p in folder.rglob("*")} | {p.name for p in temporary.iterdir()}


# ---------------------------------------------------------------- calls


class Caller:
    """A process that makes a call each time that it is told to; another one when that has not ended well."""

    def __init__(self, name: str, folder: Path) -> None:
        setup, self.work = CALLS[name]
        body = "\n".join(f"    {row}" for row in self.work.splitlines())
        self.script = f"{TIDY}{setup}\nprint('ready', flush=True)\nfor _ in sys.stdin:\n{body}\n"
        self.name, self.folder = name, folder
        self.process: subprocess.Popen[str] | None = None
        self.printed = ""

    def __enter__(self) -> Caller:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            for stream in (self.process.stdin, self.process.stdout):
                assert stream is not None
                stream.close()
            self.process, self.printed = None, ""

    def run(self, number: int, rng: random.Random, within: float) -> Run | None:
        """One call; None if it ended before the signal."""
        before, run = inside(self.folder), Run(self.name, number, "", 0.0, 0.0)
        with (self.folder / "errors").open("a+") as errors:
            if self.process is None:
                errors.truncate(0)
                self.process = opened([sys.executable, "-c", self.script], self.folder, errors, stdin=subprocess.PIPE)
                self._line("ready")
                before = inside(self.folder)
            assert self.process.stdin is not None
            self.process.stdin.write("\n")
            self.process.stdin.flush()
            self._line("begin")
            limit = 4 * CALL_SECONDS if "processes" in self.name else CALL_SECONDS
            time.sleep(rng.uniform(0, limit))
            waiting, sent = Waiting(self.process.pid), time.monotonic()
            self.process.send_signal(signal.SIGINT)
            words = self._line("ended").split(" ", 2)
            if len(words) < 3 or float(words[1]) < sent:
                waiting.until(0)
                early = len(words) == 3
                told = (self.folder / "errors").read_text()
                self.__exit__()
                if early:
                    return None
                run.end = "did not end well"
                run.problems.append(told[-1500:])
                return run
            run.end = words[2].strip()
            judged(run, sent, float(words[1]), waiting, within)
            if not self._line("tidy"):
                run.problems.append(f"is not tidy: {(self.folder / 'errors').read_text()[-1500:]}")
                self.__exit__()
        run.problems += [f"left: {left}" for left in sorted(inside(self.folder) - before - {"errors"})]
        return run

    def _line(self, begin: str) -> str:
        """The next line that begins so; empty if the process ends, or takes too long."""
        assert self.process is not None and self.process.stdout is not None
        end, stream = time.monotonic() + PATIENCE, self.process.stdout.fileno()
        while True:
            while "\n" in self.printed:
                row, _, self.printed = self.printed.partition("\n")
                if row.startswith(begin):
                    return row
            if not select.select([stream], [], [], max(0.0, end - time.monotonic()))[0]:
                return ""
            read = os.read(stream, 4096).decode()
            if not read:
                return ""
            self.printed += read


# ---------------------------------------------------------------- all


def sweep(name: str, known: list[Run], arguments: argparse.Namespace, folder: Path) -> list[Run]:
    """The runs of a case, those that were known among them."""
    runs, early = list(known), 0
    with Caller(name, folder) if name in CALLS else nullcontext() as caller:
        while len(runs) < arguments.times:
            number = len(runs)
            rng = random.Random(f"{arguments.seed} {name} {number} {early}")
            if caller is not None:
                found = caller.run(number, rng, arguments.within)
            else:
                found = command_run(name, number, folder, rng, arguments.within)
            if found is None:
                early += 1
                if early > arguments.times:
                    raise SystemExit(f"{name} ends before it is interrupted")
                continue
            runs.append(found)
            if arguments.results:
                with arguments.results.open("a") as file:
                    file.write(json.dumps(asdict(found)) + "\n")
    return runs


ENVIRONMENT: dict[str, str] = {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], choices=[*CALLS, *COMMANDS], metavar="NAME")
    parser.add_argument("--kind", choices=("calls", "commands"), help="only these")
    parser.add_argument("--within", type=float, default=2.0)
    parser.add_argument("--results", type=Path)
    arguments = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job's children would ignore it
    known: dict[str, list[Run]] = {}
    if arguments.results and arguments.results.exists():
        for row in arguments.results.read_text().splitlines():
            run = Run(**json.loads(row))
            known.setdefault(run.case, []).append(run)
    wrong = False
    with tempfile.TemporaryDirectory() as base:
        folder, temporary, cache = (Path(base) / name for name in ("work", "tmp", "cache"))
        for path in (folder, temporary, cache):
            path.mkdir(mode=0o700)
        ENVIRONMENT.update(os.environ, TMPDIR=str(temporary), ULAM_CACHE_DIR=str(cache))
        for name, text in PROGRAMS.items():
            (folder / f"{name}.stan").write_text(text)
        (folder / "mode.json").write_text(json.dumps({"a": [1.0] * 40}))
        # What is always interrupted while it is compiled never comes into the cache.
        subprocess.run([sys.executable, "-c", COMPILED], cwd=folder, env=ENVIRONMENT, check=True, capture_output=True)
        kinds = {"calls": CALLS, "commands": COMMANDS}
        for kind, cases in kinds.items():
            for name in cases if arguments.kind in (None, kind) else ():
                if arguments.only and name not in arguments.only:
                    continue
                runs = sweep(name, known.get(name, []), arguments, folder)
                print(line(name, runs), flush=True)
                for problem in [problem for run in runs for problem in run.problems][:5]:
                    wrong = True
                    print(f"    {problem}", flush=True)
    return int(wrong)


if __name__ == "__main__":
    raise SystemExit(main())
