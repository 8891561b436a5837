// RUN: stan-opt -p constant-propagation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Constant propagation" of the optimization levels documentation.
transformed data {
  int n = 100;
  array[n] int a;
  for (i in 1 : n) {
    a[i] = i;
  }
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int n = 100;
// CHECK-NEXT:    data array[int, 100] a;
// CHECK-NEXT:    for(i in 1:100) {
// CHECK-NEXT:      a[i] = i;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
