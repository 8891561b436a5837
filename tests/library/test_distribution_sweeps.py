"""The sweeps over distributions, benchmarks/tails.py and benchmarks/rng_distributions.py, have all of them; random
numbers have their distributions."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ulam.library import signature_table
from ulam.library.functions import FunctionKind, named

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"

WITHOUT_TAILS = {
    "discrete_range": "sums of equal masses",
    "hypergeometric": "of ints alone",
}


def _module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"sweep_{name}", BENCHMARKS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


RNG = _module("rng_distributions")


def _stems(*kinds: FunctionKind) -> set[str]:
    """Distributions with a function of scalars of these kinds."""
    return {
        named(name).stem
        for name in signature_table.names()
        if named(name).kind in kinds
        and any(set(codes) <= {"i", "r"} for codes in (signature_table.row(name) or ("", {}))[1])
    }


def test_every_univariate_distribution_has_points_in_its_tails() -> None:
    recipes = set(_module("tail_points").RECIPES)
    wanted = _stems(FunctionKind.DENSITY, FunctionKind.MASS, FunctionKind.CDF, FunctionKind.LOG_CDF)
    assert wanted - recipes == set(WITHOUT_TAILS)
    assert recipes <= wanted


def test_every_random_number_has_a_case() -> None:
    drawn = {case.draw.partition("_rng(")[0] for case in RNG.CASES}
    vectors = {name.removesuffix("_rng") for name in signature_table.names() if named(name).kind is FunctionKind.RNG}
    assert {stem for stem in vectors - drawn if not stem.endswith("_glm")} == set()


@pytest.mark.slow
@pytest.mark.parametrize("case", RNG.CASES, ids=lambda case: case.draw)
def test_draws_have_their_distribution(case: object) -> None:
    found = RNG.p_values(case, 20_000, 7)
    assert min(found.values()) >= RNG.SMALLEST_P, found
