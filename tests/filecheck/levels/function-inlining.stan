// RUN: stan-opt -p function-inlining --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// "Function inlining" of the optimization levels documentation, without its one-trip loop.
functions {
  int incr(int x) {
    int y = 1;
    return x + y;
  }
}
transformed data {
  int a = 2;
  int b = incr(a);
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int a = 2;
// CHECK-NEXT:    data int b;
// CHECK-NEXT:    data int [[R:inline_\w+__]];
// CHECK-NEXT:    data int [[Y:inline_\w+__]] = 1;
// CHECK-NEXT:    [[R]] = (a + [[Y]]);
// CHECK-NEXT:    b = [[R]];
// CHECK-NEXT:  }
