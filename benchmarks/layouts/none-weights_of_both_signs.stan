// Weights of a difference of two surveys: those below 0 have no root.
// expect: none
// data: N = 4000; x = normal(N); y = normal(N); w = normal(N)
data {
  int N;
  vector[N] x;
  vector[N] y;
  vector[N] w;
}
parameters {
  real a;
  real b;
  real<lower=0> s;
}
model {
  s ~ exponential(1);
  for (i in 1 : N) {
    target += w[i] * normal_lpdf(y[i] | a + b * x[i], s);
  }
}
