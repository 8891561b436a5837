data {
  int<lower=0> N;
  vector[N] x;
  array[N] int<lower=0> k;
}
parameters {
  real slope;
  real<lower=0> phi;
}
model {
  vector[N] rate = 1 + slope * x;
  slope ~ normal(0, 1);
  for (n in 1:N) {
    real eta = log(rate[n]);
    k[n] ~ neg_binomial_2_log(eta, phi);
  }
}
