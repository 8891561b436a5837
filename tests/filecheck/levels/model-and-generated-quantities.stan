// RUN: stan-opt -p constant-propagation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// Behind the transformed parameters two blocks follow, which is no branch that a constant could decide.
transformed data {
  int n = 0;
}
transformed parameters {
  real a;
  a = n;
}
model {
  target += n;
}
generated quantities {
  int m = n;
}
// CHECK-LABEL: log_prob {
// CHECK:         a = 0;
// CHECK-NEXT:    target += 0;
// CHECK-LABEL: generate_quantities {
// CHECK-NEXT:    data int m = 0;
