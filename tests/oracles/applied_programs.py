"""Random programs as applied work has them, of all blocks, with random data: what `row_programs.py` does not reach.

    program, data = applied_program(seed), applied_data(seed)

Functions of the program with loops, `_lp` functions, `reduce_sum`, `map_rect` and differential equations beside rows;
transformed data that make indices; segments, first rows that are apart, censored and truncated outcomes, missing cells,
rows that are left early, rejections in the midst of them, several statements over one predictor, tuples and arrays of
containers as data. Data have no, one or hundreds of rows, repeated ones, groups without any.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from row_programs import some_reals

_FUNCTIONS = """functions {
  real swept(vector r, array[] int which, vector u, int low, int high, real s) {
    real total = 0;
    for (i in low:high) {
      if (i > num_elements(r)) break;
      if (which[i] > size(u)) continue;
      total += normal_lpdf(r[i] | u[which[i]], s);
    }
    return total;
  }
  vector smoothed(vector r, real weight) {
    vector[num_elements(r)] out;
    real kept = 0;
    for (i in 1:num_elements(r)) {
      kept = weight * kept + (1 - weight) * r[i];
      out[i] = kept;
    }
    return out;
  }
  array[] int starts(array[] int sizes) {
    array[size(sizes)] int found;
    int at = 1;
    for (j in 1:size(sizes)) { found[j] = at; at += sizes[j]; }
    return found;
  }
  int how_many(array[] int which, int wanted) {
    int found = 0;
    for (i in 1:size(which)) if (which[i] == wanted) found += 1;
    return found;
  }
  void each_lp(vector r, array[] int which, vector u, real s) {
    for (n in 1:size(which)) {
      if (which[n] == 1) target += student_t_lpdf(r[n] | 4, u[1], s);
      else r[n] ~ normal(u[which[n]], s);
    }
  }
  void one_lp(real r, real mu, real s) { target += -0.5 * square((r - mu) / s) - log(s); }
  void group_lp(vector r, real mu, real s) {
    if (num_elements(r) == 0) return;
    r ~ normal(mu, s);
    target += normal_lpdf(mean(r) | mu, s);
  }
  real hurdle_lpmf(array[] int k, vector eta, real q) {
    real total = 0;
    for (i in 1:size(k)) {
      if (k[i] == 0) { total += log(q); continue; }
      total += log1m(q) + poisson_log_lpmf(k[i] | eta[i]) - log1m_exp(-exp(eta[i]));
    }
    return total;
  }
  vector predicted(matrix X, vector beta, array[] int which, vector u) {
    vector[rows(X)] eta;
    for (n in 1:rows(X)) eta[n] = X[n] * beta + u[which[n]];
    return eta;
  }
  real part_lpmf(array[] int k, int from, int to, vector eta) { return poisson_log_lupmf(k | eta[from:to]); }
  real loop_lpdf(array[] real r, int from, int to, vector mu, array[] int which, vector u, real s) {
    real total = 0;
    for (i in 1:size(r)) total += normal_lpdf(r[i] | mu[from + i - 1] + u[which[from + i - 1]], s);
    return total;
  }
  vector shard(vector shared, vector own, data array[] real xr, data array[] int xi) {
    real total = 0;
    for (t in 1:size(xr)) if (xi[t] > 0) total += normal_lpdf(xr[t] | own[1] + shared[1] * xi[t], 1 + exp(shared[2]));
    return [total]';
  }
  vector decay(real t, vector state, real rate) { return [-rate * state[1], rate * state[1] - 0.2 * state[2]]'; }
}
"""
_BLOCKS = """data {
  int<lower=0> N;
  int<lower=1> J;
  int<lower=1> K;
  int<lower=0> T;
  int<lower=1, upper=3> mode;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=1, upper=K> h;
  array[N] int<lower=0, upper=2> code;
  array[N] int<lower=0, upper=1> bit;
  array[N] int<lower=0> count;
  array[N] int<lower=1, upper=5> when;
  vector[N] x;
  vector[N] z;
  vector[N] y;
  array[N] real r;
  vector<lower=0>[N] time;
  vector<lower=0>[N] w;
  matrix[N, K] X;
  array[N] vector[K] rows_of;
  array[J] int<lower=0> sizes;
  matrix[J, T] Y;
  array[J, T] int seen;
  array[N] tuple(int, real) pairs;
  tuple(vector[N], array[N] int) both;
  array[J, 5] real xr;
  array[J, 5] int xi;
}
transformed data {
  array[J] int first = starts(sizes);
  int n_cens = how_many(code, 2);
  array[n_cens] int cens;
  array[N - n_cens] int obs;
  array[J] int members = rep_array(0, J);
  array[N] int place;
  array[N] int order = sort_indices_asc(g);
  vector[N] xs = N > 1 ? (x - mean(x)) / (0.1 + sd(x)) : x;
  matrix[N, K] Q = X;
  array[5] real ts = {0.5, 1, 1.5, 2, 4};
  {
    int c = 0;
    int o = 0;
    for (n in 1:N) {
      if (code[n] == 2) { c += 1; cens[c] = n; } else { o += 1; obs[o] = n; }
      members[g[n]] += 1;
      place[n] = members[g[n]];
    }
  }
  for (k in 1:K) Q[, k] = N > 0 ? X[, k] - mean(X[, k]) : X[, k];
}
parameters {
  real a;
  real b;
  real c;
  real<lower=0> s;
  real<lower=0> phi;
  real<lower=0, upper=1> p;
  vector[J] u;
  vector<multiplier=2>[K] v;
  vector[K] beta;
  cholesky_factor_corr[K] L;
  array[J] vector[K] means;
  simplex[3] mix;
  ordered[2] cut;
  vector[5] three;
  vector[N] e;
}
transformed parameters {
  vector[N] level = a + 0.1 * e;
  vector[J] effect = u * s;
  matrix[K, K] LS = add_diag(diag_pre_multiply(0 * beta + s, L), 0.5);
}
"""
_PRIORS = "  target += -0.5 * (a^2 + b^2 + c^2 + dot_self(u) + dot_self(v) + dot_self(beta) + dot_self(three) + dot_self(cut) + dot_self(e)) - s - phi;\n  for (j in 1:J) target += -0.5 * dot_self(means[j]);\n"

_FORMS: dict[str, Sequence[str]] = {
    "mean": (
        "a + b * x[n]", "a + u[g[n]]", "u[g[n]] + v[h[n]]", "effect[g[n]] + b * xs[n]", "X[n] * beta + u[g[n]]", "Q[n] * beta", "level[n]", "a + b * pairs[n].2", "u[g[n]] * place[n]",
        "c + three[1 + code[n]]", "a + three[when[n]]", "both.1[n] * b + u[g[n]]", "dot_product(rows_of[n], means[g[n]])", "a + b * log1p(time[n])", "three[pairs[n].1]", "a", "effect[g[n]]",
        "a + (mode == 1 ? b * x[n] : mode == 2 ? u[g[n]] : c)", "a + b * members[g[n]]", "(bit[n] ? a : b) + c * x[n]", "u[g[order[n]]]",
    ),
    "scale": ("s", "s", "s", "s * (1 + w[n])", "0.1 + phi", "exp(0.1 * a + 0.1 * x[n])", "s + bit[n]", "three[when[n]] - three[1] + 10"),
    "real": ("y[n]", "y[n]", "r[n]", "x[n]", "pairs[n].2", "both.1[n]"),
    "lp": (
        "normal_lpdf(<real> | <mean>, <scale>)", "normal_lpdf(<real> | <mean>, <scale>)", "student_t_lpdf(<real> | 4, <mean>, <scale>)", "poisson_log_lpmf(count[n] | 0.3 * (<mean>))", "bernoulli_logit_lpmf(bit[n] | <mean>)",
        "neg_binomial_2_log_lpmf(count[n] | 0.2 * (<mean>), 0.5 + phi)", "exponential_lpdf(time[n] | exp(0.2 * (<mean>)))", "weibull_lpdf(0.1 + time[n] | 1 + phi, exp(0.2 * (<mean>)))", "normal_lccdf(<real> | <mean>, <scale>)",
        "log_mix(p, <lp>, <lp>)", "log_sum_exp(log(p) + <lp>, log1m(p) + <lp>)", "log_sum_exp([log(mix[1]) + <lp>, log(mix[2]) + <lp>, log(mix[3])]')", "ordered_logistic_lpmf(1 + code[n] | <mean>, cut)", "categorical_logit_lpmf(when[n] | three * x[n])",
        "swept(y, g, u, n, n + h[n], s)", "swept(x, h, three, when[n], n, <scale>)", "lognormal_lpdf(0.5 + time[n] | <mean>, <scale>)", "gamma_lpdf(0.5 + time[n] | 0.5 + phi, exp(0.1 * (<mean>)))", "multi_normal_cholesky_lpdf(rows_of[n] | means[g[n]], LS)",
        "binomial_logit_lpmf(bit[n] | 1 + count[n], <mean>)", "beta_binomial_lpmf(bit[n] | 1 + count[n], 0.5 + phi, exp(0.1 * (<mean>)))", "normal_lcdf(<real> | <mean>, <scale>)", "skew_normal_lpdf(<real> | <mean>, <scale>, b)", "von_mises_lpdf(x[n] | <mean>, 1 + phi)",
    ),
    "test": ("bit[n] == 1", "code[n] == 0", "code[n] == 2", "count[n] == 0", "x[n] > 0", "n == 1", "n == N", "place[n] == 1", "g[n] == J", "mode == 2", "mode > 1 && bit[n]", "n > 1 && g[n] == g[max(n - 1, 1)]", "a > 0", "x[n] * b > 0.1", "pairs[n].1 == 2", "!bit[n] || x[n] < 0"),
    "term": (
        "target += <lp>;", "target += <lp>;", "target += <lp>;", "target += w[n] * <lp>;", "if (<test>) { <term> } else { <term> }", "if (<test>) target += <lp>;", "if (<test>) continue; target += <lp>;", "if (<test>) break; target += <lp>;",
        "if (<test>) { target += <lp>; continue; } target += <lp>;", "y[n] ~ normal(<mean>, <scale>);", "count[n] ~ poisson_log(0.3 * (<mean>));", "bit[n] ~ bernoulli_logit(<mean>);", "<term> <term>", "one_lp(<real>, <mean>, <scale>);",
        "time[n] ~ normal(<mean>, <scale>) T[0, ];", "y[n] ~ normal(<mean>, <scale>) T[-20, 20];", "count[n] ~ poisson(exp(fmin(3, 0.1 * (<mean>)))) T[0, 30];", "time[n] ~ exponential(exp(0.1 * (<mean>))) T[, 100];",
        "{ real mu = <mean>; if (<test>) mu += <mean>; if (<test>) mu *= 0.5; target += normal_lpdf(<real> | mu, <scale>); y[n] ~ student_t(3, mu, s); }",
        "{ vector[3] lps = log(mix); for (m in 1:3) { if (m > 1 + code[n]) break; lps[m] += <lp>; } target += log_sum_exp(lps); }",
        "if (x[n] > 6) reject(\"row \", n, \" of \", N); <term>", "if (s * w[n] > 8) reject(\"wide row \", n); <term>", "y[n] ~ normal(<mean>, 4 - s * w[n]);", "{ int k = 1; while (k <= h[n] && k < 3) { target += X[n, k] * v[k]; k += 1; } }",
        "{ array[2] real held = {a, b}; for (m in 1:2) { held[m] *= x[n]; target += -square(held[m]); } }", "{ vector[K] lin = X[n]' .* beta; lin[h[n]] += <mean>; target += -dot_self(lin); }",
    ),
    "carry": ("kept = 0.5 * kept + <mean>;", "kept = <mean>;", "kept += x[n];", "if (place[n] == 1) kept = a; else kept = 0.5 * kept + b * x[n];", "if (<test>) kept = 0;", "times += 1;", "times += bit[n];", "last_seen = n;", "if (bit[n]) last_seen = n;"),
    "carried": ("target += normal_lpdf(y[n] | kept, s);", "target += normal_lpdf(y[n] | kept + <mean>, <scale>);", "target += bernoulli_logit_lpmf(bit[n] | 0.1 * kept + b * times);", "if (last_seen > 0) target += -square(a * x[last_seen] - x[n]);", "target += <lp> * times;", "<term>"),
    "vectors": ("a + b * x", "a + u[g]", "u[g] + v[h] .* xs", "X * beta", "a + Q * beta + effect[g]", "predicted(X, beta, g, u)", "level", "smoothed(x, p) * b + a", "b * both.1", "three[when]", "rep_vector(a, N)", "a + smoothed(u[g], 0.5)", "to_vector(r) * b", "Q * beta + level", "u[g[order]]"),
    "used": (
        "y ~ normal(eta, s);", "bit ~ bernoulli_logit(eta);", "count ~ poisson_log(0.3 * eta);", "target += hurdle_lpmf(count | 0.2 * eta, p);", "y[obs] ~ normal(eta[obs], s); target += normal_lccdf(y[cens] | eta[cens], s);",
        "for (i in 1:n_cens) target += normal_lccdf(y[cens[i]] | eta[cens[i]], s);", "for (i in 1:size(obs)) y[obs[i]] ~ normal(eta[obs[i]], s);", "target += reduce_sum(part_lpmf, count, 1, 0.3 * eta);", "target += reduce_sum(loop_lpdf, r, 3, eta, g, u, s);",
        "for (n in 1:N) { if (<test>) target += normal_lpdf(y[n] | eta[n], s); else target += bernoulli_logit_lpmf(bit[n] | eta[n]); }", "target += -0.5 * dot_self(smoothed(y, p) - eta);", "y ~ normal(eta + e, 1 + s);", "e ~ normal(eta, s);", "target += log_sum_exp(eta) - 1;",
        "for (n in 1:N) { if (code[n] == 0) y[n] ~ normal(eta[n], s); else if (code[n] == 1) target += normal_lcdf(y[n] | eta[n], s); else target += log_diff_exp(normal_lcdf(y[n] + 1 | eta[n], s), normal_lcdf(y[n] | eta[n], s)); }",
    ),
    # what is done with a predictor, or between statements
    "change": (
        "eta[cens] = rep_vector(b, n_cens);", "eta[order] = a * x;", "eta[obs] += v[h[obs]];", "for (i in 1:n_cens) eta[cens[i]] -= c;", "for (n in 2:N) eta[n] += p * eta[n - 1];", "for (j in 1:J) eta[first[j]:(first[j] + sizes[j] - 1)] += u[j];", "for (j in 1:J) { if (sizes[j] > 1) eta[first[j]] = u[j]; }", "eta = smoothed(eta, p);",
        "for (n in 1:N) { if (<test>) eta[n] = <mean>; }", "for (k in 1:K) for (n in 1:N) if (h[n] == k) eta[n] += beta[k];", "if (mode == 1) eta += X * beta; else if (mode == 2) eta -= a;", "eta = a > 0 ? eta : -eta;", "{ vector[N] other = eta; for (n in 1:N) other[n] *= w[n]; eta += 0.1 * reverse(other); }", "eta[g[order]] = eta[h];", "for (n in 1:N) eta[n] = (bit[n] ? eta[n] : 2 * eta[n]) + place[n] * b;",
    ),
    "between": (
        "target += 0.1 * tanh(0.001 * target());", "if (a > 5) reject(\"a is \", a);", "{ real m; if (N > 5) m = a; else m = b; target += -square(m); }", "{ vector[J] last_of = rep_vector(0, J); last_of[g] = a * x; target += normal_lpdf(last_of | u, s); }", "{ vector[J] sums = rep_vector(0, J); for (n in 1:N) sums[g[n]] += x[n] * b; u ~ normal(sums, 2); }", "{ array[J] int seen_of = rep_array(0, J); for (n in 1:N) { if (seen_of[g[n]] == 1) continue; seen_of[g[n]] = 1; target += <lp>; } }",
        "{ vector[J] best = rep_vector(negative_infinity(), J); for (n in 1:N) best[g[n]] = fmax(best[g[n]], y[n]); for (j in 1:J) if (members[j] > 0) best[j] ~ normal(u[j], s); }", "profile(\"rows\") { for (n in 1:N) { <term> } }", "{ real m; for (n in 1:N) { if (bit[n]) m = <mean>; if (n > 1 && bit[1]) y[n] ~ normal(m, s); } }",
    ),
    "segment": (
        "segment(y, pos, sizes[j]) ~ normal(u[j], s);", "segment(y, pos, sizes[j]) ~ normal(a + b * segment(x, pos, sizes[j]) + u[j], s);", "group_lp(segment(y, pos, sizes[j]), u[j], s);", "segment(bit, pos, sizes[j]) ~ bernoulli_logit(u[j] + segment(x, pos, sizes[j]) * c);",
        "for (i in 1:sizes[j]) { int n = pos + i - 1; <term> }", "for (n in pos:(pos + sizes[j] - 1)) { y[n] ~ normal(u[j] + b * (n - pos), s); }", "for (n in pos:(pos + sizes[j] - 1)) { if (n == pos) y[n] ~ normal(u[j], 2); else y[n] ~ normal(u[j] + p * (y[n - 1] - u[j]), s); }",
        "{ vector[sizes[j]] mu = smoothed(segment(x, pos, sizes[j]), p); segment(y, pos, sizes[j]) ~ normal(mu * b + u[j], s); }", "{ real lp = 0; for (n in pos:(pos + sizes[j] - 1)) lp += <lp>; target += log_sum_exp(log(p) + lp, log1m(p)); }", "{ real lp = 0; for (n in pos:(pos + sizes[j] - 1)) lp += <lp>; target += w[max(pos, 1)] * lp; }",
        "target += swept(y, h, three, pos, pos + sizes[j] - 1, s);", "{ int m = sizes[j]; if (m > 1) { segment(y, pos, m)[2:m] ~ normal(p * segment(y, pos, m)[1:(m - 1)], s); } }", "sum(segment(count, pos, sizes[j])) ~ poisson(sizes[j] * exp(0.1 * u[j]) + 0.01);", "segment(y, pos, sizes[j]) ~ normal(block(X, pos, 1, sizes[j], K) * beta + u[j], s);",
    ),
    "cell": ("if (seen[j, t]) Y[j, t] ~ normal(u[j] + three[1 + t % 5], s);", "Y[j, t] ~ normal(u[j] + b * t, s);", "if (seen[j, t] == 0) continue; target += bernoulli_logit_lpmf(seen[j, t] > 1 | u[j]);", "if (t == 1) Y[j, t] ~ normal(u[j], 1); else Y[j, t] ~ normal(u[j] + p * Y[j, t - 1], s);", "target += seen[j, t] * normal_lpdf(Y[j, t] | a, s);", "if (t > 1 && seen[j, t - 1] == seen[j, t]) break; Y[j, t] ~ normal(three[1 + seen[j, t]], s);"),
    "statement": (
        "for (n in 1:N) { <term> }", "for (n in 1:N) { <term> }", "for (n in 1:N) { <term> }", "{ vector[N] eta = <vectors>; <used> }", "{ vector[N] eta = <vectors>; <change> <used> }", "{ vector[N] eta = <vectors>; <change> <change> <used> <used> }", "<between>", "<between> <statement>", "{ vector[N] eta = <vectors>; <used> <used> }", "{ vector[N] eta = <vectors>; for (n in 1:N) { if (<test>) eta[n] += <mean>; } <used> <used> }",
        "{ int pos = 1; for (j in 1:J) { <segment> pos += sizes[j]; } }", "{ int pos = 1; for (j in 1:J) { <segment> pos = pos + sizes[j]; } }", "for (j in 1:J) { int pos = first[j]; <segment> }", "for (j in 1:J) { int pos = first[j]; if (sizes[j] == 0) continue; <segment> <segment> }",
        "{ real kept = 0; int times = 0; int last_seen = 0; for (n in 1:N) { <carry> <carried> } }", "{ real kept = 0; int times = 0; int last_seen = 0; for (n in 1:N) { <carried> <carry> } }", "{ real kept = a; int times = 1; int last_seen = 0; for (n in 1:N) { <carry> <carry> <carried> } }",
        "each_lp(y, g, u, s);", "each_lp(x, h, beta, 1 + s);", "for (j in 1:J) { for (t in 1:T) { <cell> } }", "for (t in 1:T) { for (j in 1:J) { <cell> } }", "for (j in 1:J) target += swept(y, h, three, first[j], first[j] + sizes[j] - 1, s);",
        "{ array[J] vector[1] owns; for (j in 1:J) owns[j, 1] = u[j]; target += sum(map_rect(shard, [b, c]', owns, xr, xi)); }", "{ array[5] vector[2] sol = ode_rk45(decay, [1, 0.5]', 0.0, ts, exp(0.1 * a)); for (n in 1:N) { y[n] ~ normal(sol[when[n], 1 + bit[n]] + <mean>, s); } }",
        "for (i in 1:n_cens) { int n = cens[i]; <term> }", "for (i in 1:size(obs)) { int n = obs[i]; <term> }", "for (i in 1:N) { int n = order[i]; <term> }", "for (i in 1:N) { int n = N - i + 1; <term> }", "y[obs] ~ normal((<vectors>)[obs], s);", "for (n in 2:N) { <term> }",
        "{ vector[J] totals = rep_vector(0, J); for (n in 1:N) { totals[g[n]] += <lp>; } target += log_sum_exp(totals); }", "{ vector[J] totals = rep_vector(0, J); for (n in 1:N) { if (<test>) totals[g[n]] += <lp>; } for (j in 1:J) target += log_mix(p, totals[j], -1); }",
        "{ int n = 1; while (n <= N) { if (<test>) { n += 1; continue; } target += <lp>; n += 1; } }", "{ array[N] vector[2] lps; for (n in 1:N) { lps[n, 1] = <lp>; lps[n, 2] = <lp>; } for (n in 1:N) target += log_mix(p, lps[n, 1], lps[n, 2]); }",
        "if (mode == 1) { for (n in 1:N) { <term> } } else if (mode == 2) { y ~ normal(<vectors>, s); } else { <statement> }", "{ array[J] vector[K] shifted; for (j in 1:J) shifted[j] = means[j] * s; for (n in 1:N) target += -dot_self(shifted[g[n]] - rows_of[n]); }",
        "for (j in 1:J) { for (n in 1:N) { if (g[n] != j) continue; y[n] ~ normal(u[j], s); } }", "for (j in 1:J) { for (n in 1:N) { if (g[n] == j) { <term> } } }", "{ matrix[N, 3] lps; for (m in 1:3) { for (n in 1:N) lps[n, m] = log(mix[m]) + <lp>; } for (n in 1:N) target += log_sum_exp(lps[n]); }",
        "y ~ normal(<vectors>, s); bit ~ bernoulli_logit(<vectors>); count ~ poisson_log(0.3 * (<vectors>));", "rows_of ~ multi_normal_cholesky(means[g], LS);", "rows_of ~ multi_normal(beta, add_diag(multiply_lower_tri_self_transpose(LS), 1));", "for (n in 1:N) pairs[n].2 ~ normal(three[pairs[n].1], s);",
    ),
    "quantity": ("real q<i> = swept(y, g, u, 1, N, s);", "vector[N] q<i> = smoothed(<vectors>, p);", "vector[N] q<i>; for (n in 1:N) { q<i>[n] = <lp>; }", "array[N] int q<i> = poisson_log_rng(fmin(3, 0.1 * (<vectors>)));", "array[J] int q<i> = members; for (n in 1:N) { if (<test>) q<i>[g[n]] += 1; }", "real q<i> = 0; for (n in 1:N) { if (<test>) continue; q<i> += <lp>; }", "tuple(int, real) q<i> = (N, <drawn>);", "real q<i> = hurdle_lpmf(count | 0.1 * (<vectors>), p);", "vector[N] q<i> = to_vector(normal_rng(<vectors>, 1 + s));"),
    "drawn": ("normal_rng(a, 1 + s)", "a * b", "sum(u)"),
}  # fmt: skip
_MARK = re.compile(r"<(\w+)>")


class _Writer:
    """Puts forms in the places of marks, until none is left."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.count = 0

    def fill(self, text: str, depth: int = 0) -> str:
        def put_in(match: re.Match[str]) -> str:
            if match[1] == "i":
                return str(self.count)
            if depth > 4 and match[1] == "term":
                return self.fill("target += <lp>;", depth)
            if depth > 6 and match[1] == "lp":
                return "bernoulli_logit_lpmf(bit[n] | a)"
            return self.fill(self.random.choice(_FORMS[match[1]]), depth + 1)

        return _MARK.sub(put_in, text)

    def quantity(self) -> str:
        self.count += 1
        return self.fill(self.random.choice(_FORMS["quantity"]))


def applied_program(seed: int) -> str:
    """A program; always the same for a seed."""
    writer = _Writer(seed)
    statements = [writer.fill("<statement>") for _ in range(writer.random.choice((1, 1, 2, 3, 4)))]
    quantities = [writer.quantity() for _ in range(writer.random.choice((0, 1, 2)))]
    model = "model {\n" + _PRIORS + "".join(f"  {text}\n" for text in statements) + "}\n"
    generated = "generated quantities {\n" + "".join(f"  {text}\n" for text in quantities) + "}\n" if quantities else ""
    return _FUNCTIONS + _BLOCKS + model + generated


def applied_data(seed: int) -> dict[str, Any]:
    """Data for such a program: of a few kinds of rows or of many, some with special values."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 2, 9, 200, 300, 800], p=[0.08, 0.08, 0.04, 0.1, 0.2, 0.3, 0.2]))
    j, t = int(rng.choice([1, 2, 8, 30, 150])), int(rng.choice([0, 1, 6]))
    k = int(rng.choice([1, 2, 3, 11, 25], p=[0.2, 0.3, 0.2, 0.15, 0.15]))
    few = rng.random() < 0.5

    def reals(*shape: int) -> np.ndarray[Any, Any]:
        return some_reals(rng, shape, few, (0.05, 0.1, 0.2, 0.23), 1e5, (np.nan, np.inf, -np.inf, 1e300, 7.0))

    def positive(*shape: int) -> np.ndarray[Any, Any]:
        return np.abs(np.nan_to_num(reals(*shape), posinf=1.0, neginf=1.0))

    g, h = _grouped(rng, n, j), rng.integers(1, k + 1, n)
    indicators = (h[:, None] == np.arange(1, k + 1)).astype(float)
    X = (
        indicators
        if rng.random() < 0.2
        else np.where(rng.random((n, k)) < 0.9, 0.0, reals(n, k))
        if rng.random() < 0.3
        else reals(n, k)
    )
    count = rng.poisson(1.5, n)
    ends = np.sort(rng.integers(0, n + 1, j)) if rng.random() < 0.7 else np.arange(1, j + 1) * (n // j)
    pairs = list(zip(rng.integers(1, 6, n).tolist(), reals(n).tolist(), strict=True))
    return {
        "N": n, "J": j, "K": k, "T": t, "mode": int(rng.integers(1, 4)), "g": g, "h": h,
        "code": rng.integers(0, 3, n) if rng.random() < 0.8 else np.full(n, int(rng.integers(0, 3))),
        "bit": rng.integers(0, 2, n) if rng.random() < 0.8 else np.ones(n, int), "count": count,
        "when": np.sort(rng.integers(1, 6, n)) if few else rng.integers(1, 6, n), "x": reals(n), "z": reals(n), "y": reals(n),
        "r": reals(n), "time": positive(n), "w": positive(n), "X": X, "rows_of": reals(n, k),
        "sizes": np.diff(np.concatenate(([0], ends))), "Y": reals(j, t), "seen": rng.integers(0, 3, (j, t)),
        "pairs": [{"1": one, "2": other} for one, other in pairs], "both": {"1": reals(n), "2": rng.integers(0, 5, n)},
        "xr": reals(j, 5), "xi": rng.integers(0, 3, (j, 5)),
    }  # fmt: skip


def _grouped(rng: np.random.Generator, n: int, j: int) -> np.ndarray[Any, Any]:
    """An index of groups: sorted or not, of all groups, of few, of the ends only, or the same for all rows."""
    kind = rng.random()
    if kind < 0.1:
        return np.full(n, int(rng.choice([1, j])))
    if kind < 0.2:
        return rng.choice([1, j], n)
    g = rng.integers(1, j + 1, n)
    if kind < 0.35 and j > 2:
        g = np.where(g % 3 == 0, 1, g)  # groups without rows
    return np.sort(g) if kind < 0.65 else g
