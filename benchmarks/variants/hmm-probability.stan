// posterior: hmm_example-hmm_example
data { int<lower=0> N; int<lower=0> K; array[N] real y; }
parameters { simplex[K] a; simplex[K] b; positive_ordered[K] mu; }
transformed parameters { matrix[K, K] P; P[1] = a'; P[2] = b'; }
model { matrix[N, K] o; for (n in 1:N) for (k in 1:K) o[n, k] = normal_lpdf(y[n] | mu[k], 1);
  { vector[K] f = o[1]'; for (t in 2:N) { vector[K] g; for (k in 1:K) g[k] = log_sum_exp(f + log(P[:, k])) + o[t, k]; f = g; } target += log_sum_exp(f); }
  mu[1] ~ normal(3, 1); mu[2] ~ normal(10, 1); }
