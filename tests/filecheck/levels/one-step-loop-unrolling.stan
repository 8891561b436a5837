// RUN: stan-opt -p one-step-loop-unrolling --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "One step loop unrolling" of the optimization levels documentation.
data {
  int n;
}
transformed data {
  int x = 0;
  for (i in 1 : n) {
    x += i;
  }
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int n = FnReadData__("n")[1];
// CHECK-NEXT:    data int x = 0;
// CHECK-NEXT:    if((n >= 1)) {
// CHECK-NEXT:      x = (x + 1);
// CHECK-NEXT:      for(i in (1 + 1):n) {
// CHECK-NEXT:        x = (x + i);
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// CHECK-NEXT:  }
