// RUN: stan-opt -p simplify,verify-dominance %s | filecheck %s

// Constants are folded, equal values shared, what does not change leaves the loop, what nobody reads goes.
// CHECK-LABEL: @both
// CHECK: rt.math exp
// CHECK-NOT: rt.math exp
// CHECK: arith.addf
// CHECK-NOT: arith.mulf
// CHECK: scf.for
// CHECK-NEXT: rt.store
// CHECK-NEXT: }
func.func @both(%x: f64, %y: !rt.buf<f64>, %n: i64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %first = arith.addi %zero, %zero : i64
  scf.for %i = %first to %n step %one : i64 {
    %a = rt.math exp(%x) : (f64) -> f64
    %b = rt.math exp(%x) : (f64) -> f64
    %unused = arith.mulf %a, %b : f64
    %c = arith.addf %a, %b : f64
    rt.store %c, %y[%i] : f64
  }
  func.return
}
