"""What is particular to a unit stands in one table; a model's recipe makes it again."""

from __future__ import annotations

import ast
import pickle
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

import ulam
from ulam.passes.pipelines import PipelineError, parse_pipeline
from ulam.passes.units import DEFAULT_UNIT, UNITS, density_unit
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.data import read_data
from ulam.runtime.model import Recipe, _restore  # pyright: ignore[reportPrivateUsage]

ROOT = Path(__file__).resolve().parents[2]
POINT = np.array([0.5])
PROGRAM = "data { int N; } parameters { real x; } model { x ~ normal(N, 1); }"


def _found(**wanted: object) -> list[str]:
    return [name for name, kind in UNITS.items() if all(getattr(kind, key) == is_ for key, is_ in wanted.items())]


def test_properties_of_units() -> None:
    """Those that the names promise, and those that follow."""
    gradients = ["gradient_propto", "gradient_full"]
    products = ["hessian_vector_propto", "hessian_vector_full"]
    values = ["value_propto", "value_full"]
    assert _found(gradient=True) == [*gradients, *products]
    assert _found(hessian=True) == products
    assert _found(counts_entries=True) == gradients
    assert _found(hot=True) == [*values, *gradients, *products]
    assert _found(has_bind=True) == [*values, *gradients, *products, "constrain"]
    assert _found(locating=True) == ["locate", "locate_constrain"]
    assert _found(profiled=False) == [*products, "locate", "locate_constrain"]
    assert _found(is_bound=False) == ["setup"]
    assert _found(propto=True) == ["value_propto", "gradient_propto", "hessian_vector_propto"]
    assert density_unit(1, True) is DEFAULT_UNIT and density_unit(2, False).name == "hessian_vector_full"
    with pytest.raises(FrozenInstanceError):
        setattr(DEFAULT_UNIT, "name", "other")  # noqa: B010


def test_units_are_told_from_nothing_but_the_table() -> None:
    """No other module compares a name with the beginning or the end of those of units."""
    parts = {part for name in UNITS for part in (name, *name.split("_"))} | {"hessian_vector", "_propto", "_full"}
    wrong = []
    for folder in ("passes", "emit", "runtime", "tracing", "tools"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                    continue
                if node.func.attr in ("startswith", "endswith", "removesuffix", "removeprefix"):
                    literals = {n.value for n in ast.walk(node) if isinstance(n, ast.Constant)}
                    wrong += [f"{path}:{node.lineno}" for literal in literals & parts if isinstance(literal, str)]
    assert not wrong


def test_unknown_unit() -> None:
    with pytest.raises(PipelineError, match="unit must be one of setup, value_propto, .*, found 'gradient'"):
        parse_pipeline("convert-stan-to-loops{unit=gradient}")


def test_recipe_makes_the_model_again() -> None:
    """A pickle has the recipe's fields by position, the last of which may be missing: those of before can be read."""
    model = ulam.StanModel(PROGRAM, {"N": 2}, seed=7, opt_level=0, cache=False)
    copy = pickle.loads(pickle.dumps(model))
    assert (copy.seed, copy.options, copy.source) == (7, model.options, model.source)
    assert copy.log_density(POINT) == model.log_density(POINT)
    before = (PROGRAM, "model.stan", read_data({"N": 2}), 3, True, CompileOptions(0), False)
    assert _restore(*before).log_density(POINT) == model.log_density(POINT)
    assert [field.name for field in fields(Recipe)][: len(before)] == [
        "text", "filename", "values", "seed", "capture_stan_prints", "options", "cache",
    ]  # fmt: skip
