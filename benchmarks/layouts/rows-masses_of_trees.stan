// Masses of trees, with a shape and a scale for each stand: a mean and a mean of logarithms are all that counts.
// expect: unique rows
// data: N = 9000; J = 120; stand = np.sort(index(N, J)); mass = rng.gamma(2.0, 1.0, N)
// other: shape ~ gamma(2, 1); log_scale ~ normal(0, 1); mass ~ gamma(shape[stand], exp(log_scale[stand]));
data {
  int N;
  int J;
  array[N] int<lower=1, upper=J> stand;
  vector<lower=0>[N] mass;
}
parameters {
  vector<lower=0>[J] shape;
  vector[J] log_scale;
}
model {
  shape ~ gamma(2, 1);
  log_scale ~ normal(0, 1);
  for (i in 1 : N) {
    mass[i] ~ gamma(shape[stand[i]], exp(log_scale[stand[i]]));
  }
}
