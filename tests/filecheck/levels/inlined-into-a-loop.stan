// RUN: stan-opt -p function-inlining,expression-propagation,dead-code-elimination,loop-vectorization --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// What inlining leaves behind does not keep a loop from becoming a statement on vectors.
functions {
  real doubled(real x) {
    return 2 * x;
  }
}
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> s;
}
model {
  for (n in 1 : N) {
    y[n] ~ normal(mu, doubled(s));
  }
}
// CHECK-LABEL: log_prob {
// CHECK-NOT:     inline
// CHECK-NOT:     for(
// CHECK:         target += normal_lupdf(y, mu, (2 * s));
