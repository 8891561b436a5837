// RUN: stan-opt -p separate-data-checks,verify-dominance %s | filecheck %s

// A check that reads data only leaves the loop for one of its own, which `hoist-data` moves to `bind`; the other stays.
// CHECK-LABEL: @evaluate
func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %n = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  // CHECK: scf.for
  // CHECK: rt.check %{{.*}} site 0
  // CHECK-NOT: rt.load %theta
  // CHECK: scf.for
  // CHECK-NOT: site 0
  // CHECK: rt.check %{{.*}} site 1
  scf.for %i = %zero to %n step %one : i64 {
    %e = rt.load %y[%i] : f64
    %positive = arith.cmpf ogt, %e, %none : f64
    rt.check %positive site 0 status 1
    %t = rt.load %theta[%i] : f64
    %number = arith.cmpf ord, %t, %t : f64
    rt.check %number site 1 status 1
    %p = arith.mulf %e, %t : f64
    ad.target_add %p
  }
  func.return %none : f64
}
