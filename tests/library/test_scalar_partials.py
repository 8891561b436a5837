"""Values and partial derivatives of scalar functions where terms cancel, run over or vanish, against 60 digits.

A line of tests/reference/scalar_partials.jsonl is a call, its real arguments, its value and the partials. They were
made with mpmath; benchmarks/scalar_accuracy.py compares many more points.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ulam

LINES: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "reference" / "scalar_partials.jsonl").read_text().splitlines()
]


@pytest.mark.usefixtures("quick_code")
def test_values_and_partials() -> None:
    statements = "\n".join(
        f"  value[{i + 1}] = {line['call'].format(*(f'x[{i + 1}, {k + 1}]' for k in range(len(line['at']))))};"
        for i, line in enumerate(LINES)
    )
    program = f"""parameters {{ array[{len(LINES)}] vector[4] x; }}
transformed parameters {{
  vector[{len(LINES)}] value;
{statements}
}}
model {{ target += sum(value); }}"""
    x = np.full((len(LINES), 4), 0.5)
    for i, line in enumerate(LINES):
        x[i, : len(line["at"])] = line["at"]
    model = ulam.StanModel(program)
    values = model.param_constrain(x.ravel(), include_tp=True)[x.size :]
    gradient = model.log_density_gradient(x.ravel())[1].reshape(x.shape)
    problems = []
    for line, value, partials in zip(LINES, values, gradient, strict=True):
        for name, found, expected in zip(
            ("value", "partial 1", "partial 2", "partial 3", "partial 4"),
            (value, *partials),
            (line["value"], *line["partials"]),
            strict=False,
        ):
            if found != pytest.approx(expected, rel=1e-11, abs=0):
                problems.append(f"{line['call'].format(*line['at'])}: {name} is {found!r}, expected {expected!r}")
    assert not problems, "\n".join(problems)
