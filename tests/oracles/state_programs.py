"""Random forward algorithms, of hidden states whose observations may be missing, as people write them.

    program, data = state_program(seed), state_data(seed)

Rows of logarithms are kept in an array, a matrix, columns of one, two vectors by turns, or are handed on; the first one
is made ahead of the loop or by a choice inside; terms stand in an array, a vector or an expression; what is observed adds
inside of the sum, behind it, in a branch of data or in a variable; some rows begin anew, states may be barred, the target
gets the last row, or one of each individual. Data have one, few or many times, one to nine states.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
from typing import Any

import numpy as np

_HEAD = """data {
  int T; int K; array[T] real y; array[T] int who; array[T] int seen; matrix[K, K] open;
}
parameters {
  vector[K] a; matrix[K, K] w; vector[K] mu; real<lower=0> s; array[K] real b;
}
model {
  vector[K] first = a - log_sum_exp(a);
  matrix[K, K] lm;
  for (i in 1:K) for (j in 1:K) lm[i, j] = {moves};
  {rows}
  a ~ std_normal(); to_vector(w) ~ std_normal(); mu ~ normal(0, 2); s ~ exponential(1); b ~ normal(0, 1);
}
"""
_MOVES = (
    "w[i, j] - log_sum_exp(w[i])",
    "log(inv_logit(w[i, j]))",
    "open[i, j] > 0 ? w[i, j] : negative_infinity()",
    "w[i, j] * b[j]",
)
_OBSERVED = (
    "normal_lpdf(y[t] | mu[k], s)",
    "bernoulli_logit_lpmf(seen[t] | mu[k])",
    "-s * square(y[t] - mu[k]) + b[k]",
)
_SUMS = (  # of the row before, `{before}`
    "for (j in 1:K) acc[j] = {before}[j] + lm[j, k]; {row} = log_sum_exp(acc) + {o};",
    "for (j in 1:K) acc[j] = {before}[j] + lm[j, k] + {o}; {row} = log_sum_exp(acc);",
    "{row} = log_sum_exp({before} + lm[ , k]) + {o};",
    "{row} = {o} + log_sum_exp({before} + lm[ , k]) - b[k];",
    "{row} = log_sum_exp({before} + lm[ , k]); if (seen[t] == 1) {row} += {o};",
    "{row} = log_sum_exp(lm[ , k] + {before}); if (seen[t] == 1) {row} = {row} + {o}; else {row} = {row} - b[k];",
    "real here = log_sum_exp({before} + lm[ , k]); if (y[t] > -1) here += {o}; {row} = here;",
    "real here = 0; if (seen[t] == 0) here = {o}; {row} = here + log_sum_exp({before} + lm[ , k]);",
    "for (j in 1:K) acc[j] = lm[j, k] + {before}[j]; {row} = (seen[t] == 1 ? {o} : 0) + log_sum_exp(acc);",
)
_FIRST = "first[k] + (seen[1] == 1 ? 0 : b[k])"


def _kept(memory: str, row: str, rows: str, before: str, step: str, anew: bool) -> str:
    """Rows in one memory; `rows` and `before`, of the time {t}."""
    begins = "t == 1 || who[t] != who[t - 1]" if anew else "t == 1"
    last = f"target += log_sum_exp({rows});"
    ends = f"for (t in 1:T) if (t == T || who[t + 1] != who[t]) {last}" if anew else last.replace("{t}", "T")
    step = step.replace("{row}", row).replace("{before}", before.replace("{t}", "t - 1"))
    return f"""{memory} vector[K] acc;
  for (t in 1:T) for (k in 1:K) {{
    if ({begins}) {row} = {_FIRST}; else {{ {step} }}
  }}
  {ends.replace("{t}", "t")}"""


def _by_turns(step: str, anew: bool, local: bool, ahead: bool) -> str:
    """Two rows, one of which becomes the other."""
    step = step.replace("{row}", "next[k]").replace("{before}", "f")
    outside, inside = ("", "vector[K] next;") if local else ("vector[K] next;", "")
    begins = "for (k in 1:K) f[k] = " + _FIRST + ";"
    loop = "for (t in 2:T)" if ahead else "for (t in 1:T)"
    choice = (
        f"if ({'who[t] != who[t - 1]' if ahead else 't == 1 || who[t] != who[t - 1]'}) {{ f = first; }}" if anew else ""
    )
    if not ahead and not anew:
        step = f"if (t == 1) {{ next[k] = {_FIRST}; }} else {{ {step} }}"
    target = "if (t == T || who[t + 1] != who[t]) target += log_sum_exp(f);" if anew else ""
    last = "" if anew and not ahead else "target += log_sum_exp(f);"
    return f"""vector[K] f; vector[K] acc; {outside}
  {begins if ahead else ""}
  {loop} {{
    {inside}
    {choice}
    for (k in 1:K) {{ {step} }}
    f = next;
    {target}
  }}
  {last}"""


def state_program(seed: int) -> str:
    """The program of a seed."""
    choose = random.Random(seed)
    step = choose.choice(_SUMS).replace("{o}", choose.choice(_OBSERVED))
    anew = choose.random() < 0.4
    kind = choose.randrange(6)
    if kind == 0:
        rows = _kept("array[T] vector[K] g;", "g[t, k]", "g[{t}]", "g[{t}]", step, anew)
    elif kind == 1:
        rows = _kept("matrix[K, T] g;", "g[k, t]", "g[ , {t}]", "g[ , {t}]", step, anew)
    elif kind == 2:
        rows = _kept("matrix[T, K] g;", "g[t, k]", "g[{t}]", "(g[{t}]')", step, anew)
    else:
        rows = _by_turns(step, anew, choose.random() < 0.4, choose.random() < 0.5)
    return _HEAD.replace("{moves}", choose.choice(_MOVES)).replace("{rows}", rows)


def state_data(seed: int) -> dict[str, Any]:
    """Data for the program of a seed, or of any."""
    numbers = np.random.default_rng(seed)
    times, states = int(numbers.choice([1, 2, 3, 20, 90])), int(numbers.choice([1, 2, 3, 4, 9]))
    is_open = numbers.random((states, states)) < 0.8
    np.fill_diagonal(is_open, True)
    return {
        "T": times,
        "K": states,
        "y": numbers.normal(size=times).tolist(),
        "who": np.cumsum(numbers.random(times) < 0.2).astype(int).tolist(),
        "seen": (numbers.random(times) < numbers.choice([0.0, 0.5, 1.0])).astype(int).tolist(),
        "open": is_open.astype(float).tolist(),
    }
