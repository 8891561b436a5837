"""Mistakes in data and options that are told before the compiler works."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime import model as model_module
from ulam.runtime.errors import ArgumentError, DataError

pytestmark = pytest.mark.usefixtures("quick_code")

PROGRAM = """data {
  int<lower=0> N;
  array[N] int z;
  matrix[2, N] x;
  cov_matrix[2] S;
  vector[N + 1] v;
  real s;
}
parameters { real p; }
"""
DATA: dict[str, Any] = {
    "N": 2, "z": [1, 2], "x": [[1, 2], [3, 4]], "S": [[1, 0], [0, 1]], "v": [1, 2, 3], "s": 0.5,
}  # fmt: skip
WRONG: list[dict[str, Any]] = [
    {"N": None}, {"s": None}, {"z": None}, {"x": None}, {"S": None}, {"N": 2.5}, {"z": [1, 0.5]}, {"z": [1, 2, 3]},
    {"x": [[1, 2, 3], [4, 5, 6]]}, {"S": [[1]]}, {"s": [1]}, {"s": "x"}, {"N": "x", "z": 1}, {"z": None, "s": None},
    {"x": [[1, 2], [3]]},
]  # fmt: skip


def changed(change: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in {**DATA, **change}.items() if value is not None}


def told(data: Any) -> str:
    with pytest.raises(DataError) as caught:
        ulam.StanModel(PROGRAM, data, cache=False)
    return str(caught.value)


@pytest.mark.parametrize("change", WRONG, ids=str)
@pytest.mark.parametrize("kind", [dict, json.dumps], ids=["mapping", "JSON"])
def test_data_are_checked_before_the_compiler_works(change: dict[str, Any], kind: Any, monkeypatch: Any) -> None:
    """And in the same words as when the program has computed its sizes."""

    def fail(*_: object) -> None:
        raise AssertionError("the program was lowered")

    with monkeypatch.context() as patch:
        patch.setattr("ulam.frontend.lower.program.lower_program", fail)
        early = told(kind(changed(change)))
    if kind is dict:
        monkeypatch.setattr(model_module, "check_declared", lambda *_, **__: None)
        assert told(changed(change)) == early


@pytest.mark.parametrize("change", [{}, {"N": 0, "z": None, "x": None, "v": [1]}, {"more": 1}], ids=str)
def test_data_that_fit(change: dict[str, Any]) -> None:
    assert ulam.StanModel(PROGRAM, changed(change)).param_unc_num() == 1


@pytest.mark.parametrize("change", [{"v": [1, 2]}, {"N": -1}, {"v": None}], ids=str)
def test_what_only_the_program_knows(change: dict[str, Any]) -> None:
    assert told(changed(change))


def test_tuples_are_left_to_the_program() -> None:
    program = "data { tuple(int, real) t; real s; } parameters { real p; }"
    assert ulam.StanModel(program, {"t": (1, 0.5), "s": 1}).param_unc_num() == 1
    with pytest.raises(DataError, match="'s' does not exist"):
        ulam.StanModel(program, {"t": (1, 0.5)})


@pytest.mark.parametrize("level", [7, -1, "3", "dead-code-elimination", True, 3.0, [3]], ids=repr)
def test_optimization_levels(level: Any) -> None:
    told = "unknown level" if isinstance(level, str) else "opt_level must be an int from 0 to 4, or the name of a level"
    with pytest.raises(ArgumentError, match=told) as caught:
        ulam.StanModel("parameters { real x; }", opt_level=level)
    assert isinstance(caught.value, ValueError) and repr(level) in str(caught.value)


def test_levels_of_numpy() -> None:
    model = ulam.StanModel("parameters { real x; } model { target += x; }", opt_level=np.int64(1))  # pyright: ignore
    assert model.log_density(np.array([2.0])) == 2.0 and type(model.options.opt_level) is int
