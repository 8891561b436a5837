"""Every container in every block with sizes from the data: a right value or an error that names it, never a crash."""

from __future__ import annotations

import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from size_programs import INT_MAX, KINDS, MOST_BYTES, MOST_SIZE, PARAMETERS, PROGRAMS, RESULTS, count

WORKER = Path(__file__).parent / "size_programs.py"
SIZES = (-1, 0, 1, 3, 46341, 65537, 2**30, INT_MAX - 1, INT_MAX)
GLOBAL = ("transformed_data", "parameters", "transformed_parameters", "generated_quantities")
SMALL_BYTES = 1 << 26


def _outcomes(cases: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """What a process of its own makes of the cases."""
    text = "".join(json.dumps(case) + "\n" for case in cases)
    done = subprocess.run(
        [sys.executable, str(WORKER)], input=text, capture_output=True, text=True, check=False, timeout=3600
    )
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, cases[len(lines)], done.stderr[-2000:])
    for case, line in zip(cases, lines, strict=True):
        yield case, json.loads(line)


def _least_and_sizes(case: dict[str, Any]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The least sizes that Stan demands, and the sizes."""
    which, n, m = case["which"], case["N"], case["M"]
    if case["block"] == "parameters":
        declaration, least, _ = PARAMETERS[which]
        return least, (n, m)[: len(least)] if "{m}" in declaration else (n,)
    sizes = (RESULTS[which][1] if case["block"] == "results" else KINDS[which].sizes)(n, m)
    return (0,) * len(sizes), sizes


def _is_possible(case: dict[str, Any]) -> bool | None:
    """Whether there must be a value; None: it depends on the machine's memory."""
    least, sizes = _least_and_sizes(case)
    if any(size < minimum for size, minimum in zip(sizes, least, strict=True)):
        return False
    unconstrained = 0
    if case["block"] == "parameters":
        declaration, _, unconstrained_of = PARAMETERS[case["which"]]
        if declaration.startswith("cholesky_factor_cov[{n}, {m}]") and case["N"] < case["M"]:
            return False
        unconstrained = unconstrained_of(case["N"], case["M"])
        if "matrix[{n}]" in declaration or "_factor_corr" in declaration or "_factor_cov[{n}]" in declaration:
            sizes = (case["N"], case["N"])
    if case["block"] in GLOBAL and any(size > MOST_SIZE for size in sizes):
        return False
    held = 8 * max(math.prod(max(size, 1) for size in sizes), unconstrained)
    if case["block"] == "results":
        held *= 4
    return True if held <= SMALL_BYTES else False if held > 4 * MOST_BYTES else None


def _check(case: dict[str, Any], outcome: dict[str, Any]) -> None:
    possible = _is_possible(case)
    if (error := outcome.get("error")) is not None:
        assert possible is not True, (case, outcome)
        is_memory = "memory" in error or "too large" in error
        if case["block"] != "results" and not is_memory:
            assert f"x{case['which']}" in error, (case, outcome)
        assert "internal error" not in error
        return
    assert possible is not False, (case, outcome)
    assert outcome["value"] == pytest.approx(0.3) and outcome["slope"] == 1.0, (case, outcome)
    if case["block"] == "parameters":
        others = sum(c(2, 2) for number, (_, _, c) in enumerate(PARAMETERS) if number != case["which"])
        own = PARAMETERS[case["which"]][2](case["N"], case["M"])
        assert outcome["unconstrained"] == 1 + own + others, (case, outcome)


def _cases(block: str, level: int, sizes: tuple[int, ...]) -> list[dict[str, Any]]:
    return [
        {"block": block, "level": level, "which": which, "N": n, "M": m}
        for which in range(count(block))
        for n in sizes
        for m in sizes
    ]


def test_sizes_of_containers() -> None:
    """A share of all cases: each container with each size once, at level 0, and some at level 3."""
    choose = random.Random(1)
    cases = []
    for level, blocks in ((0, tuple(PROGRAMS)), (3, ("model", "parameters"))):
        for block in blocks:
            everything = _cases(block, level, SIZES)
            cases += choose.sample(everything, 30)
    for case, outcome in _outcomes(cases):
        _check(case, outcome)


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("block", PROGRAMS)
def test_sizes_of_containers_in_all_blocks(block: str, level: int) -> None:
    for case, outcome in _outcomes(_cases(block, level, SIZES)):
        _check(case, outcome)
