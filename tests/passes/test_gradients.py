"""Log densities and gradients of small programs: against Stan 2.40, else against central differences of our own value.

The programs are those of `gradient_programs` and `gradient_programs_library`; Stan's values are in
tests/reference/programs.jsonl.
"""

# ruff: noqa: E501  (Stan text)
from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest
from central_differences import central_differences
from gradient_programs_library import PROGRAMS, point

from ulam.runtime.model import StanModel

pytestmark = pytest.mark.usefixtures("quick_code")

REFERENCE = {
    line["name"]: line
    for line in map(json.loads, (Path(__file__).parents[1] / "reference" / "programs.jsonl").read_text().splitlines())
}
WITHOUT_REFERENCE = [name for name in PROGRAMS if name not in REFERENCE]
# The inverse of these transforms is not unique.
NOT_INVERTIBLE = {"constrained-unit-vector"}


@pytest.mark.parametrize("name", REFERENCE)
def test_reference(name: str) -> None:
    line: dict[str, Any] = REFERENCE[name]
    assert PROGRAMS[name] == (line["program"], line["data"]), "the stored values are those of another text"
    tolerance = line.get("tolerance", 1e-9)
    model = StanModel(line["program"], line["data"])
    theta = np.array(line["theta"])
    value, gradient = model.log_density_gradient(theta)
    assert value == pytest.approx(line["log_density"], rel=1e-10, abs=1e-10)
    scale = 1 + np.abs(line["gradient"]).max(initial=0)
    np.testing.assert_allclose(gradient, line["gradient"], rtol=tolerance, atol=tolerance * scale)


@pytest.mark.parametrize("name", [*WITHOUT_REFERENCE, *list(REFERENCE)[::20]])
def test_central_differences(name: str) -> None:
    model = StanModel(*PROGRAMS[name])
    theta = point(name, model.param_unc_num())
    propto = (
        crc32(name.encode()) % 2 == 0
    )  # each value is compiled apart: of half of the programs one, of half the other
    for jacobian in (True, False):

        def log_density(x: np.ndarray, jacobian: bool = jacobian) -> float:
            return model.log_density(x, propto=propto, jacobian=jacobian)

        value, gradient = model.log_density_gradient(theta, propto=propto, jacobian=jacobian)
        assert value == pytest.approx(log_density(theta), rel=1e-13)
        scale = 1 + np.abs(gradient).max(initial=0)
        np.testing.assert_allclose(gradient, central_differences(log_density, theta), rtol=1e-7, atol=1e-7 * scale)


BLOCKS = [
    name
    for name in PROGRAMS
    if any(word in name for word in ("constrained", "bounds", "transformed", "generated", "jacobian"))
]


@pytest.mark.parametrize("name", BLOCKS)
def test_constraining(name: str) -> None:
    """Constrained values, transformed parameters and generated quantities are Stan's; unconstraining leads back."""
    model = StanModel(*PROGRAMS[name])
    theta = point(name, model.param_unc_num())
    constrained = model.param_constrain(theta)
    if name not in NOT_INVERTIBLE:
        np.testing.assert_allclose(model.param_unconstrain(constrained), theta, rtol=1e-8, atol=1e-8)
    again = model.param_constrain(model.param_unconstrain(constrained))
    np.testing.assert_allclose(again, constrained, rtol=1e-9, atol=1e-9)
    if (expected := REFERENCE.get(name, {}).get("constrained")) is not None:
        include_gq = "generated quantities" in PROGRAMS[name][0]
        written = model.param_constrain(theta, include_tp=True, include_gq=include_gq, rng=model.new_rng(1))
        np.testing.assert_allclose(written, expected, rtol=1e-11, atol=1e-11)
        assert len(model.param_names(include_tp=True, include_gq=include_gq)) == len(expected)


def test_dropping_terms() -> None:
    """`~` and `_lupdf` drop what depends on data alone, explicit `_lpdf` never; inside functions as they were called."""
    functions = """functions {
      real mine_lpdf(real v, real m) { return normal_lupdf(v | m, 2); }
      void add_lp(real v) { v ~ normal(0, 2); }
    }
    """
    constant = -0.5 * np.log(2 * np.pi) - np.log(2)
    statements = {
        "a ~ normal(0, 2);": 1,
        "target += normal_lpdf(a | 0, 2);": 0,
        "target += normal_lupdf(a | 0, 2);": 1,
        "a ~ mine(0);": 1,
        "target += mine_lpdf(a | 0);": 0,
        "target += mine_lupdf(a | 0);": 1,
        "add_lp(a);": 1,
        "[a, a] ~ normal(0, 2);": 2,
    }
    branches = "\n".join(f"if (which == {n}) {{ {statement} }}" for n, statement in enumerate(statements))
    program = f"{functions}data {{ int which; }} parameters {{ real a; }} model {{ {branches} }}"
    theta = np.array([0.7])
    for which, (statement, dropped) in enumerate(statements.items()):
        model = StanModel(program, {"which": which})
        count = 2 if "[a" in statement else 1
        kernel = -0.5 * (0.7 / 2) ** 2 * count
        assert model.log_density(theta) == pytest.approx(kernel + (count - dropped) * constant), statement
        assert model.log_density(theta, propto=False) == pytest.approx(kernel + count * constant), statement
    model = StanModel("parameters { real a; }\nmodel { 1.5 ~ normal(0, 2); a ~ normal(0, 1); }\n")
    assert model.log_density(np.zeros(1)) == 0


def test_jacobian_flag() -> None:
    model = StanModel("parameters { real<lower=0> s; real<lower=-1, upper=2> u; }\nmodel { target += s * u; }\n")
    theta = np.array([0.4, -0.3])
    s, p = np.exp(0.4), 1 / (1 + np.exp(0.3))
    value, gradient = model.log_density_gradient(theta, jacobian=False)
    assert value == pytest.approx(s * (3 * p - 1))
    np.testing.assert_allclose(gradient, [s * (3 * p - 1), s * 3 * p * (1 - p)], rtol=1e-12)
    with_jacobian, gradient_of_sum = model.log_density_gradient(theta)
    assert with_jacobian - value == pytest.approx(0.4 + np.log(3 * p * (1 - p)))
    np.testing.assert_allclose(gradient_of_sum - gradient, [1, 1 - 2 * p], rtol=1e-12)


def test_loop_bounds_are_evaluated_once() -> None:
    """Where CmdStan reads the upper bound again: a loop that changes its own bound."""
    model = StanModel(
        "parameters { real a; }\nmodel { int n = 3; for (i in 1:n) { n = 10; target += a; } target += n; }\n"
    )
    assert model.log_density(np.ones(1)) == 13


def test_integers_wrap_and_divide_towards_zero() -> None:
    model = StanModel("""
transformed data {
  int big = 2147483647; int small = -big - 1; int zero = 0;
  array[9] int k = {big + 1 + zero, small - 1 + zero, big * 2, -7 %/% 2, 7 %/% -2, -7 % 3, 7 % -3, small %/% -1, -small};
}
parameters { real a; }
model { }
generated quantities { array[9] int w = k; int smallest; real unset; }
""")
    written = model.param_constrain(np.zeros(1), include_gq=True, rng=model.new_rng(1))
    smallest = -(2**31)
    np.testing.assert_array_equal(written[1:11], [smallest, 2**31 - 1, -2, -3, -3, -1, 1, smallest, smallest, smallest])
    assert np.isnan(written[11])


def test_outside_the_support() -> None:
    model = StanModel("parameters { real a; }\nmodel { a ~ uniform(2, 3); }\n")
    assert model.log_density(np.zeros(1)) == -np.inf
    assert np.isfinite(model.log_density_gradient(np.array([2.5]))[0])


def test_data_only_loops_keep_their_results() -> None:
    """Containers that data-only loops carry are computed when data are bound, and must outlive that."""
    program = """
data { int N; vector[N] x; }
parameters { vector[N] v; }
model { vector[N] z = x; for (i in 1:3) z = z .* x + i; for (i in 1:2) target += dot_product(z, v) * i; }
"""
    x = np.array([0.5, -1.0, 2.0])
    model = StanModel(program, {"N": 3, "x": x.tolist()})
    z = x.copy()
    for i in (1, 2, 3):
        z = z * x + i
    for k in range(5):
        big = StanModel(program, {"N": 3, "x": (x + k).tolist()})
        big.log_density_gradient(np.ones(3))
        np.testing.assert_allclose(model.log_density_gradient(np.ones(3))[1], 3 * z, rtol=1e-14)
