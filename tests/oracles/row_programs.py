"""Random programs whose densities are sums over rows of data, with random data: for the layouts of the data.

    program, data = row_program(seed), row_data(seed)

What layouts look for, and what looks like it: predictors of covariates, groups and designs, means that are filled
ahead, chains of branches and ternaries of different distributions chosen by data, weights, rows that repeat, indices in
any order, empty groups and no rows at all; and data that are zero, far from zero, constant, infinite or NaN. Rows of
vectors, mixtures of mixtures, states that go on, loops inside of rows that are left early or end elsewhere in each.
"""

# ruff: noqa: E501  (Stan text in tables)
from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

_HEAD = """functions {
  real tilted_lpdf(real r, real mu, real sd) {
    if (r > mu) return -2 * (r - mu) / sd - log(sd);
    return -(mu - r) / sd - log(sd);
  }
  real mixed(vector lps, vector mix) {
    vector[rows(lps)] total = lps;
    for (k in 1:rows(lps)) total[k] += log(mix[k]);
    return log_sum_exp(total);
  }
  vector centred(vector r, real a) {
    return num_elements(r) == 0 ? r : r - a * mean(r);
  }
  real chain(array[] int counts, int low, int high, real rate) {
    real total = 0;
    for (i in low:high) {
      if (i > size(counts)) break;
      if (counts[i] == 3) continue;
      total += poisson_lpmf(counts[i] | exp(0.1 * rate) * i);
    }
    return total;
  }
}
data {
  int<lower=0> N;
  int<lower=1> J;
  int<lower=1> K;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=1, upper=K> h;
  array[N] int<lower=0, upper=2> code;
  array[N] int<lower=0, upper=1> bit;
  array[N] int<lower=0> count;
  array[N] int<lower=0> trials;
  vector[N] x;
  vector[N] z;
  vector[N] y;
  vector<lower=0>[N] time;
  vector<lower=0>[N] w;
  matrix[N, K] X;
  array[N] vector[K] rows;
  array[J] int first;
  array[J] int last;
}
transformed data {
  int M = N > 0 ? max(count) : 0;
  array[N] vector[K] centres;
  for (n in 1:N) centres[n] = rows[n] - X[n]';
}
parameters {
  real a;
  real b;
  real c;
  real<lower=0> s;
  real<lower=0> phi;
  real<lower=0, upper=1> p;
  vector[J] u;
  vector[K] v;
  vector[K] beta;
  matrix[J, K] uv;
  cholesky_factor_corr[K] L;
  vector<lower=0>[K] scales;
  array[J] vector[K] means;
  simplex[3] mix;
  ordered[2] cut;
  vector[3] three;
  vector[N] e;
}
transformed parameters {
  matrix[K, K] LS = diag_pre_multiply(0.5 + scales, L);
  vector[N] level = a + 0.1 * e;
}
model {
"""
_PRIORS = "  target += -0.5 * (a^2 + b^2 + c^2 + dot_self(u) + dot_self(v) + dot_self(beta) + sum(square(uv)));\n"
_PRIORS += "  target += -0.5 * (dot_self(scales) + dot_self(three) + dot_self(cut) + dot_self(e) + sum(square(LS)));\n  for (j in 1:J) target += -0.5 * dot_self(means[j]);\n"
_PRIORS += "  target += -s - phi;\n"

_FORMS: dict[str, Sequence[str]] = {
    # one row
    "mean": (
        "a + b * x[n]", "a + u[g[n]]", "u[g[n]] + v[h[n]]", "a + b * x[n] + c * z[n] + u[g[n]]", "uv[g[n], h[n]] + b * x[n]", "a + X[n] * beta",
        "a + dot_product(rows[n], beta)", "a + b * x[n] + v[h[n]] * z[n]", "b * square(x[n]) - c", "a + (bit[n] == 1 ? b : c) * x[n]", "a * x[n] * z[n] + u[g[n]]",
        "level[n]", "c + 0.3 * e[n] * x[n]", "means[g[n], h[n]]", "dot_product(means[g[n]], rows[n])", "uv[g[n]] * beta", "sum(X[n, 1:h[n]]) * a", "a + b * sum(v[1:h[n]])", "u[g[n]] + sum(beta[2:h[n]]) * x[n]", "a * prod(0.5 + 0.1 * three[1:(1 + code[n])])", "three[1 + code[n]] * x[n]",
        "a + b * (x[n] - z[n])", "c", "tanh(a + b * x[n])", "a + b * x[n] + X[n, 1] * c",
    ),
    "real": ("y[n]", "y[n]", "x[n]", "time[n]"),
    "scale": ("s", "s", "s * (1 + w[n])", "exp(0.1 * a + 0.1 * b * bit[n])", "sqrt(square(s) + square(w[n]))", "s", "exp(0.2 * u[g[n]])", "s * exp(0.1 * v[h[n]])", "scales[h[n]]", "(0.5 + Phi(uv[g[n], h[n]]))"),
    # log densities of one row, of different distributions
    "lp": (
        "normal_lpdf(<real> | <mean>, <scale>)", "student_t_lpdf(<real> | 3 + phi, <mean>, <scale>)", "logistic_lpdf(<real> | <mean>, <scale>)",
        "cauchy_lpdf(<real> | <mean>, <scale>)", "double_exponential_lpdf(<real> | <mean>, <scale>)", "lognormal_lpdf(1 + time[n] | <mean>, <scale>)",
        "normal_lccdf(<real> | <mean>, <scale>)", "logistic_lcdf(<real> | <mean>, <scale>)", "exponential_lpdf(time[n] | exp(0.2 * (<mean>)))",
        "weibull_lpdf(0.5 + time[n] | 0.5 + phi, exp(0.2 * (<mean>)))", "weibull_lccdf(0.5 + time[n] | 0.5 + phi, exp(0.2 * (<mean>)))",
        "gamma_lpdf(0.5 + time[n] | 0.5 + phi, exp(0.2 * (<mean>)))", "gamma_lpdf(0.5 + time[n] | exp(0.2 * u[g[n]]), exp(0.2 * (<mean>)))", "weibull_lpdf(0.5 + time[n] | exp(0.1 * v[h[n]]), exp(0.2 * u[g[n]]))",
        "bernoulli_logit_lpmf(bit[n] | exp(0.3 * u[g[n]]) * (<mean>))", "student_t_lpdf(<real> | 2 + scales[h[n]], <mean>, <scale>)", "neg_binomial_2_log_lpmf(count[n] | 0.3 * (<mean>), 0.5 + scales[h[n]])", "log_mix(inv_logit(means[g[n], 1]), <lp>, <lp>)", "poisson_log_lpmf(count[n] | 0.3 * (<mean>))", "bernoulli_logit_lpmf(bit[n] | <mean>)",
        "binomial_logit_lpmf(min(count[n], trials[n]) | trials[n], <mean>)", "binomial_lpmf(min(count[n], trials[n]) | trials[n], inv_logit(<mean>))", "neg_binomial_2_log_lpmf(count[n] | 0.3 * (<mean>), 0.5 + phi)",
        "lognormal_lccdf(1 + time[n] | <mean>, <scale>)", "bernoulli_lpmf(bit[n] | 0.01 + 0.98 * inv_logit(<mean>))", "normal_lpdf(<real> | <mean>, <scale>) + log(p)",
        "log_mix(p, normal_lpdf(<real> | <mean>, <scale>), normal_lpdf(<real> | <mean>, 1 + <scale>))", "log_sum_exp(log(p) + poisson_log_lpmf(count[n] | 0.1 * a), log1m(p) + poisson_log_lpmf(count[n] | 0.2 * b))",
        "log_mix(p, <lp>, log_mix(inv_logit(a), <lp>, <lp>))", "log_sum_exp(<lp>, <lp>)", "log_sum_exp([log(mix[1]) + <lp>, log(mix[2]) + <lp>, log(mix[3])]')", "mixed([<lp>, <lp>, <lp>]', mix)", "tilted_lpdf(<real> | <mean>, <scale>)",
        "ordered_logistic_lpmf(1 + code[n] | <mean>, cut)", "categorical_lpmf(1 + code[n] | mix)", "categorical_logit_lpmf(1 + code[n] | three * x[n])", "multi_normal_cholesky_lpdf(rows[n] | <vector>, LS)", "log1m_exp(-0.1 - square(<mean>))",
        "normal_lpdf(time[n] | <mean>, <scale>) - normal_lccdf(0 | <mean>, <scale>)", "chain(count, n, n + h[n], <mean>)", "log_inv_logit(<mean>) + log1m_inv_logit(<mean>)", "beta_proportion_lpdf(0.1 + 0.8 * p | inv_logit(<mean>), 1 + phi)",
        "-0.5 * square((<real> - (<mean>)) / (<scale>)) - log(<scale>)", "exp_mod_normal_lpdf(<real> | <mean>, <scale>, 0.5 + phi)", "uniform_lpdf(p | 0, 1) * x[n]",
    ),
    "test": (
        "bit[n] == 1", "code[n] == 0", "code[n] == 1", "count[n] > 0", "x[n] > 0", "code[n] == 2 && bit[n]", "bit[n]", "count[n] == 0", "is_nan(x[n])", "g[n] > 1", "n > 3",
        "y[n] < z[n]",
    ),
    # what a row adds
    "term": (
        "target += <lp>;", "target += <lp>;", "target += w[n] * <lp>;", "target += <test> ? <lp> : <lp>;", "target += <test> ? <lp> : <lp>;",
        "target += <test> ? <lp> : <test> ? <lp> : <lp>;", "target += (<test> ? <lp> : <lp>) + <lp>;", "target += (<test> ? <test> ? <lp> : <lp> : <lp>) * w[n];",
        "if (<test>) { target += <lp>; } else { target += <lp>; }", "if (<test>) { target += <lp>; } else if (<test>) { target += <lp>; } else { target += <lp>; }",
        "if (<test>) { target += <lp>; } else if (<test>) { target += <lp>; } else if (<test>) { target += <lp>; }", "if (<test>) { <term> } else { <term> }", "if (<test>) { target += <lp>; }",
        "{ real mu = <mean>; if (<test>) { mu += <mean>; } target += normal_lpdf(<real> | mu, <scale>); }", "{ real mu = <test> ? <mean> : <mean>; target += <test> ? cauchy_lpdf(y[n] | mu, s) : normal_lccdf(y[n] | mu, s); }",
        "{ real m1 = <mean>; real m2 = m1 + m1 * x[n]; real m3 = m2 - m2 * z[n]; real m4 = m3 + m1 * w[n]; target += normal_lpdf(<real> | m4, <scale>); }",
        "{ real m1 = <mean>; real m2 = m1 * x[n]; real m3 = m2 + b * z[n]; real m4 = m3 + m2 * x[n]; target += normal_lpdf(<real> | m4, <scale>); }",
        "{ vector[2] of = [log(p), <mean>]'; for (k in 1:K) { of[1] += bernoulli_lpmf(bit[n] | inv_logit(v[k] + X[n, k])); } target += log_sum_exp(of); }", "{ vector[3] of = three; for (k in 1:h[n]) of[1 + code[n]] += X[n, k] * v[k]; <real> ~ normal(sum(of), <scale>); }",
        "{ real m = b; for (k in 1:h[n]) m += v[k] * scales[k]; if (<test>) m -= sum(u[1:g[n]]); <real> ~ normal(m, <scale>); }", "{ real m = 0; for (j in 2:g[n]) m += exp(0.1 * u[j]); target += -square(log1p(m) - <real>); }",
        "target += bit[n] * (log(phi) + (phi - 1) * log(0.1 + time[n]) + <mean>) - exp(0.1 * (<mean>)) * pow(time[n], phi);", "target += -exp(0.1 * (<mean>)) * time[n]^(0.5 + a * a) - 0.01 * y[n]^2;", "<real> ~ normal(append_col(1, X[n]) * append_row(<mean>, beta), <scale>);",
        "y[n] ~ normal(<mean>, <scale>);", "count[n] ~ poisson_log(0.3 * (<mean>));", "{ int k = 1 + count[n]; k ~ poisson(exp(0.2 * (<mean>))) T[1, ]; }", "bit[n] ~ bernoulli_logit(<mean>);", "<term> <term>",
    ),
    # vectors of a row
    "vector": ("beta", "means[g[n]]", "beta * x[n]", "beta + v * z[n]", "means[g[n]] + beta .* rows[n]", "X[n]' * a", "rep_vector(<mean>, K)", "LS * (v + X[n]')", "uv[g[n]]'", "centred(rows[n], b) + v", "centres[n] * c"),
    "covariance": ("multiply_lower_tri_self_transpose(LS)", "quad_form_diag(multiply_lower_tri_self_transpose(L), 0.5 + scales)", "add_diag(square(a) * identity_matrix(K), 1 + s)"),
    "row_term": (
        "rows[n] ~ multi_normal_cholesky(<vector>, LS);", "rows[n] ~ multi_normal(<vector>, <covariance>);", "X[n] ~ multi_normal(<vector>, <covariance>);", "rows[n] ~ multi_student_t(3 + phi, <vector>, <covariance>);",
        "{ vector[K] r = rows[n] - (<vector>); for (k in 1:K) { for (i in k:K) r[k] += 0.1 * L[i, k] * X[n, i]; } target += -0.5 * dot_self(r) / square(s); }",
        "{ vector[K] r = mdivide_left_tri_low(LS, rows[n] - (<vector>)); target += -0.5 * dot_self(r) - sum(log(diagonal(LS))); }",
        "target += -0.5 * quad_form(<covariance>, rows[n] - (<vector>));", "if (<test>) { <row_term> } else { <term> }", "{ vector[K] mu = <vector>; if (<test>) mu[h[n]] += <mean>; rows[n] ~ normal(mu, s); }",
        "h[n] ~ categorical_logit(<vector>);", "h[n] ~ categorical_logit_glm(X[n], v, uv' * rep_matrix(1.0 / J, J, K));", "{ vector[K] lps = <vector>; for (k in 1:K) { if (k > h[n]) break; lps[k] += <lp>; } target += log_sum_exp(lps); }",
        "{ vector[K] eta = beta; for (k in 1:K) { if (X[n, k] > 0) eta[k] += b; eta[k] += c * x[n]; } target += -dot_self(eta - rows[n]); }", "{ vector[K] eta = v; for (k in 1:K) { if (<test>) eta[k] -= <mean>; } for (k in 1:K) { target += bernoulli_logit_lpmf(bit[n] | eta[k]); } }",
        "{ int k = 1; while (k < h[n]) { target += normal_lpdf(X[n, k] | v[k], s); k += 1; } }", "for (k in h[n]:K) { for (i in k + 1:K) { target += normal_lpdf(X[n, k] | beta[i] * X[n, i], s); } }",
        "if (<test>) continue; <term>", "if (n > 5 && <test>) break; <term>",
    ),
    # predictors that statements fill one after the other
    "fill": (
        "for (n in 1:N) eta[n] += <mean>;", "eta += X * beta;", "for (k in 1:K) eta += X[:, k] * beta[k];", "eta += <vectors>;", "eta += rows_dot_product(uv[g], X);", "for (n in 2:N) eta[n] += 0.1 * eta[n - 1];",
        "for (n in 1:N) { for (k in 1:K) eta[n] += X[n, k] * v[k]; }", "for (n in 1:N) { if (<test>) eta[n] += <mean>; }", "for (j in 1:J) { for (n in first[j]:last[j]) eta[n] += u[j] * x[n]; }",
        "for (n in 1:N) eta[N - n + 1] -= b * z[n];", "eta = eta .* (1 + 0.1 * w);", "for (j in 1:J) eta[first[j]] = u[j];", "for (n in 1:N) eta[n] = <mean>;", "eta = <vectors>;", "for (n in 1:N) { real m = 0; for (k in 1:h[n]) m += X[n, k] * beta[k]; eta[n] += m; }",
        "{ matrix[N, K] P = X * LS; for (n in 1:N) eta[n] += P[n, h[n]]; }", "{ array[N] vector[K] P; for (n in 1:N) P[n] = LS * rows[n]; for (n in 1:N) eta[n] += sum(P[n]); }", "eta += (rep_matrix(beta', N) + X)[, 1];",
    ),
    "used": ("y ~ normal(eta, s);", "bit ~ bernoulli_logit(eta);", "count ~ poisson_log(0.2 * eta);", "for (n in 1:N) { target += <test> ? normal_lpdf(y[n] | eta[n], s) : logistic_lpdf(y[n] | eta[n], s); }", "target += -0.5 * dot_self(eta - y);", "for (n in 1:N) y[n] ~ normal(eta[n], 1 + <scale>);"),
    "vectors": ("a + b * x", "a + u[g]", "u[g] + v[h] .* x", "X * beta", "a + X * beta", "a + b * x + u[g]", "a + X[:, 1] * c + v[h]", "b * (x .* z) + a"),
    # what goes from iteration to iteration
    "carried": ("real kept = 0; int times = 0;", "real kept = a; int times = 1;", "real kept = 1; int times = 0;"),
    "carry": (
        "kept += x[n];", "kept = 0.5 * kept + z[n];", "kept = y[n];", "times += 2;", "times += bit[n];", "kept += b; times += 1;", "if (<test>) { kept += x[n]; times += 1; }",
        "kept = bit[n] ? x[n] : kept;", "times = h[n];",
    ),
    "carry_ahead": ("kept += b;", "times += 2;", "kept = 0.5 * kept + j;", "kept += u[j];"),
    "carried_term": (
        "target += normal_lpdf(y[n] | a * kept + b * times, s);", "target += normal_lpdf(y[n] | <mean> + 0.1 * c * times, <scale>);", "target += -square(b * kept - <real>);",
        "target += bernoulli_logit_lpmf(bit[n] | a * kept + 0.01 * times);", "if (<test>) { target += poisson_log_lpmf(count[n] | 0.1 * (a + kept / (1 + times))); }",
        "target += times * <lp>;", "target += <lp> + kept;",
    ),
    "statement": (
        "for (n in 1:N) { <term> }", "for (n in 1:N) { <term> }", "for (n in 1:N) { <term> }", "for (n in 1:N) { <term> }", "y ~ normal(<vectors>, s);", "y ~ normal(<vectors>, s + w);",
        "y ~ student_t(4, <vectors>, s);", "{ vector[N] mu = <vectors>; for (n in 1:N) { if (<test>) mu[n] += <mean>; } for (n in 1:N) { if (<test>) mu[n] += <mean>; else if (<test>) mu[n] -= b; } <filled> }", "{ vector[N] mu; for (n in 1:N) { if (<test>) mu[n] = <mean>; else mu[n] = a; } for (n in 1:N) if (<test>) mu[n] *= 2; <filled> <filled> }",
        "y ~ normal(append_col(rep_vector(1, N), X) * append_row(a, beta), s);", "bit ~ bernoulli_logit(append_col(X, x) * append_row(beta, b));", "target += sum(to_vector(bit) .* (<vectors>)) - dot_product(exp(0.1 * (<vectors>)), time .^ phi);", "bit ~ bernoulli_logit(<vectors>);", "count ~ poisson_log(0.3 * (<vectors>));", "y ~ normal_id_glm(X, a, beta, s);", "bit ~ bernoulli_logit_glm(X, u[g], beta);",
        "count ~ poisson_log_glm(0.3 * X, a, beta);", "target += poisson_log_glm_lpmf(count | 0.3 * X, 0.3 * u[g], beta);", "target += binomial_logit_lpmf(count | count, a + X * beta);", "{ vector[N] mu = <vectors>; for (n in 1:N) { if (<test>) { mu[n] += <mean>; } } y ~ normal(mu, s); }",
        "{ vector[N] mu; for (n in 1:N) { mu[n] = <mean>; } for (n in 1:N) { target += <test> ? normal_lpdf(y[n] | mu[n], s) : logistic_lpdf(y[n] | mu[n], s); } }",
        "{ vector[N] m1 = <vectors>; vector[N] m2 = m1 + m1 .* x; vector[N] m3; for (n in 1:N) { m3[n] = m2[n] - m2[n] * z[n]; } y ~ normal(m3 + m2, s); }",
        "{ vector[N] m1; for (n in 1:N) { m1[n] = <mean>; } vector[N] m2 = m1 - z; vector[N] m3 = 2 * m2 + x; bit ~ bernoulli_logit(m3); }",
        "{ vector[N] lp; for (n in 1:N) { lp[n] = <lp>; } target += dot_product(w, lp); }", "for (n in 1:N) { for (k in 1:K) { target += <test> ? normal_lpdf(X[n, k] | a + beta[k], s) : cauchy_lpdf(X[n, k] | v[k], s); } }",
        "for (n in 2:N) { target += normal_lpdf(y[n] | a + p * y[n - 1], s); }", "for (n in 2:N) { target += <test> ? normal_lpdf(y[n] | p * y[n - 1], s) : <lp>; }", "for (n in 2:N) { if (g[n] == g[n - 1]) { y[n] ~ normal(u[g[n]] + p * y[n - 1], s); } }", "for (n in 1:N) { if (<test>) { y[n] ~ normal(<mean>, s); } }",
        "target += -0.5 * dot_self(y - (<vectors>)) / square(s) - N * log(s);", "for (n in 1:N) { h[n] ~ categorical_logit(beta + v * x[n]); }", "for (n in 1:N) { target += w[n] * categorical_logit_lpmf(h[n] | beta * x[n]); }",
        "profile(\"rows\") { for (n in 1:N) { <term> } }",
        "{ vector[N] eta = rep_vector(a, N); <fill> <used> }", "{ vector[N] eta = a + 0.1 * e; <fill> <fill> <used> }", "{ vector[N] eta = rep_vector(0, N); <fill> <fill> <fill> <used> <used> }",
        "{ matrix[N, K] P = rep_matrix(beta', N) + X * LS'; for (n in 1:N) { <term> X[n] ~ normal(P[n], s); } }", "{ array[N] vector[K] P; for (n in 1:N) P[n] = beta + LS * X[n]'; for (n in 1:N) rows[n] ~ normal(P[n], s); for (n in 1:N) h[n] ~ categorical_logit(P[n]); }",
        "for (n in 1:N) { <row_term> }", "for (n in 1:N) { <row_term> }", "for (n in 1:N) { <row_term> <term> }", "rows ~ multi_normal_cholesky(beta, LS);", "rows ~ multi_normal(means[g], <covariance>);",
        "{ array[N] vector[K] mu; for (n in 1:N) { mu[n] = <vector>; } rows ~ multi_normal_cholesky(mu, LS); }", "e ~ normal(<vectors>, s); y ~ normal(e, 1 + phi);",
        "{ vector[3] state = log(mix); for (n in 1:N) { vector[3] next; for (k in 1:3) { next[k] = log_sum_exp(state + log(mix)) + normal_lpdf(y[n] | three[k], s); } state = next; } target += log_sum_exp(state); }",
        "{ matrix[N, 2] Z = append_col(x, z); matrix[J, 2] ab = append_col(u, to_vector(means[, 1]) * b); y ~ normal(rows_dot_product(ab[g], Z) + <vectors>, s); }", "{ matrix[J, 2] ab = append_col(u, 0.5 * u); vector[N] mu = rows_dot_product(ab[g], append_col(rep_vector(1, N), x)); <filled> }",
        "{ vector[K + 1] theta; for (n in 1:N) { theta[1] = <mean>; for (k in 2:K) theta[k] = beta[k] * x[n]; theta[K + 1] = b; target += log_sum_exp(theta); } }",
        "{ vector[K + 1] theta = rep_vector(a, K + 1); for (n in 1:N) { theta[1] = <mean>; for (k in 2:K) theta[k] = 0.5 * theta[k + 1] + x[n]; theta[K + 1] = 0.5 * theta[1]; target += -0.1 * dot_self(theta); } }",
        "{ vector[K + 1] theta = rep_vector(a, K + 1); for (n in 1:N) { for (k in 1:K) theta[k] = beta[k] * x[n]; if (<test>) theta[K + 1] = <mean>; target += -0.1 * dot_self(theta); } }",
        "{ matrix[N, K] eta = X * diag_matrix(beta); for (n in 1:N) { target += <lp> + eta[n, h[n]]; } }", "{ vector[N] lp; for (n in 1:N) { lp[N - n + 1] = <lp>; } target += sum(lp) + log_sum_exp(lp); }",
        "{ real sd = 1; for (n in 2:N) { sd = sqrt(0.1 + p * square(sd) + 0.1 * square(y[n - 1])); target += normal_lpdf(y[n] | <mean>, sd); } }",
        "if (N > 0) { matrix[min(N, 8), min(N, 8)] C = gp_exp_quad_cov(to_array_1d(x[1:min(N, 8)]), 1 + phi, 0.5 + s); y[1:min(N, 8)] ~ multi_normal(rep_vector(a, min(N, 8)), add_diag(C, 0.5)); }",
        "for (j in 1:J) { means[j] ~ multi_normal_cholesky(beta, LS); target += chain(count, first[j], last[j], u[j]); }",
        "{ array[M + 1] int seen = rep_array(0, M + 1); for (n in 1:N) { seen[1 + count[n]] += 1; } for (m in 0:M) { target += seen[m + 1] * poisson_log_lpmf(m | 0.3 * a + 0.01 * b * m); } }",
        "for (j in 1:J) { <carried> for (n in 1:N) { <carry> <carried_term> } }", "for (j in 1:J) { <carried> for (n in 1:N) { <carried_term> <carry> } }",
        "{ <carried> for (j in 1:J) { <carry_ahead> for (n in 1:N) { <carried_term> } } }", "{ <carried> for (n in 1:N) { <carry> <carried_term> } }", "{ <carried> for (n in 1:N) { <carried_term> <carry> } }",
        "for (n in 1:N) { <carried> for (k in 1:K) { kept += X[n, k]; times += k; <carried_term> } }",
        # rows of groups
        "for (j in 1:J) { for (n in first[j]:last[j]) { <term> } }", "for (j in 1:J) { for (n in first[j]:last[j]) { <ragged> } }", "for (j in 1:J) { for (n in first[j]:last[j]) { <ragged> } }",
        "for (j in 1:J) { if (first[j] <= last[j]) { u[j] ~ normal(b, s); for (n in first[j]:last[j]) { <ragged> } } }", "for (j in 1:J) { real lp = 0; for (n in first[j]:last[j]) { lp += <lp>; } target += w[first[j]] * lp; }",
        "for (j in 1:J) { y[first[j]:last[j]] ~ normal(u[j] + b * x[first[j]:last[j]], s); }", "for (j in 1:J) { bit[first[j]:last[j]] ~ bernoulli_logit(u[j] + a); }",
        "for (j in 1:J) { count[first[j]:last[j]] ~ poisson_log_glm(0.3 * X[first[j]:last[j]], u[j], beta); }", "for (j in 1:J) { count[first[j]:last[j]] ~ neg_binomial_2_log_glm(X[first[j]:last[j]], u[j], 0.2 * beta, 0.5 + phi); }",
        "{ int at = 1; for (j in 1:J) { int m = min(N - at + 1, max(0, last[j] - first[j] + 1)); segment(y, at, m) ~ normal(u[j] + X[at:(at + m - 1), 1] * c, s); at += m; } }",
        "for (k in 1:K) { for (j in k:min(J, k + 3)) { for (n in first[j]:last[j]) { target += normal_lpdf(y[n] | u[j] + v[k], s); } } }",
        "for (j in 1:J) { y[first[j]:last[j]] ~ normal(u[j] + X[first[j]:last[j]] * beta, s); }",
        "for (j in 1:J) { int m = max(0, last[j] - first[j] + 1); vector[m] mu = a + X[first[j]:last[j]] * beta; y[first[j]:last[j]] ~ normal(mu + u[j], s); }",
        "{ vector[N] mu; for (j in 1:J) { mu[first[j]:last[j]] = u[j] + b * x[first[j]:last[j]]; } <filled> }",
        "{ vector[N] mu = <vectors>; for (j in 1:J) { for (n in first[j]:last[j]) { mu[n] = u[j] + a * x[n]; } } <filled> }",
        # outcomes in a matrix
        "for (n in 1:N) { for (k in 1:K) { <cell> } }", "for (k in 1:K) { for (n in 1:N) { <cell> } }", "for (n in 1:N) { X[n] ~ normal(<mean>, s); }",
        "for (k in 1:K) { X[:, k] ~ normal(v[k] + b * x, s); }", "to_vector(X) ~ normal(to_vector(rep_matrix(v', N) + b * rep_matrix(x, K)), s);",
        "{ matrix[N, K] mu; for (n in 1:N) { for (k in 1:K) { mu[n, k] = v[k] + <mean>; } } to_vector(X) ~ student_t(4, to_vector(mu), s); }",
    ),
    "filled": ("y ~ normal(mu, s);", "count ~ poisson_log(0.3 * mu);", "for (n in 1:N) { target += normal_lpdf(y[n] | mu[n], s); }", "bit ~ bernoulli_logit(mu);"),
    "cell": (
        "X[n, k] ~ normal(v[k] + b * x[n], s);", "X[n, k] ~ normal(<mean> + v[k], s);", "X[n, k] ~ cauchy(v[k] + <mean>, s);", "bit[n] ~ bernoulli_logit(v[k] + 0.1 * X[n, k]);",
        "count[n] ~ poisson_log(0.1 * (v[k] + u[g[n]]));", "if (<test>) { X[n, k] ~ normal(<mean>, s); } else { X[n, k] ~ normal(v[k], s); }",
    ),
    "ragged": (
        "y[n] ~ normal(u[j] + b * x[n], s);", "y[n] ~ normal(u[j] + a * (n - first[j]), s);", "bit[n] ~ bernoulli_logit(u[j]);", "bit[n] ~ bernoulli_logit(u[j] + v[h[n]]);", "target += w[n] * poisson_log_lpmf(count[n] | u[j]);",
        "if (<test>) { count[n] ~ poisson_log(0.3 * u[j]); } else { bit[n] ~ bernoulli_logit(v[h[n]]); }", "target += -0.5 * square(z[n] - u[j] - X[n] * beta) / square(s);", "y[n] ~ student_t(4, u[j] + <mean>, <scale>);",
        "count[n] ~ neg_binomial_2_log(u[j] + b * x[n], 0.5 + phi);",
    ),
}  # fmt: skip
_MARK = re.compile(r"<(\w+)>")


def row_program(seed: int) -> str:
    """A program; always the same for a seed."""
    rng = random.Random(seed)

    def fill(text: str, depth: int) -> str:
        def put_in(match: re.Match[str]) -> str:
            forms = _FORMS[match[1]]
            if depth > 4 and match[1] == "term":
                return "target += " + fill("<lp>", depth) + ";"
            return fill(rng.choice(forms), depth + 1)

        return _MARK.sub(put_in, text)

    statements = [fill("<statement>", 0) for _ in range(rng.choice((1, 1, 2, 3)))]
    return _HEAD + _PRIORS + "".join(f"  {text}\n" for text in statements) + "}\n"


def some_reals(
    rng: np.random.Generator,
    shape: tuple[int, ...],
    few: bool,
    shares: tuple[float, float, float, float],
    far: float,
    odd: Sequence[float],
) -> np.ndarray[Any, Any]:
    """Numbers, perhaps of `few` kinds: up to each of the shares, in this order, all the same, `far` from 0, mostly 0,
    with one that is `odd`."""
    found = rng.integers(-2, 3, shape) * 0.5 if few or rng.random() < 0.3 else rng.standard_normal(shape)
    kind = rng.random()
    if kind < shares[0]:
        found = np.full(shape, float(rng.choice([0.0, 1.0, -0.0])))
    elif kind < shares[1]:
        found = found + far
    elif kind < shares[2]:
        found = np.where(rng.random(shape) < 0.7, 0.0, found)
    elif kind < shares[3] and found.size:
        found = found.astype(float)
        found.flat[int(rng.integers(found.size))] = float(rng.choice(odd))
    return np.asarray(found, float)


def row_data(seed: int) -> dict[str, Any]:
    """Data for such a program: of a few kinds of rows or of many, some with special values."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([0, 1, 7, 150, 400, 700]))
    j, k = int(rng.choice([1, 3, 12, 60])), int(rng.integers(1, 4))
    few = rng.random() < 0.5

    def reals(*shape: int) -> np.ndarray[Any, Any]:
        return some_reals(rng, shape, few, (0.06, 0.12, 0.2, 0.24), 1e6, (np.nan, np.inf, -np.inf, 1e300))

    g, h = rng.integers(1, j + 1, n), rng.integers(1, k + 1, n)
    if rng.random() < 0.3:
        g = np.sort(g)
    if rng.random() < 0.3 and j > 1:
        g = np.where(g == 2, 1, g)  # an empty group
    count = rng.poisson(2, n)
    last = np.sort(rng.integers(0, n + 1, j))
    first = np.concatenate(([1], last[:-1] + 1)) + (rng.integers(-1, 2, j) if rng.random() < 0.4 else 0)
    first = np.clip(first, 1, max(n, 1))  # overlaps, gaps, empty groups
    return {
        "N": n, "J": j, "K": k, "g": g, "h": h, "code": rng.integers(0, 3, n) if rng.random() < 0.9 else np.ones(n, int),
        "bit": rng.integers(0, 2, n), "count": count, "trials": count + rng.integers(0, 3, n), "x": reals(n), "z": reals(n),
        "y": reals(n), "time": np.abs(np.nan_to_num(reals(n), posinf=1.0, neginf=1.0)), "X": reals(n, k), "rows": reals(n, k),
        "first": first, "last": last, "w": np.abs(np.nan_to_num(reals(n), posinf=1.0, neginf=1.0)),
    }  # fmt: skip
