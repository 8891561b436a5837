// RUN: stan-opt -p tabulate-data,verify-dominance --split-input-file %s | filecheck %s
// RUN: stan-opt -p 'tabulate-data{strips=true},verify-dominance' --split-input-file %s | filecheck %s --check-prefix=STRIPS

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

// -----

// Rows of strips have one table, if asked for; a loop that ends elsewhere has none.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.alloc
// STRIPS-LABEL: %[[ROWS:rows]] = rt.bound
// STRIPS:      %[[TABLE:.*]] = rt.alloc
// STRIPS:      scf.for
// STRIPS:        rt.math lgamma
// STRIPS:        rt.store %{{.*}}, %[[TABLE]][%[[AT:.*]]]
// STRIPS:      scf.for %s
// STRIPS:        rt.load %[[TABLE]]
// STRIPS:        scf.for %j
// STRIPS:          rt.math lgamma
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %size = arith.constant 256 : i64
  %most = arith.constant 255 : i64
  %bits = arith.constant 8 : i64
  %rows = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  %up = arith.addi %rows, %most : i64
  %strips = arith.shrsi %up, %bits : i64
  scf.for %s = %zero to %strips step %one : i64 {
    %begin = arith.muli %s, %size : i64
    %next = arith.addi %begin, %size : i64
    %end = arith.minsi %next, %rows : i64
    scf.for %i = %begin to %end step %one : i64 {
      %e = rt.load %y[%i] : f64
      %t = rt.load %theta[%i] : f64
      %g = rt.math lgamma(%e) : (f64) -> f64
      %p = arith.mulf %g, %t : f64
      ad.target_add %p
    }
    scf.for %j = %zero to %begin step %one : i64 {
      %e = rt.load %y[%j] : f64
      %t = rt.load %theta[%j] : f64
      %g = rt.math lgamma(%e) : (f64) -> f64
      %p = arith.mulf %g, %t : f64
      ad.target_add %p
    }
  }
  func.return %none : f64
}
