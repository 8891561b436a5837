// posterior: three_men1-ldaK2
data { int V; int M; int N; array[N] int<lower=1, upper=V> w; array[N] int<lower=1, upper=M> doc; }
parameters { array[M] simplex[2] theta; array[2] simplex[V] phi; }
model {
  matrix[N, 2] gamma;
  for (n in 1:N) for (k in 1:2) gamma[n, k] = log(theta[doc[n], k]) + log(phi[k, w[n]]);
  for (n in 1:N) target += log_sum_exp(gamma[n]);
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(1, 2));
  for (k in 1:2) phi[k] ~ dirichlet(rep_vector(1, V));
}
