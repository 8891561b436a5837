// As many coefficients as rows: reduced rows would be as many.
// expect: none
// data: N = 60; K = 80; X = normal(N, K); y = normal(N)
data {
  int<lower=0> N;
  int<lower=0> K;
  matrix[N, K] X;
  vector[N] y;
}
parameters {
  vector[K] b;
  real<lower=0> s;
}
model {
  b ~ double_exponential(0, 1);
  y ~ normal(X * b, s);
}
