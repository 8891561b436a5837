"""Random programs of loops inside of each other that add to the target, with random data.

    program, data = nest_program(seed), nest_data(seed)

Bounds are literals, sizes, numbers of the loops around, or data by these; a term may stand beside a loop, or behind it,
and may depend on some of the numbers only, or on none: loops that repeat what is inside.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
from typing import Any

import numpy as np

_HEAD = """data {
  int<lower=0> J;
  int<lower=0> K;
  array[J] int m;
  array[J] int<lower=1> g;
  vector[J] x;
  matrix[J, K] Y;
  array[J, K] int<lower=0> c;
}
parameters {
  real a;
  vector[J] u;
  vector[K] v;
  real<lower=0> s;
}
model {
  target += -0.5 * (square(a) + dot_self(u) + dot_self(v)) - s;
"""
_OUTER = ("1:J", "1:K", "0:2", "2:3", "1:1")
_OF_J = ("1:m[{j}]", "m[{j}]:3", "g[{j}]:K", "1:{j}", "{j}:J", "1:min(m[{j}], K)")
_TERMS: dict[str, tuple[str, ...]] = {
    "": ("normal_lpdf(a | 0, s)", "-log(s)", "a * 0.3", "log_sum_exp(a, log(s))", "-square(a)"),
    "j": (
        "normal_lpdf(x[{j}] | u[{j}], s)", "normal_lpdf(x[{j}] | a, exp(x[{j}]))", "-exp(x[{j}]) * a", "log1p_exp(u[{j}])",
        "poisson_log_lpmf(g[{j}] | a + u[{j}])", "student_t_lpdf(x[{j}] | 3, a * x[{j}], s)", "normal_lccdf(x[{j}] | u[g[{j}]], 2)",
    ),
    "jk": (
        "normal_lpdf(Y[{j}, {k}] | u[{j}] + v[{k}], s)", "-square(Y[{j}, {k}] - a * x[{j}])", "poisson_log_lpmf(c[{j}, {k}] | u[{j}] * v[{k}])",
        "bernoulli_logit_lpmf(c[{j}, {k}] > 1 | v[{k}])", "x[{j}] * v[{k}]", "bernoulli_logit_lpmf(c[{j}, {k}] > 0 | v[max({k} - 1, 1)])",
        "c[{j}, {k}] * log_inv_logit(v[{k}] + a)",
    ),
    "k": ("-square(v[{k}])", "normal_lpdf(v[{k}] | a, s)", "log(s) * v[{k}]", "bernoulli_logit_lpmf(1 | v[K + 1 - {k}])"),
}  # fmt: skip


class _Nest:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def term(self, numbers: dict[str, str]) -> str:
        """A statement that adds to the target; it reads some of the numbers."""
        kinds = [kind for kind in _TERMS if all(letter in numbers for letter in kind)]
        text = self.random.choice(_TERMS[self.random.choice(kinds)]).format(**numbers)
        forms = ("target += {};", "target += 0.5 * {};", "{{ real t = {}; target += t; }}")
        return self.random.choice(forms).format(text)

    def statement(self, numbers: dict[str, str], depth: int) -> str:
        """A loop, perhaps with terms beside loops inside of it."""
        self.count += 1
        name = f"i{self.count}"
        ranges = [*_OUTER, *(_OF_J if "j" in numbers else ())]
        found = self.random.choice(ranges).format(**numbers)
        inner = dict(numbers)
        if found == "1:J" or found.endswith(":J") or found == "1:{j}".format(**{"j": numbers.get("j", "")}):
            inner["j"] = name
        elif found in ("1:K", *(text.format(j=numbers.get("j", "")) for text in ("g[{j}]:K", "1:min(m[{j}], K)"))):
            inner["k"] = name
        parts = [self.term(inner)] if depth <= 1 or self.random.random() < 0.4 else []
        if depth > 1:
            parts.append(self.statement(inner, depth - 1))
        if depth > 1 and self.random.random() < 0.2:  # two loops over the same rows
            parts.append(f"for (r{name} in 1:{name}) {{ {self.term(inner)} }} for (q{name} in 1:{name}) {{ {self.term(inner)} }}")
        if depth > 1 and self.random.random() < 0.2:
            parts.append(self.random.choice((self.term(inner), self.statement(inner, 1))))
        return f"for ({name} in {found}) {{ {' '.join(parts)} }}"


def nest_program(seed: int) -> str:
    """A program; always the same for a seed."""
    nest = _Nest(seed)
    statements = [nest.statement({}, nest.random.randint(2, 4)) for _ in range(nest.random.choice((1, 1, 2)))]
    return _HEAD + "".join(f"  {text}\n" for text in statements) + "}\n"


def nest_data(seed: int) -> dict[str, Any]:
    """Data for such a program."""
    rng = np.random.default_rng(seed)
    j, k = int(rng.choice([0, 1, 3, 40])), int(rng.choice([0, 1, 3]))
    return {
        "J": j, "K": k, "m": rng.integers(0, 4, j), "g": rng.integers(1, max(j, 1) + 1, j), "x": rng.normal(0, 0.5, j),
        "Y": rng.normal(0, 1, (j, k)), "c": rng.integers(0, 3, (j, k)),
    }  # fmt: skip
