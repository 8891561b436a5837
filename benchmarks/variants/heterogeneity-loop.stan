// posterior: Mh_data-Mh_model
data {
  int<lower=0> M;
  int<lower=0> T;
  array[M] int<lower=0, upper=T> y;
}
parameters {
  real<lower=0, upper=1> omega;
  real<lower=0, upper=1> mean_p;
  real<lower=0, upper=5> sigma;
  vector[M] eps_raw;
}
model {
  for (i in 1:M) {
    real eps = logit(mean_p) + sigma * eps_raw[i];
    eps_raw[i] ~ normal(0, 1);
    if (y[i] > 0)
      target += bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(y[i] | T, eps);
    else
      target += log_sum_exp(bernoulli_lpmf(1 | omega) + binomial_logit_lpmf(0 | T, eps), bernoulli_lpmf(0 | omega));
  }
}
