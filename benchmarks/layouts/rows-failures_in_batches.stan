// Failures of batches of many sizes at few temperatures: what counts is how many of how many there are at each.
// expect: unique rows
// data: N = 6000; heat = np.array([20.0, 35.0, 50.0, 65.0, 80.0])[index(N, 5) - 1]; size = rng.integers(30, 600, N); failed = rng.binomial(size, 0.1)
// other: level ~ normal(0, 5); slope ~ normal(0, 1); for (n in 1 : N) target += binomial_logit_lpmf(failed[n] | size[n], level + slope * (heat[n] - 50) / 10);
data {
  int<lower=0> N;
  vector[N] heat;
  array[N] int<lower=1> size;
  array[N] int<lower=0> failed;
}
parameters {
  real level, slope;
}
model {
  level ~ normal(0, 5);
  slope ~ normal(0, 1);
  failed ~ binomial_logit(size, level + slope * (heat - 50) / 10);
}
