"""Calls with containers at and outside the border of their domain, against tests/reference/domain_errors.jsonl.

Those of scalars are in test_reference_functions.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from reference_programs import Batch, Line, chunks, flat, lines, outcome

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")

# Where ours is on purpose another answer: function and category.
OURS = {
    ("multi_normal_cholesky_lpdf", "not_lower_triangular"): "Stan looks above the diagonal only if y is an array",
    ("normal_lpdf", ""): "no outcomes with an infinite scale: none times infinity",
    ("bernoulli_logit_glm_lpmf", ""): "all arguments must be finite; Stan looks only if the result is not",
    ("log_determinant", ""): "of a singular matrix it is minus infinity, but for rounding",
    ("log_determinant_spd", ""): "an error, where Stan says so and gives NaN",
}


def _lines() -> list[Line]:
    return [
        _callable(line)
        for line in lines("domain_errors.jsonl")
        if "args" in line
        and any(a["type"] not in ("int", "real") for a in line["args"].values())
        and all(_has_its_size(a) for a in line["args"].values())
    ]


def _has_its_size(argument: dict[str, Any]) -> bool:
    """Some lines have more elements than their type says."""
    return argument["type"] != "vector[0]" or argument["value"] == []


def _callable(line: Line) -> Line:
    """With what a program for lines needs: reals are parameters, all entries of the result are added up."""
    type_ = line["signature"].rpartition("=>")[2].strip()
    value = [1.0] if type_ not in ("int", "real") else 1.0
    entries = len(flat(line["value"])) if isinstance(line.get("value"), list) else 64
    data = line.get("data_args", ())
    grad = {name for name, a in line["args"].items() if "int" not in a["type"] and name not in data}
    return {**line, "grad": grad, "value": value, "weights": [1.0] * max(entries, 1)}


CHUNKS = chunks(_lines(), 45)


@pytest.mark.slow
@pytest.mark.parametrize("batch", CHUNKS, ids=lambda b: f"{b[0]['function']}..{b[-1]['function']}")
def test_border_of_the_domain(batch: list[Line]) -> None:
    program = Batch(batch)
    model = ulam.StanModel(program.text, data=json.dumps(program.data), opt_level=0)
    problems = []
    for number, line in enumerate(batch):
        found = outcome(model, program.point(number))
        if found != line["outcome"] and (line["function"], line.get("category", "")) not in OURS:
            at = [re.sub(r"\s", "", str(a["value"])) for a in line["args"].values()]
            call = f"{line['function']} {line['signature']} at {at}"
            problems.append(f"{call}: {found}, expected {line['outcome']} {line.get('message', '')}")
    assert not problems, "\n".join(problems)
