// RUN: stan-opt -p copy-propagation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Copy propagation" of the optimization levels documentation.
model {
  int i = 1;
  int j = i;
  int k = i + j;
}
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    int i = 1;
// CHECK-NEXT:    int j = i;
// CHECK-NEXT:    int k = (i + i);
// CHECK-NEXT:  }
