// examples/linear_regression.stan, an observation at a time.
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real alpha;
  real beta;
  real<lower=0> sigma;
}
model {
  sigma ~ exponential(0.1);
  for (n in 1:N) {
    target += normal_lpdf(y[n] | alpha + beta * x[n], sigma);
  }
}
