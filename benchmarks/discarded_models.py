"""What models leave in memory that were compiled, used once and discarded: the slope of resident memory over cycles.

    python benchmarks/discarded_models.py [--cycles 1200] [--skip 200] [--from source|cache|names]... [--level N]

`source` compiles a program that differs in a comment each time, `names` one whose every name is another, `cache` loads
the same program from the object cache. Each runs in a process of its own. The slope is that of the least-squares line
through resident memory after each tenth cycle from `--skip` on: what caches of bounded size take until they are full
comes before.

Expected: below 5 kB for a cycle. llvmlite keeps 1.5 kB for each unit compiled, here two of them (the callbacks of a
pass builder, which its interface offers no way to free).
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

STATM = Path("/proc/self/statm")
EVERY = 10

SAME = "data { int N; vector[N] y; } parameters { real mu; } model { y ~ normal(mu, 1); }"
RENAMED = """
functions { real f_NUM(real a_NUM, vector v_NUM) { return a_NUM * sum(v_NUM) + NUM.5; } }
data { int N; vector[N] y; }
parameters { real mu_NUM; real<lower=0> s_NUM; vector[N] t_NUM; }
model {
  vector[N] e_NUM = mu_NUM + s_NUM * t_NUM;
  t_NUM ~ normal(0, 1);
  y ~ normal(e_NUM, NUM + 1);
  target += -square(f_NUM(mu_NUM, e_NUM));
}
"""
PROGRAMS: dict[str, Callable[[int], str]] = {
    "source": lambda k: f"// {k}\n{SAME}",
    "cache": lambda k: SAME,
    "names": lambda k: RENAMED.replace("NUM", str(1000 + k)),
}


def resident() -> float:
    """Resident memory of this process, kB."""
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1000


def measure(kind: str, cycles: int, level: int) -> list[float]:
    """Resident memory after each tenth cycle, kB."""
    import ulam

    program = PROGRAMS[kind]
    found: list[float] = []
    for k in range(cycles):
        model = ulam.StanModel(program(k), {"N": 2, "y": [0.5, 1.0]}, cache=kind == "cache", opt_level=level)
        model.log_density_gradient([0.3] * model.param_unc_num())
        del model
        if k % EVERY == EVERY - 1:
            gc.collect()
            found.append(resident())
    return found


def slope(memory: list[float], skip: int) -> float:
    """Of the least-squares line through the values after `skip` cycles, kB for a cycle."""
    import numpy as np

    kept = memory[skip // EVERY :]
    return float(np.polyfit(EVERY * np.arange(len(kept)), kept, 1)[0])


def run(kind: str, cycles: int, skip: int, level: int) -> dict[str, float | str]:
    """Measures one kind in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        done = subprocess.run(
            [sys.executable, __file__, "--child", kind, str(cycles), str(level)],
            env={**os.environ, "ULAM_CACHE_DIR": cache}, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    memory: list[float] = json.loads(done.stdout)
    return {"from": kind, "start": memory[0], "end": memory[-1], "slope": slope(memory, skip)}


def main() -> int:
    if sys.argv[1:2] == ["--child"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=1200)
    parser.add_argument("--skip", type=int, default=200)
    parser.add_argument("--from", dest="kinds", choices=list(PROGRAMS), action="append")
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if arguments.cycles < arguments.skip + 2 * EVERY:
        parser.error("--cycles must leave something to measure after --skip")
    results = [
        run(kind, arguments.cycles, arguments.skip, arguments.level) for kind in arguments.kinds or list(PROGRAMS)
    ]
    if arguments.json:
        print(json.dumps(results))
    else:
        print(f"{'from':8} {'start, MB':>10} {'end, MB':>10} {'kB a cycle':>11}")
        for r in results:
            print(f"{r['from']:8} {r['start'] / 1000:10.1f} {r['end'] / 1000:10.1f} {r['slope']:11.2f}")  # pyright: ignore[reportOperatorIssue]
    return 0


if __name__ == "__main__":
    sys.exit(main())
