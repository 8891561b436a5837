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
  vector[M] z;
}
transformed parameters {
  vector[M] eps = logit(mean_p) + sigma * z;
}
model {
  real t = 0;
  for (i in 1:M) {
    real b = binomial_logit_lpmf(y[i] | T, eps[i]) + log(omega);
    if (y[i] == 0) {
      b = log_sum_exp(b, log1m(omega));
    }
    t = t + b;
  }
  target += t;
  z ~ normal(0, 1);
  sigma ~ normal(0, 2);
}
