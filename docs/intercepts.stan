data {
  int<lower=0> N;
  int<lower=0> J;
  array[N] int<lower=1, upper=J> group;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[J] a;
  real b;
  real<lower=0> sigma;
}
model {
  vector[N] mu;
  for (n in 1 : N) {
    mu[n] = a[group[n]] + b * x[n];
  }
  y ~ normal(mu, sigma);
}
