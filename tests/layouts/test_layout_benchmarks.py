"""The programs of benchmarks/layouts have the layouts that they are expected to have, in both forms of each;
`benchmarks/layouts.py` has what these gain.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

LAYOUTS = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "layouts.py"))
CASES = [LAYOUTS["Case"].read(path) for path in sorted(LAYOUTS["FOLDER"].glob("*.stan"))]
FORMS = [pytest.param(case, False, id=case.path.stem) for case in CASES]
OTHERS = [pytest.param(case, True, id=f"other-{case.path.stem}") for case in CASES if case.other]


@pytest.mark.filterwarnings("ignore::ulam.runtime.errors.UnusedNameWarning")  # one form reads less of the data
@pytest.mark.parametrize(("case", "other"), FORMS + OTHERS)
def test_layouts_are_taken_where_they_pay(case: Any, other: bool) -> None:
    data = case.data()
    pair = [case.model(data, layouts=layouts, other=other) for layouts in (True, False)]
    taken = {choice.layout for choice in pair[0].layout_choices() if choice.taken}
    assert not taken if case.expected == LAYOUTS["NONE"] else case.expected in taken
    assert LAYOUTS["difference_of"](pair, np.random.default_rng(1)) < 1e-10
