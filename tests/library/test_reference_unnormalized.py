"""What `_lupdf` and `_lupmf` drop (tests/reference/unnormalized.jsonl): each argument as a parameter or as data."""

from __future__ import annotations

import json

import numpy as np
import pytest
from reference_programs import Batch, Line, chunks, lines

import ulam


def _lines() -> list[Line]:
    """As `Batch` wants them: the arguments in `grad` are parameters."""
    return [{**line, "grad": dict.fromkeys(line["parameters"])} for line in lines("unnormalized.jsonl")]


BATCHES = chunks(_lines(), 32)


@pytest.mark.usefixtures("quick_code")
@pytest.mark.parametrize(
    "number", range(len(BATCHES)), ids=[f"{b[0]['function']}..{b[-1]['function']}" for b in BATCHES]
)
def test_dropped_terms(number: int) -> None:
    """No level changes what is dropped: one in four batches is seen through the passes of a high one."""
    batch = BATCHES[number]
    program = Batch(batch)
    model = ulam.StanModel(program.text, data=json.dumps(program.data), opt_level=0 if number % 4 else 3)
    problems = []
    for number, line in enumerate(batch):
        value = model.log_density(np.array(program.point(number)))
        if value != pytest.approx(line["value"], rel=1e-9, abs=1e-9):
            call = f"{line['expr']} {line['signature']}, parameters {', '.join(line['parameters'])}"
            problems.append(f"{call}: {value!r}, not {line['value']!r}")
    assert not problems, "\n".join(problems)
