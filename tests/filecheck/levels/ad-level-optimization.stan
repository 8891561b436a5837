// RUN: stan-opt -p ad-level-optimization --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Auto-differentiation level optimization" of the optimization levels documentation.
data {
  real y;
}
model {
  real x = y + 1;
}
// CHECK-LABEL: input_vars {
// CHECK-NEXT:    real y;
// CHECK-NEXT:  }
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    data real x = (y + 1);
// CHECK-NEXT:  }
