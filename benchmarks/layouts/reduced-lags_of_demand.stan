// expect: reduced rows
// data: N = 20000; P = 5; demand = normal(N)
// other: for (t in (P + 1) : N) { real mean = base; for (l in 1 : P) mean += lag[l] * demand[t - l]; demand[t] ~ normal(mean, spread); } base ~ normal(0, 1); lag ~ normal(0, 1); spread ~ exponential(1);
data {
  int N;
  int P;
  vector[N] demand;
}
parameters {
  real base;
  vector[P] lag;
  real<lower=0> spread;
}
model {
  for (t in (P + 1) : N) demand[t] ~ normal(base + dot_product(lag, reverse(demand[(t - P) : (t - 1)])), spread);
  base ~ normal(0, 1);
  lag ~ normal(0, 1);
  spread ~ exponential(1);
}
