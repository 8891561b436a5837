// Indicators of a weekday and of a store, a row for each order in an array of rows.
// expect: sparse columns
// data: N = 12000; K = 37; store = np.eye(K)[7 + rng.integers(0, 30, N)] + np.eye(K)[rng.integers(0, 7, N)]; items = counts(N, 3); weight = normal(N)
// other: effect ~ normal(0, spread); spread ~ exponential(1); vector[N] eta; for (n in 1 : N) { eta[n] = base + of_weight * weight[n]; for (k in 1 : K) eta[n] += store[n, k] * effect[k]; } items ~ neg_binomial_2_log(eta, shape);
data {
  int<lower=0> N, K;
  array[N] row_vector[K] store;
  array[N] int<lower=0> items;
  vector[N] weight;
}
parameters {
  real base, of_weight;
  vector[K] effect;
  real<lower=0> spread, shape;
}
model {
  effect ~ normal(0, spread);
  spread ~ exponential(1);
  for (n in 1 : N) items[n] ~ neg_binomial_2_log(base + of_weight * weight[n] + store[n] * effect, shape);
}
