// posterior: three_men1-ldaK2
data {
  int V;
  int M;
  int N;
  array[N] int<lower=1, upper=V> w;
  array[N] int<lower=1, upper=M> doc;
}
parameters {
  array[M] simplex[2] theta;
  array[2] simplex[V] phi;
}
model {
  for (n in 1:N)
    target += log_sum_exp(log(theta[doc[n], 1]) + log(phi[1, w[n]]), log(theta[doc[n], 2]) + log(phi[2, w[n]]));
  for (m in 1:M) theta[m] ~ dirichlet(rep_vector(1, 2));
  for (k in 1:2) phi[k] ~ dirichlet(rep_vector(1, V));
}
