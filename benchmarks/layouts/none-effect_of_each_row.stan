// expect: none
// data: N = 6000; J = 40; g = index(N, J); k = counts(N, 4)
data {
  int N;
  int J;
  array[N] int<lower=1, upper=J> g;
  array[N] int<lower=0> k;
}
parameters {
  vector[J] c;
  vector[N] extra;
}
model {
  c ~ normal(0, 1);
  extra ~ normal(0, 1);
  k ~ poisson_log(c[g] + extra);
}
