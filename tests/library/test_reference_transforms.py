"""Constraining transforms of parameters against tests/reference/transforms.jsonl: one program declares every type."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from reference_programs import Line, element_order, flat, lines

import ulam

POINTS = 4

# tanh is 1 in double precision at the far points, where the reference loses its digits: what is compared, how closely.
FAR = {"cholesky_factor_corr": 1e-4, "corr_matrix": 1e-4}


@pytest.fixture(scope="module")
def types() -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines("transforms.jsonl"):
        if line["type"] != "unit_vector[1]":  # the transform has values there, but Stan refuses to declare it
            found[line["type"]].append(line)
    return dict(found)


@pytest.fixture(scope="module")
def model(types: dict[str, list[Line]]) -> ulam.StanModel:
    declarations = "\n".join(f"{type_} x{n};" for n, type_ in enumerate(types))
    return ulam.StanModel(f"parameters {{\n{declarations}\n}} model {{ }}")


def _line(group: list[Line], point: int) -> Line:
    """Point number `point`; unit_vector has none at the origin."""
    return group[point - POINTS + len(group)] if point + len(group) >= POINTS else group[0]


def _theta(types: dict[str, list[Line]], point: int) -> np.ndarray:
    return np.array([x for group in types.values() for x in flat(_line(group, point)["unconstrained"])])


def _constrained(line: Line) -> list[float]:
    is_matrix = "matrix" in line["type"] or "cholesky" in line["type"]
    return element_order("matrix[,]" if is_matrix else "vector[]", line["constrained"])


def _tolerance(line: Line, usual: float) -> float:
    base = line["type"].partition("[")[0]
    far = any(abs(u) > 5 for u in flat(line["unconstrained"]))
    return FAR[base] if far and base in FAR else usual


@pytest.mark.parametrize("point", range(POINTS))
def test_constrained_values(model: ulam.StanModel, types: dict[str, list[Line]], point: int) -> None:
    found = model.param_constrain(_theta(types, point))
    start = 0
    for group in types.values():
        line = _line(group, point)
        expected = _constrained(line)
        values = found[start : start + len(expected)]
        start += len(expected)
        known = np.isfinite(expected)
        assert values[known] == pytest.approx(
            np.array(expected)[known], rel=_tolerance(line, 1e-12), abs=1e-9 if _tolerance(line, 0) else 0
        ), line["type"]
    assert start == len(found)


@pytest.mark.parametrize("point", range(POINTS))
def test_log_jacobian_and_its_gradient(model: ulam.StanModel, types: dict[str, list[Line]], point: int) -> None:
    theta = _theta(types, point)
    value, gradient = model.log_density_gradient(theta, jacobian=True)
    assert model.log_density(theta, jacobian=False) == 0
    used = [_line(group, point) for group in types.values()]
    if all(math.isfinite(float(line["log_jacobian"])) for line in used):
        expected = math.fsum(line["log_jacobian"] for line in used)
        assert value == pytest.approx(expected, rel=1e-12 if point < POINTS - 1 else 1e-6)
    start = 0
    for line in used:
        wanted = np.array(line["log_jacobian_grad"], dtype=float)
        found = gradient[start : start + len(wanted)]
        start += len(wanted)
        known = np.isfinite(wanted)
        tolerance = _tolerance(line, 1e-10)
        assert np.all(np.abs(found - wanted)[known] <= tolerance * np.maximum(1, np.abs(wanted[known]))), line["type"]
    assert start == len(gradient)


@pytest.mark.parametrize("point", range(POINTS - 1))
def test_unconstraining_is_the_inverse(model: ulam.StanModel, types: dict[str, list[Line]], point: int) -> None:
    theta = _theta(types, point)
    constrained = model.param_constrain(theta)
    again = model.param_constrain(model.param_unconstrain(constrained))
    assert again == pytest.approx(constrained, rel=1e-9, abs=1e-9)
