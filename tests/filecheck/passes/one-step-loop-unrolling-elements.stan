// RUN: stan-opt -p 'one-step-loop-unrolling{when=useful elementwise=false}' --verify-each -t stan %s | filecheck %s
// RUN: stan-opt -p 'one-step-loop-unrolling{when=useful}' --verify-each -t stan %s | filecheck %s --check-prefix=ALL

// What is computed element by element, lowered loops have a table of: that is no reason, but for the default. A sum or
// a product of matrices is one.
data {
  int n;
  int m;
  matrix[m, m] S;
}
parameters {
  vector<lower=0, upper=1>[m] p;
}
model {
  for (i in 1 : n) {
    target += (logit(p) + p)[i];
  }
  for (i in 1 : n) {
    target += (S * p)[i];
  }
  for (i in 1 : n) {
    target += i * bernoulli_lpmf(1 | p);
  }
}
// CHECK-LABEL: model {
// CHECK-NEXT:    for (i in 1:n) {
// CHECK-NEXT:      target += (logit(p) + p)[i];
// CHECK-NEXT:    }
// CHECK-NEXT:    if (n >= 1) {
// CHECK-NEXT:      target += (S * p)[1];
// CHECK:         if (n >= 1) {
// CHECK-NEXT:      target += 1 * bernoulli_lpmf(1 | p);
// ALL-LABEL: model {
// ALL-NEXT:    if (n >= 1) {
// ALL-NEXT:      target += (logit(p) + p)[1];
