// posterior: three_men1-ldaK2
data {
  int V;
  int M;
  int N;
  array[N] int<lower=1, upper=V> w;
  array[N] int<lower=1, upper=M> doc;
}
transformed data {
  int K = 2;
}
parameters {
  array[M] simplex[K] theta;
  array[K] simplex[V] phi;
}
model {
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(1, K));
  for (k in 1:K) phi[k] ~ dirichlet(rep_vector(1, V));
  theta[1, 1] ~ beta(2, 2);
  for (n in 1:N) {
    array[K] real gamma;
    for (k in 1:K) gamma[k] = log(phi[k, w[n]]) + log(theta[doc[n], k]);
    target += log_sum_exp(gamma);
  }
}
