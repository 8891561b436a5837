// A scale for every four measurements: rows of a kind are hardly more than those that are left of it.
// expect: none
// data: J = 500; N = 4 * J; item = np.repeat(np.arange(1, J + 1), 4); size = normal(N)
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> item;
  vector[N] size;
}
parameters {
  real mean_size;
  vector<lower=0>[J] spread;
}
model {
  mean_size ~ normal(0, 5);
  spread ~ gamma(2, 2);
  size ~ normal(mean_size, spread[item]);
}
