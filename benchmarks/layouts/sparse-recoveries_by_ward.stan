// A logistic regression row by row, of wards and treatments that few patients had.
// expect: sparse columns
// data: N = 15000; K = 150; Z = np.hstack([np.eye(100)[index(N, 100) - 1], (rng.random((N, 50)) < 0.03) * normal(N, 50)]); well = bits(N)
// other: well ~ bernoulli_logit(base + Z * gain); base ~ normal(0, 2); gain ~ double_exponential(0, 0.5);
// bind: K = 30; Z = np.hstack([np.eye(20)[index(N, 20) - 1], (rng.random((N, 10)) < 0.03) * normal(N, 10)])
data {
  int<lower=0> N, K;
  matrix[N, K] Z;
  array[N] int<lower=0, upper=1> well;
}
parameters {
  real base;
  vector[K] gain;
}
model {
  base ~ normal(0, 2);
  gain ~ double_exponential(0, 0.5);
  for (n in 1 : N) {
    well[n] ~ bernoulli_logit(base + dot_product(Z[n], gain));
  }
}
