// RUN: stan-opt -p 'defer-checks{brief=true above=5}',verify-dominance %s | filecheck %s

// In long units a check only leaves: which error it is, and about what, another unit tells.
// CHECK-LABEL: @evaluate
func.func @evaluate(%theta: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %none = arith.constant 0.0 : f64
  // CHECK: rt.check %{{.*}} site -1 status 3
  // CHECK-NOT: with
  // CHECK: rt.load
  %inside = arith.cmpi slt, %zero, %n : i64
  rt.check %inside site 4 status 2 with %zero, %n : i64, i64
  %t = rt.load %theta[%zero] : f64
  // CHECK: rt.check %{{.*}} site -1 status 3 {rt.harmless = #rt.harmless}
  %positive = arith.cmpf ogt, %t, %none : f64
  rt.check %positive site 5 status 1 with %t : f64
  ad.target_add %t
  func.return %none : f64
}
