// RUN: stan-opt -p sum-data-terms,dce,verify-dominance %s | filecheck %s
// RUN: stan-opt -p sum-data-terms,dce,hoist-data %s | filecheck %s --check-prefix=BOUND

// Terms of data, whole or with others in a sum, are added up ahead of the loop; in a branch that a parameter decides they
// stay, and so do cheap addends.
// CHECK-LABEL: @evaluate
// CHECK: %[[SUM:.*]] = rt.alloc zero
// CHECK: scf.for
// CHECK: %[[FOUND:.*]] = rt.math lgamma
// CHECK: %[[NEGATIVE:.*]] = arith.negf %[[FOUND]]
// CHECK: %[[BEFORE:.*]] = rt.load %[[SUM]]
// CHECK: %[[AFTER:.*]] = arith.addf %[[BEFORE]], %[[NEGATIVE]]
// CHECK: rt.store %[[AFTER]], %[[SUM]]
// CHECK: scf.if
// CHECK: rt.math log
// CHECK: rt.store %{{.*}}, %[[SUM]]
// CHECK: scf.for
// CHECK: %[[T:.*]] = rt.load %theta
// CHECK: ad.target_add %[[T]]
// CHECK-NOT: rt.math
// CHECK: scf.if
// CHECK: ad.target_add
// CHECK: %[[CHEAP:.*]] = arith.addf
// CHECK: ad.target_add %[[CHEAP]]
// CHECK: %[[TOTAL:.*]] = rt.load %[[SUM]]
// CHECK: ad.target_add %[[TOTAL]]

// BOUND-LABEL: @evaluate
// BOUND-NOT: rt.math
// BOUND-LABEL: @bind
// BOUND: rt.math lgamma
// BOUND: rt.math log
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.load %y[%i] : f64
    %t = rt.load %theta[%i] : f64
    %g = rt.math lgamma(%e) : (f64) -> f64
    %d = arith.subf %t, %g : f64
    ad.target_add %d
    %positive = arith.cmpf ogt, %e, %none : f64
    scf.if %positive {
      %l = rt.math log(%e) : (f64) -> f64
      ad.target_add %l
    }
    %high = arith.cmpf ogt, %t, %none : f64
    scf.if %high {
      ad.target_add %e
    }
    %c = arith.addf %t, %e : f64
    ad.target_add %c
  }
  func.return %none : f64
}
func.func @bind() attributes {rt.entry = #rt.entry} {
  func.return
}
