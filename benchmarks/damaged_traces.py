"""Reads saved traces with right checksums and wrong contents: each is read, or is a DamagedTrace.

    python benchmarks/damaged_traces.py --traces 1000 [--seed-base 0]

Prints how many were of which kind, and the seed of each that ended otherwise; the exit status tells whether there are
such. The changes are made by `tests/oracles/damaged_traces.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import numpy as np

from ulam import StanModel
from ulam.trace import Seeded

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
from damaged_traces import verdict  # noqa: E402
from trace_programs import PROGRAM, READING  # noqa: E402


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--traces", type=int, default=1000, help="how many")
    parser.add_argument("--seed-base", type=int, default=0, help="seed of the first")
    options = parser.parse_args()
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace"
        originals: list[bytes] = []
        program = StanModel(PROGRAM)
        for made in (
            program.track("h", 2.0, 4),
            program.track("geom_rng", 1, 0.3, rng=Seeded(5)),
            StanModel(READING).track("top", np.ones(3), np.arange(6.0).reshape(2, 3), [1, 2, 3]),
        ):
            made.trace.save(path)
            originals.append(path.read_bytes())
        for seed in range(options.seed_base, options.seed_base + options.traces):
            try:
                found[verdict(path, originals[seed % len(originals)], seed)] += 1
            except Exception:
                found["other"] += 1
                print(f"seed {seed}:\n{traceback.format_exc()}", flush=True)
    print(*(f"{count} {kind}" for kind, count in sorted(found.items())), sep=", ")
    return int("other" in found)


if __name__ == "__main__":
    sys.exit(main())
