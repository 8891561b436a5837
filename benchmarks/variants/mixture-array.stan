// posterior: low_dim_gauss_mix-low_dim_gauss_mix
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  ordered[2] mu;
  array[2] real<lower=0> sigma;
  real<lower=0, upper=1> theta;
}
model {
  theta ~ beta(5, 5);
  mu ~ normal(0, 2);
  sigma ~ lognormal(0, 2);
  for (n in 1:N) {
    vector[2] terms = log([theta, 1 - theta]');
    for (k in 1:2) terms[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(terms);
  }
}
