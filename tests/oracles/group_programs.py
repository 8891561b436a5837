"""Random programs of loops over groups and their rows, inside of each other, with data of hundreds of rows.

    program, data = group_program(seed), group_data(seed)

Unlike `nest_programs.py` they have rows (`first[j] : last[j]`, `pos : pos + size[j] - 1`, all of them), data that are
large enough for layouts to be taken, sums and variables that loops hand on, means that they fill, and rows that are
left out or end a loop, by data or by parameters. Rows repeat or do not, groups are empty, overlap or leave rows out.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from typing import Any

import numpy as np

_HEAD = """data {
  int<lower=0> N;
  int<lower=1> J;
  int<lower=1> T;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=1, upper=T> h;
  array[N] int<lower=0> c;
  array[N] int<lower=0, upper=1> bit;
  vector[N] x;
  vector[N] y;
  vector[J] w;
  array[J] int first;
  array[J] int last;
  array[J] int size_of;
  matrix[J, T] Y;
  array[J, T] int C;
  matrix[N, T] X;
  array[J] int<lower=0, upper=T> visits;
}
transformed data {
  array[J] int start;
  {
    int pos = 1;
    for (j in 1:J) { start[j] = pos; pos += size_of[j]; }
  }
}
parameters {
  real a;
  real b;
  real<lower=0> s;
  real<lower=0, upper=1> p;
  vector[J] u;
  vector[T] v;
  vector[T] beta;
  matrix[J, T] z;
  vector<lower=0>[J] r;
  vector<lower=0>[T] q;
}
model {
  target += -0.5 * (square(a) + square(b) + dot_self(u) + dot_self(v) + dot_self(beta) + sum(square(z))) - s - sum(r) - sum(q);
"""
_FORMS: dict[str, tuple[str, ...]] = {
    # a loop over groups, and what a group does with its rows
    "statement": (
        "for (j in 1:J) { <group> }", "for (j in 1:J) { <group> }", "for (j in 1:J) { <group> <group> }", "for (j in 1:J) { <group> <group> <group> }", "for (back in 1:J) { int j = J + 1 - back; <group> }", "for (j in 2:J) { <group> }", "for (j in 1:J) { if (j > 1 && w[j] != 0) { <group> } <group> }",
        "for (place in 1:max(size_of)) { for (j in 1:J) { if (place <= size_of[j]) { int n = start[j] + place - 1; <row> } } }", "for (t in 1:T) { for (j in 1:J) { if (visits[j] < t) continue; <group_of_t> } }", "for (j in 1:J) { for (t in 1:visits[j]) { <group_of_t> } <group> }", "for (j in 1:J) { if (<of_j>) continue; <group> }", "for (t in 1:T) { for (j in 1:J) { <cell> } }", "for (j in 1:J) { for (t in 1:T) { <cell> } }",
        "for (j in 1:J) { for (t in 1:visits[j]) { <cell> } }", "{ int pos = 1; for (j in 1:J) { <placed> pos += size_of[j]; } }", "{ vector[N] mu = <means>; <fill> <filled> }", "{ vector[N] mu = <means>; <fill> <fill> <filled> <filled> }", "{ vector[N] mu; for (n in 1:N) mu[n] = <mean>; <fill> <filled> }",
        "{ real kept = 0; int times = 0; for (j in 1:J) { <handed> for (n in first[j]:last[j]) { <carried> } } }", "{ real kept = 0; int times = 0; for (j in 1:J) { for (n in first[j]:last[j]) { <handed> <carried> } } }", "for (t in 1:T) { for (n in 1:N) { <row_of_t> } }", "for (n in 1:N) { for (t in 1:T) { <row_of_t> } }", "for (n in 1:N) { for (t in 1:h[n]) { <row_of_t> } }",
        "for (t in 1:T) { for (j in t:min(J, t + 2)) { for (n in first[j]:last[j]) { <row> } } }", "{ vector[J] sums = rep_vector(0, J); for (n in 1:N) { sums[g[n]] += <lp>; } <summed> }", "{ vector[J] sums = rep_vector(0, J); for (j in 1:J) { for (n in first[j]:last[j]) { if (<test>) sums[j] += <lp>; } } <summed> }",
        "for (n in 1:N) { for (i in max(1, n - 2):n) { y[i] ~ normal(u[g[n]], s); } }", "for (n in 1:N) { int j = g[n]; <row> }", "for (n in 1:N) y[n] ~ normal(<mean>, <scale>);", "y ~ normal(<means>, r[g]);", "y ~ normal(<means>, exp(v[h]));", "for (j in 1:J) { for (n in 1:N) { if (g[n] == j) y[n] ~ normal(<mean>, r[j]); } }", "{ vector[N] mu = <means>; vector[N] scales; for (n in 1:N) scales[n] = <scale>; y ~ normal(mu, scales); }", "for (i in 1:N) { int n = N + 1 - i; int j = g[n]; <row> }",
    ),
    "group": (
        "for (n in first[j]:last[j]) { <row> }", "for (n in first[j]:last[j]) { <row> <row> }", "for (n in start[j]:(start[j] + size_of[j] - 1)) { <row> }", "for (i in 1:size_of[j]) { int n = start[j] + i - 1; <row> }", "u[j] ~ normal(a, s); for (n in first[j]:last[j]) { <row> }", "{ real eta = <of_group>; for (n in first[j]:last[j]) { <row_of_eta> } }",
        "{ real lp = 0; for (n in first[j]:last[j]) { lp += <lp>; } <lp_of_group> }", "{ real lp = <of_group>; for (n in first[j]:last[j]) { if (<test>) lp += <lp>; else lp -= 0.1 * square(b); } <lp_of_group> }", "if (<of_j>) { <group> } else { <group> }", "y[first[j]:last[j]] ~ normal(<of_group> + b * x[first[j]:last[j]], s);", "y[first[j]:last[j]] ~ normal(<of_group> + b * x[first[j]:last[j]], r[j]);",
        "target += normal_lpdf(y[first[j]:last[j]] | <of_group> + X[first[j]:last[j]] * beta, s);", "bit[first[j]:last[j]] ~ bernoulli_logit(<of_group> + X[first[j]:last[j]] * beta);", "c[first[j]:last[j]] ~ poisson_log(0.3 * (<of_group>));", "{ vector[size_of[j]] m = <of_group> + b * segment(x, start[j], size_of[j]); segment(y, start[j], size_of[j]) ~ normal(m, s); }",
        "{ vector[size_of[j]] m; for (i in 1:size_of[j]) m[i] = <of_group> + beta[h[start[j] + i - 1]]; segment(bit, start[j], size_of[j]) ~ bernoulli_logit(m); }", "for (t in 1:T) { for (n in first[j]:last[j]) { <row_of_t> } }", "for (n in first[j]:last[j]) { for (t in 1:T) { <row_of_t> } }", "{ vector[2] lps = [log(p), log1m(p)]'; for (n in first[j]:last[j]) { lps[1] += <lp>; lps[2] += <lp>; } target += log_sum_exp(lps); }",
        "{ vector[size_of[j]] m = <of_group> + b * segment(x, start[j], size_of[j]); segment(y, start[j], size_of[j]) ~ normal(m, s); segment(bit, start[j], size_of[j]) ~ bernoulli_logit(m); }", "{ vector[size_of[j]] m; real kept = u[j]; for (i in 1:size_of[j]) { kept = 0.5 * kept + b * x[start[j] + i - 1]; m[i] = kept; } segment(y, start[j], size_of[j]) ~ normal(m, s); }",
        "{ vector[T] e = z[j]' + v; for (n in first[j]:last[j]) { h[n] ~ categorical_logit(e); } for (n in first[j]:last[j]) X[n] ~ normal(e, s); }", "{ vector[T] e = softmax(v + u[j] * beta); for (n in first[j]:last[j]) { if (<test>) h[n] ~ categorical(e); else <row> } }", "for (n in first[j]:last[j]) { for (k in first[j]:last[j]) { if (k < n) target += normal_lpdf(y[n] - y[k] | a * (x[n] - x[k]), s); } }",
        "for (n in first[j]:last[j]) { X[n] ~ multi_normal(z[j]', add_diag(v * v', 1 + s)); }", "<group> <group>", "{ real all = 0; for (n in first[j]:last[j]) all += x[n]; if (size_of[j] > 0) u[j] ~ normal(b * all / size_of[j], s); for (n in first[j]:last[j]) y[n] ~ normal(u[j] + a * (x[n] - all), s); }",
        "{ matrix[T, T] M = add_diag(square(v * s) * v', 1 + s); for (n in first[j]:last[j]) { X[n] ~ normal(M[h[n]], s); } }",
    ),
    "group_of_t": ("<cell>", "for (n in first[j]:last[j]) { <row_of_t> }", "<cell> for (n in first[j]:last[j]) { <row_of_t> }", "{ real e = v[t] + u[j]; for (n in first[j]:last[j]) { if (h[n] == t) y[n] ~ normal(e + b * x[n], s); } }", "for (n in first[j]:last[j]) { y[n] ~ normal(z[j, t], s); } target += w[j] * v[t];"),
    "placed": (
        "segment(y, pos, size_of[j]) ~ normal(<of_group>, s);", "segment(y, pos, size_of[j]) ~ normal(<of_group>, r[j]);", "for (n in pos:(pos + size_of[j] - 1)) { <row> }", "segment(c, pos, size_of[j]) ~ poisson_log(0.3 * (<of_group> + b * segment(x, pos, size_of[j])));", "segment(bit, pos, size_of[j]) ~ bernoulli_logit(<of_group>);", "if (size_of[j] > 1) { segment(y, pos + 1, size_of[j] - 1) ~ normal(p * segment(y, pos, size_of[j] - 1) + u[j], s); }",
        "for (i in 1:size_of[j]) { int n = pos + i - 1; if (i == 1) { y[n] ~ normal(u[j], 2); } else { y[n] ~ normal(u[j] + p * y[n - 1], s); } }", "segment(y, pos, size_of[j]) ~ normal(<of_group> + block(X, pos, 1, size_of[j], T) * beta, s);",
    ),
    "row": (
        "target += <lp>;", "target += <lp>;", "y[n] ~ normal(<mean>, s);", "y[n] ~ normal(<mean>, <scale>);", "y[n] ~ normal(<mean>, r[j]);", "y[n] ~ normal(u[j] + b * x[n], s);", "c[n] ~ poisson_log(0.3 * (u[j] + <mean>));", "bit[n] ~ bernoulli_logit(u[j] + X[n] * beta);", "target += w[j] * <lp>;", "if (<test>) continue; target += <lp>;", "if (<test>) break; target += <lp>;", "if (<test>) { <row> } else { <row> }", "if (<test>) { <row> }",
        "{ real m = u[j]; if (<test>) m += <mean>; y[n] ~ normal(m, s); target += -square(m) * 0.1; }", "for (k in 1:T) target += bernoulli_logit_lpmf(bit[n] | X[n, k] * v[k] + u[j]);", "y[n] ~ normal(z[j] * X[n]', s);", "y[n] ~ student_t(4, z[j, h[n]] + b * x[n], s);", "target += 0.1 * x[n] * u[j];", "target += normal_lpdf(a * x[n] + u[j] | y[n], 1);",
    ),
    "row_of_eta": ("y[n] ~ normal(eta, s);", "y[n] ~ normal(eta + b * x[n], s);", "bit[n] ~ bernoulli_logit(eta);", "c[n] ~ poisson_log(0.2 * eta);", "eta += 0.1 * x[n]; y[n] ~ normal(eta, s);", "y[n] ~ normal(eta, s); eta = 0.5 * eta + b * y[n];", "if (<test>) eta *= 0.9; bit[n] ~ bernoulli_logit(eta);"),
    "row_of_t": ("X[n, t] ~ normal(v[t] + b * x[n], s);", "X[n, t] ~ normal(u[g[n]] + v[t], s);", "X[n, t] ~ student_t(3, u[g[n]] * v[t], s);", "if (h[n] == t) y[n] ~ normal(v[t], s);", "if (h[n] < t) continue; target += bernoulli_logit_lpmf(bit[n] | v[t]);", "if (h[n] == t) break; target += normal_lpdf(X[n, t] | a, s);", "target += X[n, t] * beta[t] * 0.1;", "target += normal_lpdf(y[n] | X[n, t] * beta[t], s);", "c[n] ~ poisson_log(0.2 * v[t]);"),
    "cell": ("Y[j, t] ~ normal(u[j] + v[t], s);", "if (C[j, t] > 0) Y[j, t] ~ normal(z[j, t], s);", "C[j, t] ~ poisson_log(0.3 * (u[j] + b * t));", "if (C[j, t] == 0) continue; Y[j, t] ~ normal(a + b * w[j], s);", "if (C[j, t] == 2) break; target += bernoulli_logit_lpmf(C[j, t] > 0 | v[t]);", "Y[j, t] ~ normal(a + b * t, s);", "target += w[j] * normal_lpdf(Y[j, t] | v[t], s);", "if (t > 1) Y[j, t] ~ normal(p * Y[j, t - 1] + u[j], s);", "target += poisson_log_lpmf(C[j, t] | 0.3 * a);", "for (n in first[j]:last[j]) { target += normal_lpdf(y[n] | Y[j, t] * b, s); }"),
    "lp": (
        "normal_lpdf(y[n] | <mean>, s)", "normal_lpdf(y[n] | <mean>, s)", "normal_lpdf(y[n] | <mean>, <scale>)", "0.5 * log(q[h[n]]) - 0.5 * q[h[n]] * square(y[n] - (<mean>))", "poisson_log_lpmf(c[n] | 0.3 * (<mean>))", "bernoulli_logit_lpmf(bit[n] | <mean>)", "student_t_lpdf(y[n] | 4, <mean>, s)", "normal_lccdf(y[n] | <mean>, s)", "log_mix(p, <lp>, <lp>)", "log_sum_exp(log(p) + <lp>, log1m(p) + <lp>)", "neg_binomial_2_log_lpmf(c[n] | 0.2 * (<mean>), 1 + s)", "-0.5 * square((y[n] - (<mean>)) / s) - log(s)", "bernoulli_logit_lpmf(bit[n] | v[h[n]])", "-square(<mean>)", "normal_lpdf(x[n] | a, s)", "binomial_logit_lpmf(bit[n] | 1 + c[n], <mean>)",
    ),
    "mean": ("a + b * x[n]", "u[g[n]]", "u[g[n]] + v[h[n]]", "a + v[h[n]] * x[n]", "X[n] * beta", "u[g[n]] + X[n] * beta", "z[g[n], h[n]]", "a", "w[g[n]] * b", "b * x[n] + u[g[n]]", "a + b * w[g[n]] * x[n]", "dot_product(z[g[n]], X[n])", "(bit[n] ? a : b) * x[n]"),
    "scale": ("r[g[n]]", "q[h[n]]", "exp(u[g[n]])", "s * r[g[n]]", "inv_sqrt(q[h[n]])", "1 / sqrt(r[g[n]])", "r[g[n]] * sqrt(1 + c[n])", "s * sqrt(1 + c[n])", "sqrt(square(s) + square(q[h[n]]))", "r[g[n]] + q[h[n]]", "exp(a * x[n])", "(bit[n] ? s : r[g[n]])", "r[bit[n] + 1 <= J ? bit[n] + 1 : 1]"),
    "test": ("bit[n] == 1", "c[n] == 0", "x[n] > 0", "h[n] == 1", "h[n] > 1", "y[n] < x[n]", "a > 0", "b * x[n] > 0", "n % 3 == 0", "w[g[n]] > 0", "c[n] > 1 && bit[n]"),
    "of_j": ("w[j] > 0", "size_of[j] == 0", "last[j] < first[j]", "a > 0.1", "u[j] > 0", "j == 1", "visits[j] > 1", "j % 2"),
    "of_group": ("u[j]", "a + b * w[j]", "a + u[j]", "z[j, 1]", "u[j] * s", "dot_product(z[j], Y[j])", "tanh(u[j] + a)", "a"),
    "lp_of_group": ("target += lp;", "target += w[j] * lp;", "target += log_sum_exp(log(p) + lp, log1m(p));", "target += log1p_exp(lp);", "target += 0.5 * lp;", "target += w[j] > 0 ? lp : 0.1 * lp;", "if (lp > -10) target += lp;"),
    "means": ("rep_vector(a, N)", "b * x", "X * beta", "u[g]", "rep_vector(0, N)", "a + v[h] .* x"),
    "fill": (
        "for (j in 1:J) { for (n in first[j]:last[j]) mu[n] += u[j]; }", "for (j in 1:J) { mu[first[j]:last[j]] += w[j] * b; }", "for (j in 1:J) { for (n in start[j]:(start[j] + size_of[j] - 1)) mu[n] = u[j] + b * x[n]; }", "for (j in 1:J) mu[first[j]:last[j]] = a + u[j] * x[first[j]:last[j]];", "for (n in 1:N) { if (<test>) mu[n] += <mean>; }", "for (n in 1:N) mu[n] += <mean>;", "for (n in 2:N) mu[n] += 0.3 * mu[n - 1];", "for (t in 1:T) mu += X[, t] * v[t];", "for (n in 1:N) { for (t in 1:h[n]) mu[n] += X[n, t] * beta[t]; }", "for (j in 1:J) { if (<of_j>) continue; for (n in first[j]:last[j]) mu[n] *= 0.5; }",
    ),
    "filled": ("y ~ normal(mu, s);", "y ~ normal(mu, r[g]);", "bit ~ bernoulli_logit(mu);", "c ~ poisson_log(0.3 * mu);", "for (n in 1:N) target += <test> ? normal_lpdf(y[n] | mu[n], s) : bernoulli_logit_lpmf(bit[n] | mu[n]);", "for (j in 1:J) y[first[j]:last[j]] ~ normal(mu[first[j]:last[j]] + u[j], s);", "target += log_sum_exp(mu) - 0.1 * dot_self(mu);", "for (j in 1:J) { for (n in first[j]:last[j]) { target += normal_lpdf(y[n] | mu[n] * w[j], s); } }"),
    "handed": ("kept += w[j];", "kept = u[j];", "times += 1;", "times += size_of[j];", "kept = 0.5 * kept + b;", "if (<of_j>) { kept += a; times += 1; }"),
    "carried": ("y[n] ~ normal(kept, s);", "y[n] ~ normal(kept + b * x[n], s);", "kept += x[n]; target += -0.1 * square(kept * b);", "bit[n] ~ bernoulli_logit(a + 0.01 * times); times += bit[n];", "kept = 0.5 * kept + <mean>; y[n] ~ normal(kept, s);", "times = n; target += <lp> * 0.01 * times;", "target += <lp>; if (<test>) kept = 0;"),
    "summed": ("target += log_sum_exp(sums);", "for (j in 1:J) target += w[j] * sums[j];", "target += sum(sums);", "for (j in 1:J) target += log_mix(p, sums[j], -1);", "for (j in 1:J) { if (<of_j>) target += sums[j]; }", "target += dot_product(sums, w);"),
}  # fmt: skip
_MARK = re.compile(r"<(\w+)>")


def group_program(seed: int) -> str:
    """A program; always the same for a seed."""
    rng = random.Random(seed)

    def fill(text: str, depth: int) -> str:
        def put_in(match: re.Match[str]) -> str:
            if depth > 4 and match[1] in ("row", "group"):
                return fill("target += <lp>;" if match[1] == "row" else "u[j] ~ normal(0, s);", depth)
            if depth > 6 and match[1] == "lp":
                return "bernoulli_logit_lpmf(bit[n] | a)"
            return fill(rng.choice(_FORMS[match[1]]), depth + 1)

        return _MARK.sub(put_in, text)

    statements = [fill("<statement>", 0) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    return _HEAD + "".join(f"  {text}\n" for text in statements) + "}\n"


def group_data(seed: int) -> dict[str, Any]:
    """Data for such a program."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 5, 200, 400, 900], p=[0.06, 0.06, 0.08, 0.3, 0.3, 0.2]))
    j, t = int(rng.choice([1, 2, 7, 40, 120])), int(rng.choice([1, 2, 3, 9], p=[0.2, 0.3, 0.4, 0.1]))
    few = rng.random() < 0.5

    def reals(*shape: int) -> np.ndarray[Any, Any]:
        found = rng.integers(-2, 3, shape) * 0.5 if few or rng.random() < 0.3 else rng.standard_normal(shape)
        kind = rng.random()
        if kind < 0.05:
            return np.full(shape, float(rng.choice([0.0, 1.0, -0.0])))
        if kind < 0.08:
            return np.asarray(found + 1e5, float)
        return np.asarray(np.where(rng.random(shape) < 0.7, 0.0, found) if kind < 0.16 else found, float)

    ends = np.sort(rng.integers(0, n + 1, j)) if rng.random() < 0.7 else np.arange(1, j + 1) * (n // j)
    begins = np.concatenate(([0], ends[:-1]))
    shifts = rng.integers(-1, 2, j) if rng.random() < 0.3 else 0
    g = rng.integers(1, j + 1, n) if rng.random() < 0.7 else rng.choice([1, j], n)
    order = rng.permutation(j) if rng.random() < 0.2 else np.arange(j)
    weights = np.where(rng.random(j) < 0.3, 0.0, reals(j)) if rng.random() < 0.5 else np.abs(reals(j))
    return {
        "N": n, "J": j, "T": t, "g": np.sort(g) if rng.random() < 0.5 else g, "h": rng.integers(1, t + 1, n), "c": rng.poisson(1.5, n),
        "bit": rng.integers(0, 2, n), "x": reals(n), "y": reals(n), "w": weights,
        "first": np.clip(begins + 1 + shifts, 1, max(n, 1))[order], "last": ends[order], "size_of": np.diff(np.concatenate(([0], ends))),
        "Y": reals(j, t), "C": rng.integers(0, 3, (j, t)), "X": reals(n, t), "visits": rng.integers(0, t + 1, j),
    }  # fmt: skip
