// Indicators of clinics and months beside a baseline and two measurements, written as one design.
// expect: sparse columns
// data: N = 20000; J = 60; M = 12; K = J + M + 3; X = np.hstack([np.ones((N, 1)), normal(N, 2), np.eye(J)[index(N, J) - 1], np.eye(M)[index(N, M) - 1]]); visits = counts(N, 2)
// other: for (n in 1 : N) visits[n] ~ neg_binomial_2_log(X[n] * effect * scale, phi); scale ~ exponential(1); phi ~ gamma(2, 0.5); effect ~ normal(0, 1);
// bind: J = 20; M = 6
data {
  int<lower=0> N, K;
  matrix[N, K] X;
  array[N] int<lower=0> visits;
}
parameters {
  vector[K] effect;
  real<lower=0> scale, phi;
}
model {
  scale ~ exponential(1);
  phi ~ gamma(2, 0.5);
  effect ~ normal(0, 1);
  visits ~ neg_binomial_2_log(X * (scale * effect), phi);
}
