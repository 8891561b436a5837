// posterior: hmm_example-hmm_example
data {
  int<lower=0> N;
  int<lower=0> K;
  array[N] real y;
}
parameters {
  simplex[K] theta1;
  simplex[K] theta2;
  positive_ordered[K] mu;
}
model {
  array[2] vector[K] into = {log([theta1[1], theta2[1]]'), log([theta1[2], theta2[2]]')};
  vector[K] forward;
  mu[1] ~ normal(3, 1);
  mu[2] ~ normal(10, 1);
  for (k in 1:K) forward[k] = normal_lpdf(y[1] | mu[k], 1);
  for (t in 2:N) {
    vector[K] next;
    for (k in 1:K) next[k] = normal_lpdf(y[t] | mu[k], 1) + log_sum_exp(into[k] + forward);
    forward = next;
  }
  target += log_sum_exp(forward);
}
