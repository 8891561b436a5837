// RUN: stan-opt -p tabulate-data,verify-dominance --split-input-file %s | filecheck %s

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

// -----

// Bounds that a branch computes are computed in front of it; one that a loop computes has no table.
// CHECK-LABEL: @evaluate
// CHECK:      %from = arith.addi
// CHECK:      %[[TABLE:.*]] = rt.alloc
// CHECK:      rt.math lgamma
// CHECK:      rt.store %{{.*}}, %[[TABLE]]
// CHECK:      scf.if %some
// CHECK-NOT:  rt.math lgamma
// CHECK:      rt.load %[[TABLE]]
// CHECK:      rt.math lgamma
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  %some = arith.cmpi sgt, %n, %zero : i64
  scf.if %some {
    %from = arith.addi %n, %one : i64
    scf.for %i = %from to %n step %one : i64 {
      %e = rt.load %y[%i] : f64
      %t = rt.load %theta[%i] : f64
      %g = rt.math lgamma(%e) : (f64) -> f64
      %p = arith.mulf %g, %t : f64
      ad.target_add %p
      %next = arith.addi %i, %one : i64
      scf.for %j = %next to %n step %one : i64 {
        %f = rt.load %y[%j] : f64
        %h = rt.math lgamma(%f) : (f64) -> f64
        %q = arith.mulf %h, %t : f64
        ad.target_add %q
      }
    }
  }
  func.return %none : f64
}
