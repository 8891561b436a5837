data {
  int<lower=0> N;
  vector[N] x;
}
transformed data {
  int degree = 2;
}
parameters {
  vector[degree] b;
}
model {
  vector[N] mu = rep_vector(0, N);
  for (k in 1 : degree) {
    mu += b[k] * x ^ k;
  }
  target += sum(mu);
}
