// A vector of log odds is made for each row.
// expect: unique rows
// data: N = 12000; C = 4; age = index(N, 6); urban = bits(N); mode = index(N, C)
// other: to_vector(A) ~ normal(0, 1); b ~ normal(0, 1); for (n in 1:N) { vector[C] eta; eta[1] = 0; for (c in 2:C) eta[c] = A[c - 1, age[n]] + b[c - 1] * urban[n]; target += categorical_logit_lpmf(mode[n] | eta); }
data {
  int N; int C;
  array[N] int<lower=1, upper=6> age; array[N] int urban;
  array[N] int<lower=1, upper=C> mode;
}
parameters {
  matrix[C - 1, 6] A;
  vector[C - 1] b;
}
model {
  to_vector(A) ~ normal(0, 1);
  b ~ normal(0, 1);
  for (n in 1:N) {
    vector[C] eta = append_row(0, A[, age[n]] + b * urban[n]);
    mode[n] ~ categorical_logit(eta);
  }
}
