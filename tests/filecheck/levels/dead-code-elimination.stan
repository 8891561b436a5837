// RUN: stan-opt -p dead-code-elimination --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Dead code elimination" of the optimization levels documentation.
model {
  int i;
  i = 5;
  for (j in 1 : 10)
    ;
  if (0) {
    print("Dead code");
  } else {
    print("Hi!");
  }
}
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    int i;
// CHECK-NEXT:    FnPrint__("Hi!");
// CHECK-NEXT:  }
