// A regression whose residuals have a known correlation, as of relatives, and a scale.
// expect: reduced rows
// data: N = 300; K = 4; D = normal(N, K); A = (lambda r: r @ r.T / N + np.eye(N))(normal(N, N)); height = normal(N)
// other: vector[N] mu = rep_vector(level, N); for (k in 1 : K) mu += D[, k] * slope[k]; height ~ multi_normal(mu, A * scale ^ 2); slope ~ normal(0, 1); scale ~ exponential(1); level ~ normal(0, 5);
data {
  int N;
  int K;
  matrix[N, K] D;
  matrix[N, N] A;
  vector[N] height;
}
parameters {
  real level;
  vector[K] slope;
  real<lower=0> scale;
}
model {
  level ~ normal(0, 5);
  slope ~ normal(0, 1);
  scale ~ exponential(1);
  height ~ multi_normal(level + D * slope, square(scale) * A);
}
