// posterior: three_men1-ldaK2
data { int V; int M; int N; array[N] int<lower=1, upper=V> w; array[N] int<lower=1, upper=M> doc; }
transformed data { int K = 2; }
parameters { array[M] simplex[K] theta; array[K] simplex[V] phi; }
model {
  vector[N * K] g;
  for (n in 1:N) for (k in 1:K) g[(n - 1) * K + k] = log(theta[doc[n], k]) + log(phi[k, w[n]]);
  for (n in 1:N) target += log_sum_exp(g[((n - 1) * K + 1):(n * K)]);
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(1, K));
  for (k in 1:K) phi[k] ~ dirichlet(rep_vector(1, V));
}
