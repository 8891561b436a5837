// Indicators, but what multiplies the coefficients is data times a weight of each row that is a parameter.
// expect: none
// data: N = 4000; K = 30; X = np.eye(K)[index(N, K) - 1]; events = counts(N, 1)
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  array[N] int<lower=0> events;
}
parameters {
  vector[K] slope;
  vector[N] weight;
}
model {
  slope ~ normal(0, 1);
  weight ~ normal(1, 0.1);
  events ~ poisson_log(diag_pre_multiply(weight, X) * slope);
}
