// RUN: stan-opt -p static-loop-unrolling --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Static loop unrolling" of the optimization levels documentation.
transformed data {
  int x = 0;
  for (i in 1 : 4) {
    x += i;
  }
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int x = 0;
// CHECK-NEXT:    x = (x + 1);
// CHECK-NEXT:    x = (x + 2);
// CHECK-NEXT:    x = (x + 3);
// CHECK-NEXT:    x = (x + 4);
// CHECK-NEXT:  }
