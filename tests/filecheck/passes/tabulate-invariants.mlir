// RUN: stan-opt -p tabulate-invariants,verify-dominance %s | filecheck %s

// What the outer loop would repeat for each of its iterations is computed before it, once for each of the inner loop.
// CHECK-LABEL: @evaluate
func.func @evaluate(%theta: !rt.buf<f64>, %z: !rt.buf<f64>, %n: i64, %k: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  // CHECK: %[[TABLE:.*]] = rt.alloc
  // CHECK: scf.for
  // CHECK: rt.math log
  // CHECK: rt.store %{{.*}}, %[[TABLE]]
  // CHECK: scf.for
  // CHECK-NEXT: rt.load %z
  // CHECK-NEXT: scf.for
  // CHECK-NOT: rt.math
  // CHECK: rt.load %[[TABLE]]
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.load %z[%i] : f64
    scf.for %j = %zero to %k step %one : i64 {
      %t = rt.load %theta[%j] : f64
      %l = rt.math log(%t) : (f64) -> f64
      %p = arith.mulf %l, %e : f64
      ad.target_add %p
    }
  }
  func.return %none : f64
}
