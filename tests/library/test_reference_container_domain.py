"""Calls with containers at and outside the border of their domain, against tests/reference/domain_errors.jsonl.

Those of scalars are in test_reference_functions.py.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from reference_programs import Batch, Line, border_problem, chunks, flat, lines

import ulam

pytestmark = pytest.mark.usefixtures("quick_code")


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
    return {**line, "original": line.get("value"), "grad": grad, "value": value, "weights": [1.0] * max(entries, 1)}


CHUNKS = chunks(_lines(), 45)


@pytest.mark.slow
@pytest.mark.parametrize("batch", CHUNKS, ids=lambda b: f"{b[0]['function']}..{b[-1]['function']}")
def test_border_of_the_domain(batch: list[Line]) -> None:
    program = Batch(batch)
    model = ulam.StanModel(program.text, data=json.dumps(program.data), opt_level=0)
    problems = []
    for number, line in enumerate(batch):
        given = {key: line[key] for key in ("outcome", "reference_doubt", "original") if key in line}
        if problem := border_problem(model, program.point(number), {**given, "value": given.pop("original", None)}):
            at = [re.sub(r"\s", "", str(a["value"])) for a in line["args"].values()]
            problems.append(f"{line['function']} {line['signature']} at {at}: {problem} {line.get('message', '')}")
    assert not problems, "\n".join(problems)


def test_border_of_transforms() -> None:
    """Nothing points from the origin; a unit vector of one element is refused as such."""
    found = [line for line in lines("domain_errors.jsonl") if "transform" in line]
    assert len(found) == 5 and all(line["outcome"] == "throws" for line in found)
    for line in found:
        with pytest.raises((ulam.Rejection, ulam.DataError)):
            ulam.StanModel(f"parameters {{ {line['transform']} x; }}").log_density(line["unconstrained"])
