// An intercept and slopes, of which other programs make one vector, and of data rows that begin with 1.
// expect: reduced rows
// data: N = 4000; K = 16; X = normal(N, K); y = normal(N)
// other: for (n in 1 : N) y[n] ~ normal(append_col(1, X[n]) * append_row(a, b), noise); b ~ normal(0, 1); noise ~ exponential(1);
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  vector[N] y;
}
parameters {
  real a;
  vector[K] b;
  real<lower=0> noise;
}
model {
  b ~ normal(0, 1);
  noise ~ exponential(1);
  y ~ normal(a + X * b, noise);
}
