"""Checks of data run once, when data are bound, in branches that reject as well: errors are those of level 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ulam
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

DATA = "data { int link; int N; vector[N] y; vector[N] w; array[N] int g; }\nparameters { real a; real<lower=0> s; }\n"
LINKS = """
  vector[N] mu = rep_vector(a, N);
  if (link == 1) { for (n in 1:N) mu[n] = exp(a * y[n]); }
  else if (link == 2) mu = inv(mu);
  else if (link == 3) { int at = 1; for (n in 1:N) { mu[n] += w[at]; at += g[n]; } }
  else %s reject("no link ", link);
  if (link < 3) y ~ lognormal(mu, s);
  else target += normal_lpdf(y | mu, s - 1);
"""
SILENT, PRINTING = (DATA + f"model {{{LINKS % prefix}}}" for prefix in ("", "if (s > 0) { print(link, w[1]); } else"))
POINTS = ([0.3, 0.5], [-0.2, -1.0])
"""At the second s - 1 is no scale."""
GOOD: dict[str, Any] = {"link": 1, "N": 3, "y": [0.5, 1.5, 2.0], "w": [1.0, 2.0, 3.0], "g": [1, 1, 0]}
CHANGES: tuple[dict[str, Any], ...] = (
    {"link": 1}, {"link": 2}, {"link": 3}, {"link": 4}, {"link": 2, "y": [0.5, -1.0, 2.0]}, {"link": 3, "g": [3, 3, 0]},
    {"link": 5, "y": [0.5, -1.0, 2.0]},
)  # fmt: skip


@pytest.fixture(scope="module", params=[SILENT, PRINTING], ids=["silent", "printing"])
def programs(request: pytest.FixtureRequest) -> tuple[ulam.StanProgram, ulam.StanProgram]:
    return ulam.StanProgram(request.param, opt_level=0), ulam.StanProgram(request.param, opt_level=3)


def outcome(evaluate: Callable[[Any], tuple[float, np.ndarray]], point: list[float]) -> tuple[str, list[float]]:
    """What is wrong, and the numbers if nothing is."""
    try:
        value, gradient = evaluate(point)
    except ulam.UlamError as error:
        return f"{type(error).__name__}: {error}", []
    return "", [value, *gradient]


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_outcomes_are_those_of_level_0(
    changes: dict[str, Any], programs: tuple[ulam.StanProgram, ulam.StanProgram], capfd: pytest.CaptureFixture[str]
) -> None:
    """Each evaluation says the same, the first and the second."""
    told: list[object] = []
    for program in programs:
        model = program(GOOD | changes)
        capfd.readouterr()
        outcomes = [outcome(model.log_density_gradient, point) for point in (*POINTS, POINTS[0])]
        told.append(([text for text, _ in outcomes], capfd.readouterr().out))
        np.testing.assert_allclose(outcomes[0][1], outcomes[2][1])
        told[-1] = (told[-1], [len(numbers) for _, numbers in outcomes])
    assert told[0] == told[1]


def test_evaluations_make_no_check_of_data() -> None:
    """The branches that reject are tried when data are bound, once, with the checks beside them."""
    text = Compiler(SILENT, "m.stan", CompileOptions(3)).llvm_text("gradient_propto")
    evaluate = text.partition("define i32 @evaluate(")[2].partition("\n}")[0]
    bind = text.partition("define i32 @bind(")[2].partition("\n}")[0]
    assert "br i1 false" not in evaluate
    assert bind.count("br i1 false") == 1
