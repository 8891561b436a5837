// posterior: Mt_data-Mt_model
data { int M; int T; array[M, T] int<lower=0, upper=1> y; }
transformed data { array[M] int s; for (i in 1:M) s[i] = sum(y[i]); }
parameters { real<lower=0, upper=1> omega; vector<lower=0, upper=1>[T] p; }
model {
  vector[M * T] ll;
  for (i in 1:M) for (j in 1:T) ll[(i - 1) * T + j] = bernoulli_lpmf(y[i, j] | p[j]);
  for (i in 1:M) {
    real l = sum(ll[((i - 1) * T + 1):(i * T)]);
    if (s[i] > 0) target += log(omega) + l;
    else target += log_sum_exp(log(omega) + l, log1m(omega));
  }
}
