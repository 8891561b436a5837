// expect: reduced rows
// data: J = 400; n = rng.poisson(40, J); N = int(n.sum()); last = np.cumsum(n); first = last - n + 1; litter = np.repeat(np.arange(1, J + 1), n); age = normal(N); weight = 3 + age + normal(N)
// other: for (k in 1 : N) weight[k] ~ normal(level[litter[k]] + age[k] * slope[litter[k]], spread); level ~ normal(0, 5); slope ~ normal(0, 5); spread ~ exponential(1);
data {
  int J;
  array[J] int n;
  int N;
  array[J] int last;
  array[J] int first;
  array[N] int litter;
  vector[N] age;
  vector[N] weight;
}
parameters {
  vector[J] level;
  vector[J] slope;
  real<lower=0> spread;
}
model {
  for (j in 1 : J) {
    level[j] ~ normal(0, 5);
    slope[j] ~ normal(0, 5);
    for (k in first[j] : last[j]) weight[k] ~ normal(level[j] + age[k] * slope[j], spread);
  }
  spread ~ exponential(1);
}
