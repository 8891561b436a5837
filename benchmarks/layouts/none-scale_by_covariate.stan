// Standard deviations depend on a covariate and on parameters: squares have weights that are no data.
// expect: none
// data: N = 2000; x = normal(N); y = normal(N)
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real a;
  real b;
  real c;
}
model {
  y ~ normal(a + b * x, exp(c * x));
}
