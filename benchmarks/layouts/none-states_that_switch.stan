// Which coefficient a row has depends on parameters.
// expect: none
// data: N = 2000; x = normal(N); y = normal(N)
data {
  int<lower=0> N;
  vector[N] x;
  vector[N] y;
}
parameters {
  real cut;
  array[2] real slope;
  real<lower=0> s;
}
model {
  for (n in 1 : N) {
    int side = x[n] > cut ? 2 : 1;
    y[n] ~ normal(slope[side] * (x[n] - cut), s);
  }
}
