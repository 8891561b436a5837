// RUN: stan-opt -p tabulate-data,verify-dominance %s | filecheck %s

// What is costly and needs data only becomes a table, whose loop `hoist-data` moves to `bind`.
// CHECK-LABEL: @evaluate
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  // CHECK: %[[TABLE:.*]] = rt.alloc
  // CHECK: scf.for
  // CHECK: rt.math lgamma
  // CHECK: rt.store %{{.*}}, %[[TABLE]]
  // CHECK: scf.for
  // CHECK-NOT: rt.math lgamma
  // CHECK: rt.load %[[TABLE]]
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.load %y[%i] : f64
    %t = rt.load %theta[%i] : f64
    %g = rt.math lgamma(%e) : (f64) -> f64
    %p = arith.mulf %g, %t : f64
    ad.target_add %p
  }
  func.return %none : f64
}
