// expect: none
// data: N = 8000; who = rng.permutation(N) + 1; k = counts(N, 4)
data {
  int N;
  array[N] int<lower=1, upper=N> who;
  array[N] int<lower=0> k;
}
parameters {
  vector[N] own;
  real m;
}
model {
  own ~ normal(0, 1);
  for (i in 1 : N) {
    k[i] ~ poisson_log(m + own[who[i]]);
  }
}
