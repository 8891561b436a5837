// expect: none
// data: N = 4000; J = 10; g = index(N, J); k = counts(N, 4); x = normal(N)
data {
  int N;
  int J;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=0> k;
  vector[N] x;
}
parameters {
  vector[J] c;
  real edge;
}
model {
  c ~ normal(0, 1);
  edge ~ normal(0, 1);
  for (i in 1 : N) {
    int at = x[i] > edge ? g[i] : 1;
    k[i] ~ poisson_log(c[at]);
  }
}
