// A loop adds up log densities, and errors that are divided by their scale are standard normal.
// expect: reduced rows
// data: N = 8000; K = 5; X = normal(N, K); hours = normal(N); score = normal(N); later = normal(N)
// other: beta ~ normal(0, tau); g ~ normal(0, 1); s ~ exponential(1); tau ~ exponential(1); score ~ normal(X * beta + g * hours, s); later ~ normal(X * beta, tau);
data {
  int N; int K;
  matrix[N, K] X;
  vector[N] hours; vector[N] score; vector[N] later;
}
parameters {
  vector[K] beta;
  real g;
  real<lower=0> s;
  real<lower=0> tau;
}
model {
  real total = 0;
  beta ~ normal(0, tau);
  g ~ normal(0, 1);
  s ~ exponential(1);
  tau ~ exponential(1);
  for (n in 1:N)
    total += normal_lpdf(score[n] | X[n] * beta + g * hours[n], s);
  target += total;
  vector[N] error = (later - X * beta) / tau;
  error ~ std_normal();
  target += -N * log(tau);
}
