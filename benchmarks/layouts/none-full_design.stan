// Every column of the design is full but for a tenth of its rows.
// expect: none
// data: N = 20000; K = 20; X = normal(N, K) * (rng.random((N, K)) < 0.9); deaths = counts(N, 1)
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  array[N] int<lower=0> deaths;
}
parameters {
  real base;
  vector[K] slope;
}
model {
  base ~ normal(0, 2);
  slope ~ normal(0, 0.5);
  deaths ~ poisson_log(base + X * slope);
}
