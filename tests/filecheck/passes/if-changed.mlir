// RUN: stan-opt -p 'if-changed{passes="unroll-small" then="cse,dce"},verify-dominance' %s | filecheck %s

// The loop of two iterations is written out; only then what is equal in both, and what nobody reads, is looked for.
// CHECK-LABEL: @evaluate
// CHECK-NOT: scf.for
// CHECK: rt.math exp
// CHECK-NOT: rt.math
// CHECK: func.return
func.func @evaluate(%x: f64, %y: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant 2 : i64
  scf.for %i = %zero to %two step %one : i64 {
    %e = rt.math exp(%x) : (f64) -> f64
    rt.store %e, %y[%i] : f64
  }
  func.return
}
