// Every row sums up its products one by one.
// expect: sparse columns
// data: N = 8000; K = 60; variety = index(N, K); X = np.eye(60)[variety - 1] * (1 + rng.random((N, 1))); rain = normal(N); good = bits(N)
// other: beta ~ normal(0, tau); g ~ normal(0, 1); tau ~ exponential(1); good ~ bernoulli_logit(X * beta + g * rain);
data {
  int N; int K;
  matrix[N, K] X;
  vector[N] rain;
  array[N] int<lower=0, upper=1> good;
}
parameters {
  vector[K] beta;
  real g;
  real<lower=0> tau;
}
model {
  beta ~ normal(0, tau);
  g ~ normal(0, 1);
  tau ~ exponential(1);
  for (n in 1:N) {
    real eta = g * rain[n];
    for (k in 1:K)
      eta += X[n, k] * beta[k];
    target += bernoulli_logit_lpmf(good[n] | eta);
  }
}
