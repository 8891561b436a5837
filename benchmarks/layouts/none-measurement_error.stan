// The covariate is a parameter itself: the design changes.
// expect: none
// data: N = 500; seen = normal(N); y = normal(N)
data {
  int<lower=0> N;
  vector[N] seen;
  vector[N] y;
}
parameters {
  vector[N] x;
  real a;
  real b;
  real<lower=0> s;
}
model {
  x ~ normal(seen, 0.5);
  y ~ normal(a + b * x, s);
}
