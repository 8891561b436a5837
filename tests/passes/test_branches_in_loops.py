"""Branches in loops at levels 3 and 4: what leaves them (`share-arms`, `defer-checks`, `tabulate-invariants`), and that
nothing else changes: values and derivatives where the arm that is not taken has none, elements that are not there,
errors. Branches that are the same for all iterations (`unswitch-loops`) as well.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from typing import Any

import numpy as np
import pytest

from ulam import Rejection, StanModel
from ulam.passes.remarks import collect_remarks
from ulam.runtime.compile_options import CompileOptions
from ulam.runtime.compiler import Compiler

Data = dict[str, Any]

SUMS = """
data { int N; array[N] int y; }
parameters { real<lower=0, upper=1> p; real<lower=0, upper=1> q; }
model {
  for (n in 1:N) {
    if (y[n] > 0) target += bernoulli_lpmf(1 | q) + binomial_lpmf(y[n] | 3, p);
    else target += log_sum_exp(bernoulli_lpmf(1 | q) + binomial_lpmf(0 | 3, p), bernoulli_lpmf(0 | q));
  }
}
"""
NESTED = """
data { int N; int T; array[N, T] int y; }
parameters { vector<lower=0, upper=1>[T] p; vector<lower=0, upper=1>[N] r; }
model {
  for (n in 1:N) {
    if (sum(y[n]) > 0) { for (t in 1:T) if (y[n, t] == 1) target += log(p[t]); else target += log1m(p[t] * r[n]); }
    else for (t in 1:T) target += log1m(p[t]) - (y[n, t] == 0 ? log(r[n]) : 1 / r[n]);
  }
}
"""


CHOSEN = """
data { int N; array[N] int y; }
parameters { real<lower=0, upper=1> p; real<lower=0, upper=1> q; }
model {
  real total = 0;
  real other = log(q);
  for (n in 1:N) {
    real a = bernoulli_lpmf(1 | q) + binomial_lpmf(y[n] | 3, p);
    real b = other + binomial_lpmf(y[n] | 3, p);
    target += y[n] > 0 ? a : log_sum_exp(a, bernoulli_lpmf(0 | q));
    if (y[n] == 0) b = log_sum_exp(b, log1m(q));
    if (y[n] > 1) total += b;
    else { total += p * b; if (y[n] == 1) total -= log1m(p); }
  }
  target += -2 * total;
}
"""
BOUNDED = """
data { int N; real low; real high; int is_near; }
parameters { vector<lower=low, upper=high>[N] x; real<lower=0> s; }
model {
  x[2:N] ~ normal(x[1:N - 1], s);
  for (n in 1:N) target += is_near == 1 ? log1p(square(x[n] - n)) : -exp(0.1 * x[n]) * s;
}
"""


def _agree(program: str, data: Data, points: list[list[float]], levels: tuple[int, ...] = (3,)) -> None:
    """The levels have the density and the slopes of level 0, infinite ones too, and its errors; of what is NaN at level
    0 nothing is asked."""
    models = {level: StanModel(program, json.dumps(data), opt_level=level) for level in (0, *levels)}
    for theta in map(np.array, points):
        expected = _evaluated(models[0], theta)
        for level in levels:
            found = _evaluated(models[level], theta)
            if isinstance(expected, str) or isinstance(found, str):
                assert found == expected, (level, theta)
                continue
            for a, b in zip(found, expected, strict=True):
                known = ~np.isnan(b)
                message = f"level {level} at {theta}"
                np.testing.assert_allclose(
                    np.asarray(a)[known], np.asarray(b)[known], rtol=1e-8, atol=1e-10, err_msg=message
                )


def _evaluated(model: StanModel, theta: np.ndarray) -> tuple[Any, ...] | str:
    try:
        with np.errstate(all="ignore"):
            return (*model.log_density_gradient(theta), model.log_density_hessian(theta)[2])
    except Rejection as error:
        return str(error)


@pytest.mark.parametrize("y", [[2, 0, 1, 0], [1, 1, 2], [0, 0], [3, 3]], ids=str)
def test_arms_without_a_derivative(y: list[int]) -> None:
    """p = inv_logit(40) is 1, inv_logit(-800) is 0: `log1m(p)` of an arm that nobody takes has no finite slope."""
    points = [[0.3, -0.7], [40.0, 0.2], [0.1, 40.0], [-800.0, 0.1], [0.2, -800.0], [40.0, 40.0]]
    _agree(SUMS, {"N": len(y), "y": y}, points)
    _agree(CHOSEN, {"N": len(y), "y": y}, points)


def test_tables_without_a_derivative() -> None:
    y = [[1, 0], [0, 0], [1, 0]]
    points = [[0.1, -0.4, 0.2, 0.7, -0.3], [40.0, -1.0, 0.2, 40.0, 0.1], [0.1, -800.0, 0.3, 0.1, 40.0]]
    _agree(NESTED, {"N": 3, "T": 2, "y": y}, points)


@pytest.mark.ordinary_runtime("a table of 3 GB that nothing fills")
def test_elements_that_are_not_there() -> None:
    """Tables are filled with what the program reads: nothing where no iteration does."""
    program = """
    data { int N; int K; int S; array[N] int y; array[N] int len; }
    parameters { vector<lower=0>[S] x; }
    model {
      for (n in 1:N) {
        if (y[n] > 0) { for (k in 1:K) target += log(x[k]); } else target += -x[1];
        for (m in 1:len[n]) for (k in 1:K) target += log1p(x[k]) * m;
      }
      x ~ exponential(1);
    }
    """
    far = 400_000_000
    for y in ([], [0, 0]):
        data = {"N": len(y), "K": far, "S": 2, "y": y, "len": [0 for _ in y]}
        _agree(program, data, [[0.1, 0.2]])
    _agree(program, {"N": 3, "K": 2, "S": 2, "y": [1, 0, 1], "len": [2, 0, 1]}, [[0.1, 0.2]])


def test_errors_stay() -> None:
    program = """
    data { int N; array[N] int y; }
    parameters { real a; real b; }
    model {
      for (n in 1:N) {
        if (y[n] == 1) target += normal_lpdf(y[n] | 0, a);
        else if (y[n] == 2) { if (b > 1) reject("b is ", b, " at ", n); target += log(b); }
        else target += bernoulli_lpmf(0 | b);
      }
    }
    """
    points = [[1.0, 0.5], [-1.0, 0.5], [1.0, 2.0], [-1.0, 2.0], [0.5, float("nan")], [float("nan"), 3.0]]
    for y in ([1, 2, 0], [2, 1], [0, 2], [1, 1]):
        _agree(program, {"N": len(y), "y": y}, points)


def test_the_same_arm_in_all_iterations() -> None:
    """No bound, one of two, or both: the code is the same, and has a loop for each."""
    with collect_remarks() as remarks:
        Compiler(BOUNDED, options=CompileOptions(3)).llvm_text("gradient_propto")
    assert any("4 loops for what is alike" in str(remark) for remark in remarks)
    points = {n: np.random.default_rng(n).normal(size=(2, n + 1)).tolist() for n in (1, 9)}
    for low, high, n in itertools.product((-math.inf, -1.5), (math.inf, 2.5), points):
        _agree(BOUNDED, {"N": n, "low": low, "high": high, "is_near": n % 2}, points[n], (3, 4))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 40))])
def test_random_branches(seed: int) -> None:
    generator = BranchPrograms(random.Random(seed))
    _agree(generator.program(), generator.data(), generator.points(), levels=(3, 4) if seed else (3,))


class BranchPrograms:
    """Random programs with branches in loops over data and parameters."""

    def __init__(self, random: random.Random) -> None:
        self.random = random

    def program(self) -> str:
        body = "\n    ".join(self._statement(2) for _ in range(3))
        return f"""
data {{ int N; int T; array[N] int y; array[N, T] int z; vector[N] x; array[N] int<lower=1, upper=T> g; }}
parameters {{ real<lower=0, upper=1> p; vector<lower=0, upper=1>[T] q; vector[N] e; }}
model {{
  vector[N] kept = rep_vector(0, N);
  for (n in 1:N) {{
    {body}
  }}
  target += sum(kept);
  e ~ normal(0, 1);
}}
"""

    def data(self) -> Data:
        n, t, draw = 5, 3, self.random.randint
        return {
            "N": n, "T": t, "y": [draw(0, 2) for _ in range(n)], "x": [self.random.gauss(0, 1) for _ in range(n)],
            "z": [[draw(0, 1) for _ in range(t)] for _ in range(n)], "g": [draw(1, t) for _ in range(n)],
        }  # fmt: skip

    def points(self) -> list[list[float]]:
        edge = [self.random.choice([-800.0, 40.0, 0.0, 0.3]) for _ in range(4)]
        return [[self.random.gauss(0, 1) for _ in range(9)], [*edge, 0.5, -0.2, 0.1, 1.0, -1.0]]

    def _statement(self, depth: int) -> str:
        kind = self.random.randrange(5 if depth else 2)
        if kind == 0:
            return f"target += {self._value()};"
        if kind == 1:
            return f"kept[n] += {self._value()};"
        if kind == 2:
            return f"for (t in 1:T) {{ {self._statement(depth - 1).replace('q[g[n]]', 'q[t]')} }}"
        other = f" else {{ {self._statement(depth - 1)} }}" if self.random.random() < 0.7 else ""
        return f"if ({self._condition()}) {{ {self._statement(depth - 1)} {self._statement(0)} }}{other}"

    def _condition(self) -> str:
        return self.random.choice(["y[n] > 0", "y[n] == 1", "z[n, g[n]] == 1", "x[n] > 0", "e[n] > 0", "y[n] < n"])

    def _value(self) -> str:
        return self.random.choice(
            [
                "log(p)", "log1m(p)", "log(q[g[n]])", "log1m(q[g[n]] * p)", "x[n] * log1p_exp(e[n])", "e[n] * p",
                "bernoulli_lpmf(z[n, 1] | p)", "binomial_lpmf(y[n] | 2, q[g[n]])", "bernoulli_logit_lpmf(1 | e[n])",
                "log_sum_exp(log(p) + e[n], log1m(p))", "-square(x[n] - e[n])", "sqrt(q[g[n]] + 1)",
            ]
        )  # fmt: skip


# ---------------------------------------------------------------- what leaves


REPEATED = """
functions { real number(array[] int k, int n, int most, real p) {
  return n < max(k) ? negative_infinity() : -log(most) + binomial_lpmf(k | n, p);
} }
data { int N; int m; array[m] int k; }
parameters { real<lower=0, upper=1> p; vector[m] b; }
model {
  vector[N] l;
  for (n in 1:N) l[n] = number(k, n, N, p);
  for (n in 1:N) target += b[1 + n % m] * sum(b) - n * max(b);
  target += log_sum_exp(l);
}
"""


@pytest.mark.parametrize("n", [0, 1, 9])
@pytest.mark.parametrize("k", [[], [1], [0, 2, 3]])
def test_loops_that_each_iteration_repeats(n: int, k: list[int]) -> None:
    """The greatest of no numbers is an error, but not if no iteration asks for it."""
    plain, tried = (
        StanModel(REPEATED, {"N": n, "m": len(k), "k": k}, opt_level=level, cache=False) for level in (0, 3)
    )
    point = np.linspace(-0.5, 0.7, 1 + len(k))

    def outcome(model: StanModel) -> Any:
        try:
            value, gradient = model.log_density_gradient(point)
            return [value, *gradient]
        except (Rejection, RuntimeError) as error:
            return str(error)

    first, second = outcome(plain), outcome(tried)
    if isinstance(first, str):
        assert first == second
    else:
        np.testing.assert_allclose(second, first, rtol=1e-11)
