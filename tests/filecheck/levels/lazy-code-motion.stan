// RUN: stan-opt -p lazy-code-motion --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Lazy code motion" of the optimization levels documentation.
model {
  real x;
  real y;
  real z;

  for (i in 1 : 10) {
    x = sqrt(10);
    y = sqrt(i);
  }
  z = sqrt(10);
}
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    data real [[L:lcm_sym\d+__]];
// CHECK-NEXT:    real x;
// CHECK-NEXT:    real y;
// CHECK-NEXT:    real z;
// CHECK-NEXT:    [[L]] = sqrt(10);
// CHECK-NEXT:    for(i in 1:10) {
// CHECK-NEXT:      x = [[L]];
// CHECK-NEXT:      y = sqrt(i);
// CHECK-NEXT:    }
// CHECK-NEXT:    z = [[L]];
// CHECK-NEXT:  }
