// posterior: three_men1-ldaK2
data {
  int<lower=2> V;
  int<lower=1> M;
  int<lower=1> N;
  array[N] int<lower=1, upper=V> w;
  array[N] int<lower=1, upper=M> doc;
}
transformed data {
  int K = 2;
  vector[K] alpha = rep_vector(1, K);
  vector[V] beta = rep_vector(1, V);
}
parameters {
  array[M] simplex[K] theta;
  array[K] simplex[V] phi;
}
model {
  vector[N] ll;
  for (m in 1:M) {
    theta[m] ~ dirichlet(alpha);
  }
  for (k in 1:K) {
    phi[k] ~ dirichlet(beta);
  }
  for (n in 1:N) {
    vector[K] g;
    for (k in 1:K) {
      g[k] = log(theta[doc[n], k]) + log(phi[k, w[n]]);
    }
    ll[n] = log_sum_exp(g);
  }
  target += sum(ll);
}
