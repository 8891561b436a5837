"""Compares passes and levels with level 0 on random programs, and reduces what differs.

    python benchmarks/translation_validation.py --programs 2000 --jobs 2 [--passes a,b] [--seed-base 0] [--keep DIR]

Each difference is printed with the seed of its program. The reduced programs go to DIR; what shows a mistake of a pass
belongs in tests/regressions, with a line on what went wrong. The work is done by `tests/oracles/validation_sweep.py`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "oracles"))
    sys.exit(import_module("validation_sweep").main())
