"""Random programs full of indexing, the test programs and posteriordb under guard pages: accesses outside of memory.

    python benchmarks/guard_pages.py --programs 1000 --results FILE [--seed-base 0] [--seconds S]
    python benchmarks/guard_pages.py --layouts 1000 --results FILE [--seed-base 0] [--seconds S]
    python benchmarks/guard_pages.py --test-programs --posteriordb DIR --results FILE

Each program runs in processes of its own, with a runtime that gives every block pages of its own and that is built if
need be. A run that is cut short goes on where it was if the same FILE is given. The work is done by
`tests/oracles/guarded_sweep.py`, which says what is reported.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
    sys.exit(import_module("guarded_sweep").main())
