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
  for (n in 1:N)
    target += log_sum_exp(normal_lpdf(y[n] | mu[1], sigma[1]) + log(theta), normal_lpdf(y[n] | mu[2], sigma[2]) + log1m(theta));
  theta ~ beta(5, 5);
  mu ~ normal(0, 2);
  sigma ~ normal(0, 2);
}
