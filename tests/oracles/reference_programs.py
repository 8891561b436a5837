"""Stan programs around the expressions of tests/reference/functions.jsonl and domain_errors.jsonl.

Compiling is what costs time, so one program holds many expressions; its last parameter chooses among them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import ulam
from ulam.runtime.errors import ProgramError

REFERENCE = Path(__file__).parent.parent / "reference"

Line = dict[str, Any]


def lines(file: str) -> Iterator[Line]:
    with (REFERENCE / file).open() as f:
        for text in f:
            yield json.loads(text)


def chunks(items: list[Line], size: int) -> list[list[Line]]:
    return [items[i : i + size] for i in range(0, len(items), size)]


def flat(value: Any) -> list[float]:
    """Row-major entries."""
    if isinstance(value, list):
        return [x for v in value for x in flat(v)]
    return [float(value)]


def element_order(type_: str, value: Any) -> list[float]:
    """Entries in the order of unconstrained parameters: arrays outermost, matrices by column."""
    if type_.startswith("array["):
        sizes, _, element = type_.removeprefix("array[").partition("] ")
        return _array_order(len(sizes.split(",")), element, value)
    if type_.startswith(("matrix[", "complex_matrix[")):
        return [x for j in range(len(value[0]) if value else 0) for row in value for x in flat(row[j])]
    return flat(value)


def _array_order(rank: int, element: str, value: Any) -> list[float]:
    if rank == 0:
        return element_order(element, value)
    return [x for v in value for x in _array_order(rank - 1, element, v)]


def _renamed(expression: str, names: Iterable[str], number: int) -> str:
    for name in names:
        expression = re.sub(rf"(?<![\w.]){name}(?!\w|\()", f"{name}_{number}", expression)
    return expression


def _scalar(line: Line, expression: str) -> str:
    """The expression itself, or the weighted sum of a container's entries."""
    if not isinstance(line["value"], list):
        return expression
    weights = line.get("weights", [1.0] * len(flat(line["value"])))
    return f"weighted_sum({expression}, {{{', '.join(map(repr, weights))}}})" if weights else "0"


def _weighted_sum(line: Line) -> str:
    """The function that `_scalar` calls, for the type of this line's result: entries in row-major order."""
    type_ = line["signature"].rpartition("=>")[2].strip()
    if not isinstance(line["value"], list) or type_ in ("int", "real"):
        return ""
    rank, element = 0, type_
    if type_.startswith("array["):
        commas, _, element = type_.removeprefix("array[").partition("] ")
        rank = len(commas) + 1
    loops, name = "", "x"
    for depth in range(rank):
        loops += f"for (x{depth} in {name}) "
        name = f"x{depth}"
    if element.endswith("matrix"):
        loops += f"for (i in 1:rows({name})) for (j in 1:cols({name})) "
        name += "[i, j]"
    elif element.endswith("vector"):
        loops += f"for (i in 1:num_elements({name})) "
        name += "[i]"
    body = f"{loops}{{ n += 1; total += w[n] * {name}; }}"
    if element.startswith("complex"):
        body = f"{loops}{{ n += 2; total += w[n - 1] * get_real({name}) + w[n] * get_imag({name}); }}"
    return f"real weighted_sum({type_} x, array[] real w) {{ int n = 0; real total = 0; {body} return total; }}"


def _json_value(value: Any) -> Any:
    """Numbers as the reference writes them → as Stan's JSON has them."""
    if isinstance(value, list):
        return [_json_value(v) for v in value]
    return float(value) if isinstance(value, str) else value


class Batch:
    """One program for several lines, and the point to evaluate each at."""

    def __init__(self, batch: list[Line]) -> None:
        self.lines = batch
        self.data: dict[str, Any] = {}
        self.theta: list[float] = []
        self.places: list[dict[str, slice]] = []
        data_text, parameters, terms, functions = [], [], [], []
        for number, line in enumerate(batch):
            places: dict[str, slice] = {}
            for name, argument in line["args"].items():
                type_, value, unique = argument["type"], argument["value"], f"{name}_{number}"
                if name in line.get("grad", {}) and "int" not in type_:
                    entries = element_order(type_, value)
                    places[name] = slice(len(self.theta), len(self.theta) + len(entries))
                    self.theta += entries
                    parameters.append(f"{type_} {unique};")
                else:
                    data_text.append(f"{type_} {unique};")
                    self.data[unique] = _json_value(value)
            self.places.append(places)
            expression = _scalar(line, _renamed(line["expr"], line["args"], number))
            terms.append(f"if (which == {number}) target += {expression};")
            for text in (line.get("functions_block", ""), _weighted_sum(line)):
                if text and text not in functions:
                    functions.append(text)
        self.text = "\n".join([
            f"functions {{ {' '.join(functions)} }}", "data {", *data_text, "}", "parameters {", *parameters,
            "real which;", "}", "model {", *terms, "}",
        ])  # fmt: skip

    def point(self, number: int) -> list[float]:
        return [*self.theta, float(number)]


def expected_value(line: Line) -> float:
    doubt = line.get("reference_doubt", {})
    if "value" in doubt:
        return float(doubt["value"][0])
    if "value_autodiff" in line:
        return _weighted(line, line["value_autodiff"])
    return _weighted(line, line["value"])


def _weighted(line: Line, value: Any) -> float:
    if not isinstance(value, list):
        return float(value)
    entries = flat(value)
    return math.fsum(w * x for w, x in zip(line.get("weights", [1.0] * len(entries)), entries, strict=True))


def expected_gradient(line: Line, name: str, *, doubt: bool = True) -> list[float]:
    """In element order; with `doubt`, where an independent check contradicts the reference, the independent figure."""
    entries = flat(line["grad"][name])
    for argument, index, _, independent in line.get("reference_doubt", {}).get("grad", []):
        if doubt and argument == name:
            entries[index] = float(independent)
    type_ = line["args"][name]["type"]
    return element_order(type_, _reshaped(line["args"][name]["value"], iter(entries)))


def _reshaped(like: Any, entries: Iterator[float]) -> Any:
    return [_reshaped(v, entries) for v in like] if isinstance(like, list) else next(entries)


SLOW_CONVERGING = re.compile(r"_(l?c?cdf|lccdf|cdf)$|^(gamma_[pq]|inc_beta|owens_t|wiener)|bessel")
SPECIAL = 1e-10, 1e-8
CUMULATIVE = 1e-8, 1e-6


def tolerances(line: Line) -> tuple[float, float]:
    """Relative, for the value and the gradient (tests/reference/README.md)."""
    name = line["function"]
    if "ode" in name:
        return 1e-6, 1e-5
    if SLOW_CONVERGING.search(name):
        return CUMULATIVE
    return SPECIAL


def outcome(model: ulam.StanModel, point: list[float]) -> str:
    """Of a log density, in the words of `domain_errors.jsonl`."""
    try:
        value = model.log_density(np.array(point), propto=False)
    except ProgramError:
        return "throws"
    if math.isnan(value):
        return "nan"
    return "finite" if math.isfinite(value) else "inf" if value > 0 else "-inf"


def border_problem(model: ulam.StanModel, point: list[float], line: Line) -> str:
    """What is wrong at a line of `domain_errors.jsonl`; nothing if it is as the line, or its doubt, says."""
    doubt = line.get("reference_doubt", {})
    found, wanted = outcome(model, point), doubt.get("outcome", line["outcome"])
    if found != wanted:
        crashed = wanted == "not_terminating_or_crash" and found == "throws"  # the reference
        return "" if crashed else f"{found}, expected {wanted}"
    if found != "finite" or "outcome" in doubt:
        return ""
    value, expected = model.log_density(np.array(point), propto=False), _sum_of_entries(line, doubt)
    return "" if abs(value - expected) <= 1e-8 * max(abs(expected), 1e-300) else f"{value!r}, expected {expected!r}"


def _sum_of_entries(line: Line, doubt: dict[str, Any]) -> float:
    """All entries of the result count once."""
    if "value" in doubt:
        return float(doubt["value"][0])
    value = line["value"]
    return math.fsum(flat(value)) if isinstance(value, list) else float(value)
