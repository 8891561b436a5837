// expect: unique rows
// data: J = 250; n = rng.poisson(70, J); N = int(n.sum()); last = np.cumsum(n); first = last - n + 1; auction = np.repeat(np.arange(1, J + 1), n); bids = counts(N, 4); price = normal(N)
// other: for (k in 1 : N) bids[k] ~ neg_binomial_2_log(heat[auction[k]] + slope * price[k], shape); heat ~ normal(1, 1); slope ~ normal(0, 1); shape ~ exponential(1);
data {
  int J;
  array[J] int n;
  int N;
  array[J] int last;
  array[J] int first;
  array[N] int auction;
  array[N] int<lower=0> bids;
  vector[N] price;
}
parameters {
  vector[J] heat;
  real slope;
  real<lower=0> shape;
}
model {
  for (j in 1 : J) for (k in first[j] : last[j]) bids[k] ~ neg_binomial_2_log(heat[j] + slope * price[k], shape);
  heat ~ normal(1, 1);
  slope ~ normal(0, 1);
  shape ~ exponential(1);
}
