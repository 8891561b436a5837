"""Many fits of one program through Dask's local cluster: that all are there when a worker is killed, and how it scales.

    python benchmarks/many_fits.py [--fits N] [--rounds N] [--scale-fits N] [--only bits|scaling] [--full]
                                   [--lean]

`bits`: N fits of eight schools with other data, with a worker of the cluster killed in the middle; all have to be
there, with the bits that one process gives. `scaling`, without a kill: fits per second of one process, of two
independent processes that share nothing, and of a cluster with two workers, by turns in each round; two workers have to
reach 0.8 of what two processes reach, in the median of the rounds. Beside it is the processor time of a fit, in ms: in
a process, and through Dask with all of the cluster's own work; and how busy the processors were, with the work of
others, too. `--full` keeps all draws of each fit; without it the means of two parameters, and a digest of all draws.
Exit status 1 if a bar is missed. Needs `distributed`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import ulam
from ulam.runtime.studies.progress import StudyProgress

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "examples" / "eight_schools.stan"
LEAST_SHARE = 0.8
WORKERS = 2


def data_sets(count: int) -> list[dict[str, Any]]:
    """Eight schools with other effects: the published ones, and normal errors on them."""
    given = json.loads((ROOT / "examples" / "eight_schools.json").read_text())
    generator = np.random.default_rng(8)
    errors = generator.normal(0, np.array(given["sigma"], dtype=float), (count, 8))
    return [{**given, "y": (np.array(given["y"]) + each).tolist()} for each in errors]


def kept(fit: Any) -> dict[str, Any]:
    """Means, and a digest of all draws: two fits with the same one have the same bits."""
    digest = hashlib.sha256(np.ascontiguousarray(fit.values).tobytes())
    digest.update(np.ascontiguousarray(fit.stats["lp"]).tobytes())
    return {"mu": fit["mu"].mean(), "tau": fit["tau"].mean(), "bits": np.frombuffer(digest.digest(), dtype=np.uint8)}


LEAN = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}
"""Settings of Dask with which its processes do less while they wait."""


@contextmanager
def cluster(is_lean: bool = False) -> Iterator[Any]:
    """A client of a cluster with two workers of one thread each."""
    import distributed  # pyright: ignore[reportMissingImports]
    from dask import config  # pyright: ignore[reportMissingImports]

    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None}
    with (
        config.set(LEAN if is_lean else {}),
        distributed.LocalCluster(**options) as made,
        distributed.Client(made) as client,
    ):
        yield client


def options_of(is_full: bool) -> dict[str, Any]:
    return {"progress": False} if is_full else {"progress": False, "extract": kept}


# ---------------------------------------------------------------- the same bits


def equal(a: Any, b: Any) -> bool:
    names = set(a.arrays) - {"seconds"}
    return a.index == b.index and all(np.array_equal(a.arrays[name], b.arrays[name]) for name in names)


def check_bits(fits: int, is_full: bool) -> bool:
    """Whether all fits are there, the same, with a worker killed in the middle."""
    sets, options = data_sets(fits), options_of(is_full)
    began = time.monotonic()
    here = ulam.fit_many(PROGRAM, sets, workers=1, **options)
    print(f"one process: {len(here.finished)} fits in {time.monotonic() - began:.1f} s", flush=True)
    killed: list[int] = []
    with cluster() as client:
        workers = sorted(client.run(os.getpid).values())

        def kill(update: StudyProgress) -> None:
            if update.done >= fits // 2 and not killed:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        began = time.monotonic()
        there = ulam.fit_many(PROGRAM, sets, executor=client.get_executor(), **{**options, "progress": kill})
    seconds = time.monotonic() - began
    same = sum(equal(a, b) for a, b in zip(here, there, strict=False))
    print(
        f"Dask, {WORKERS} workers, one of them killed: {len(there.finished)} fits in {seconds:.1f} s, {same} the same"
    )
    return bool(killed) and len(there.finished) == len(here.finished) == same == fits


# ---------------------------------------------------------------- scaling


def busy_seconds() -> float:
    """Processor time of all processes of the machine; NaN where that is not told."""
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return float("nan")
    idle = int(fields[3]) + int(fields[4])
    return (sum(map(int, fields[:8])) - idle) / os.sysconf("SC_CLK_TCK")


class Process:
    """An independent process that fits on demand; what it fits is compiled."""

    def __init__(self, is_full: bool) -> None:
        command = [sys.executable, __file__, "--serve", *(["--full"] if is_full else [])]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.wait()

    def cpu_seconds(self) -> float:
        """Processor time so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def begin(self, first: int, last: int) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{first} {last}\n")
        self.process.stdin.flush()

    def wait(self) -> None:
        assert self.process.stdout is not None
        if self.process.stdout.readline() != "done\n":
            raise SystemExit("a process ended")

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def serve(is_full: bool) -> None:
    """Fits the data sets that are asked for, one after the other."""
    sets = data_sets(10_000)
    options = {"workers": 1, **options_of(is_full)}
    ulam.fit_many(PROGRAM, sets[:2], **options)
    print("done", flush=True)
    for line in sys.stdin:
        first, last = map(int, line.split())
        study = ulam.fit_many(PROGRAM, sets[first:last], **options)
        assert len(study.finished) == last - first
        print("done", flush=True)


def cpu_seconds(client: Any) -> float:
    """Processor time of this process, the scheduler in it, and the workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def check_scaling(fits: int, rounds: int, is_full: bool, is_lean: bool) -> bool:
    """Whether two workers reach their share of what two independent processes do, `fits` fits for each."""
    sets, options = data_sets(2 * fits), options_of(is_full)
    processes = [Process(is_full) for _ in range(WORKERS)]
    shares: list[float] = []
    print("fits/s    one process  two processes   Dask  share  ms of CPU (process, Dask)   busy", flush=True)
    with cluster(is_lean) as client:
        executor = client.get_executor()
        ulam.fit_many(PROGRAM, sets[:20], executor=executor, **options)

        def independent(count: int) -> None:
            for k in range(count):
                processes[k].begin(k * fits, (k + 1) * fits)
            for k in range(count):
                processes[k].wait()

        def through_dask() -> None:
            study = ulam.fit_many(PROGRAM, sets, executor=executor, **options)
            assert len(study.finished) == len(sets)

        for number in range(rounds):
            rates: list[float] = []
            cpu: list[float] = []
            began, busy = time.monotonic(), busy_seconds()
            for work, count in ((lambda: independent(1), 1), (lambda: independent(2), 2), (through_dask, 2)):
                spent = sum(process.cpu_seconds() for process in processes), cpu_seconds(client)
                before = time.monotonic()
                work()
                rates.append(count * fits / (time.monotonic() - before))
                now = sum(process.cpu_seconds() for process in processes), cpu_seconds(client)
                cpu.append(max(b - a for a, b in zip(spent, now, strict=True)) / (count * fits))
            load = (busy_seconds() - busy) / (time.monotonic() - began) / (os.cpu_count() or 1)
            one, two, dask = rates
            shares.append(dask / two)
            figures = f"{one:11.1f}  {two:13.1f}  {dask:5.1f}  {dask / two:5.2f}"
            print(
                f"round {number + 1:<3} {figures}  {1e3 * cpu[1]:10.1f}, {1e3 * cpu[2]:.1f}  {load:16.0%}", flush=True
            )
    for process in processes:
        process.close()
    median = statistics.median(shares)
    print(f"two workers reach {median:.2f} of two processes (median of {rounds}); at least {LEAST_SHARE} is the bar")
    return median >= LEAST_SHARE


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=2000, help="with a worker killed (default: 2000)")
    parser.add_argument("--scale-fits", type=int, default=300, help="of each process, in a round (default: 300)")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("bits", "scaling"))
    parser.add_argument("--full", action="store_true", help="keep all draws")
    parser.add_argument("--lean", action="store_true", help="Dask without its profiler, and with rarer ticks")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.serve:
        serve(options.full)
        return 0
    fine = True
    if options.only != "scaling":
        fine = check_bits(options.fits, options.full)
    if options.only != "bits":
        fine = check_scaling(options.scale_fits, options.rounds, options.full, options.lean) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
