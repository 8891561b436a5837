// Patients ward by ward, found by slices of a design and of the outcome.
// expect: reduced rows
// data: N = 20000; J = 200; K = 6; ward = np.sort(index(N, J)); last = np.cumsum(np.bincount(ward - 1, minlength=J)); first = np.concatenate([[1], last[:-1] + 1]); X = normal(N, K); stay = normal(N)
// bind: J = max(1, N // 100)
// other: stay ~ normal(X * beta + of_ward[ward], noise); beta ~ normal(0, 1); of_ward ~ normal(mean_stay, spread); spread ~ exponential(1); noise ~ exponential(1);
data {
  int<lower=0> N, J, K;
  array[N] int<lower=1, upper=J> ward;
  array[J] int first, last;
  matrix[N, K] X;
  vector[N] stay;
}
parameters {
  real mean_stay;
  vector[K] beta;
  vector[J] of_ward;
  real<lower=0> spread, noise;
}
model {
  beta ~ normal(0, 1);
  spread ~ exponential(1);
  noise ~ exponential(1);
  of_ward ~ normal(mean_stay, spread);
  for (j in 1 : J) {
    stay[first[j] : last[j]] ~ normal(of_ward[j] + X[first[j] : last[j]] * beta, noise);
  }
}
