// RUN: stan-opt -p partial-evaluation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Partial evaluation" of the optimization levels documentation.
model {
  real a = 1 + 1;
  real b = log(1 - a);
  real c = a + b * 5;
}
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    real a = 2;
// CHECK-NEXT:    real b = log1m(a);
// CHECK-NEXT:    real c = fma(b, 5, a);
// CHECK-NEXT:  }
