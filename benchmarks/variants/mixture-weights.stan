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
transformed parameters {
  vector[2] w;
  w[1] = log(theta);
  w[2] = log1m(theta);
}
model {
  sigma ~ normal(0, 2);
  mu ~ normal(0, 2);
  theta ~ beta(5, 5);
  for (n in 1:N) {
    vector[2] l = w;
    for (k in 1:2) l[k] += normal_lpdf(y[n] | mu[k], sigma[k]);
    target += log_sum_exp(l);
  }
}
