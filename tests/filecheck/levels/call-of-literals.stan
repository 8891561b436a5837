// RUN: stan-opt -p partial-evaluation --verify-each --debug-optimized-mir-pretty %s | filecheck %s

// A function of literals is not evaluated by the compiler.
model {
  target += student_t_lccdf(0 | 3, 0, 10) + fmax(1, 2);
}
// CHECK-LABEL: log_prob {
// CHECK-NEXT:    target += (student_t_lccdf(0, 3, 0, 10) + fmax(1, 2));
