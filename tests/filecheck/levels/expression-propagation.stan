// RUN: stan-opt -p expression-propagation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Expression propagation" of the optimization levels documentation.
data {
  int m;
}
transformed data {
  int n = m + 1;
  array[n] int a;
  for (i in 1 : n - 1) {
    a[i] = i;
  }
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int m = FnReadData__("m")[1];
// CHECK-NEXT:    data int n = (m + 1);
// CHECK-NEXT:    data array[int, (m + 1)] a;
// CHECK-NEXT:    for(i in 1:((m + 1) - 1)) {
// CHECK-NEXT:      a[i] = i;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
