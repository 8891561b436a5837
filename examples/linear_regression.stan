// Stopping distance of cars by speed: a straight line with normal errors.
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
  y ~ normal(alpha + beta * x, sigma);
}
