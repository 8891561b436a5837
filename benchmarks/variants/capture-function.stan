// posterior: Mt_data-Mt_model
functions { real row(array[] int y, vector p, real w) {
  real l = bernoulli_lpmf(1 | w);
  for (t in 1:size(y)) l += y[t] == 1 ? log(p[t]) : log1m(p[t]);
  return sum(y) > 0 ? l : log_sum_exp(l, bernoulli_lpmf(0 | w)); } }
data { int<lower=0> M; int<lower=0> T; array[M, T] int<lower=0, upper=1> y; }
parameters { real<lower=0, upper=1> w; vector<lower=0, upper=1>[T] p; }
model { for (i in 1:M) target += row(y[i], p, w); p ~ uniform(0, 1); }
