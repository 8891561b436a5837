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
transformed parameters {
  array[K] simplex[K] theta = {theta1, theta2};
}
model {
  array[N, K] real gamma;
  array[K] real acc;
  for (k in 1:K) gamma[1, k] = normal_lpdf(y[1] | mu[k], 1);
  for (t in 2:N)
    for (k in 1:K) {
      for (j in 1:K) acc[j] = normal_lpdf(y[t] | mu[k], 1) + log(theta[j, k]) + gamma[t - 1, j];
      gamma[t, k] = log_sum_exp(acc);
    }
  target += log_sum_exp(gamma[N]) + normal_lpdf(mu[1] | 3, 1) + normal_lpdf(mu[2] | 10, 1) + beta_lpdf(theta1[1] | 2, 2);
}
