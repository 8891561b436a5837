// posterior: Mth_data-Mth_model
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M, T] int<lower=0, upper=1> y;
}
transformed data {
  array[M] int s;
  for (i in 1:M) s[i] = sum(y[i]);
}
parameters {
  real<lower=0, upper=1> omega;
  array[T] real<lower=0, upper=1> mean_p;
  real<lower=0, upper=5> sigma;
  vector[M] eps_raw;
}
transformed parameters {
  vector[T] mean_lp = to_vector(logit(mean_p));
}
model {
  eps_raw ~ normal(0, 1);
  for (i in 1:M) {
    real seen = 0;
    for (t in 1:T) seen += bernoulli_logit_lpmf(y[i, t] | mean_lp[t] + sigma * eps_raw[i]);
    if (s[i] > 0)
      target += bernoulli_lpmf(1 | omega) + seen;
    else
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + seen, bernoulli_lpmf(0 | omega));
  }
}
