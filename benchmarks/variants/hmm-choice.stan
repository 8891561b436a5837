// posterior: hmm_example-hmm_example
data { int N; int K; array[N] real y; }
parameters { simplex[K] theta1; simplex[K] theta2; positive_ordered[K] mu; }
model { matrix[K, N] g; matrix[K, K] lt; lt[1] = log(theta1'); lt[2] = log(theta2'); target += normal_lpdf(mu[1] | 3, 1) + normal_lpdf(mu[2] | 10, 1);
  for (n in 1:N) for (k in 1:K) { real e = normal_lpdf(y[n] | mu[k], 1); g[k, n] = n == 1 ? e : e + log_sum_exp(g[:, n - 1] + lt[:, k]); } target += log_sum_exp(g[:, N]); }
