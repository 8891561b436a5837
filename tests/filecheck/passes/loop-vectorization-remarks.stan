// RUN: stan-opt --explain -p loop-vectorization %s | filecheck %s

// What keeps statements in their loops, with the statement's line.
data {
  int N;
  vector[N] y;
  array[N] int k;
  array[N] int J;
}
parameters {
  real a;
  real<lower=0> s;
}
model {
  vector[N] mu = y;
  for (n in 2:N) {
    mu[n] = mu[n - 1] * a;
  }
  for (n in 1:N) {
    mu[J[n]] += y[n];
  }
  for (n in 1:N) {
    y[n] ~ normal(k[n] ? a : 0, s);
    if (k[n]) break;
  }
  for (n in 1:N) {
    target += y[n] * normal_lpdf(a | n, s);
    mu[n] = a * y[n];
  }
}
// CHECK:       17 | mu[n] = mu[n - 1] * a;
// CHECK-NEXT:  loop over n
// CHECK-NEXT:  not done loop-vectorization: mu[n - 1] depends on another iteration
// CHECK-NEXT:  20 | mu[J[n]] += y[n];
// CHECK-NEXT:  loop over n
// CHECK-NEXT:  not done loop-vectorization: mu is not used at mu[n] only
// CHECK-NEXT:  22 | for (n in 1:N) {
// CHECK-NEXT:  loop over n
// CHECK-NEXT:  not done loop-vectorization: break or continue leaves it
// CHECK-NEXT:  26 | for (n in 1:N) {
// CHECK-NEXT:  loop over n
// CHECK-NEXT:  done loop-vectorization: 1 statement became a whole-vector statement, the others stay in the loop
// CHECK-NEXT:  27 | target += y[n] * normal_lpdf(a | n, s);
// CHECK-NEXT:  loop over n
// CHECK-NEXT:  not done loop-vectorization: each term of the density has a weight of its own
