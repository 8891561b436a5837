// RUN: stan-opt -p constant-propagation,dead-code-elimination --debug-optimized-mir-pretty %s | filecheck %s

// When an evaluation fails, the program as it was written is run to tell the error. It reads transformed data.
transformed data {
  int degree = 2;
  {
    int local = degree;
  }
}
model {
  target += degree;
}
// CHECK-LABEL: prepare_data {
// CHECK-NEXT:    data int degree = 2;
// CHECK-NOT:     = degree
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    target += 2;
