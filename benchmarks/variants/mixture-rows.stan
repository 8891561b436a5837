// posterior: low_dim_gauss_mix-low_dim_gauss_mix
data {
  int N;
  vector[N] y;
}
parameters {
  ordered[2] mu;
  array[2] real<lower=0> sigma;
  real<lower=0, upper=1> theta;
}
model {
  matrix[N, 2] l;
  sigma ~ normal(0, 2);
  mu ~ normal(0, 2);
  theta ~ beta(5, 5);
  for (n in 1:N) {
    l[n, 1] = log(theta) + normal_lpdf(y[n] | mu[1], sigma[1]);
    l[n, 2] = log1m(theta) + normal_lpdf(y[n] | mu[2], sigma[2]);
  }
  for (n in 1:N) target += log_sum_exp(l[n]);
}
