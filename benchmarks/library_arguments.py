"""The C functions of a library that `ulam build` makes, with wrong arguments, and from 16 threads at once.

    python benchmarks/library_arguments.py --rounds 100 [--guard-pages] [--seed-base 0] [--seconds S]

NULL, wrong sizes and counts, damaged JSON, points and options of every kind: errors only. Each round runs in a process
of its own; `--guard-pages` links the library with the runtime whose memory has guard pages. The work is done by
`tests/oracles/library_argument_sweep.py`, which says what is reported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "oracles"))
    sys.exit(import_module("library_argument_sweep").main())
