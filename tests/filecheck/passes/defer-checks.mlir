// RUN: stan-opt -p defer-checks,verify-dominance %s | filecheck %s

// A check of a domain sets a flag, which is tested behind the loop.
// CHECK-LABEL: @evaluate
func.func @evaluate(%theta: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  // CHECK: %[[BAD:.*]] = scf.for
  // CHECK-NOT: rt.check
  // CHECK: arith.ori
  // CHECK: scf.yield
  // CHECK: %[[FINE:.*]] = arith.cmpi eq, %[[BAD]]
  // CHECK-NEXT: rt.check %[[FINE]] site -1 status 3
  scf.for %i = %zero to %n step %one : i64 {
    %t = rt.load %theta[%i] : f64
    %positive = arith.cmpf ogt, %t, %none : f64
    rt.check %positive site 0 status 1
    %l = rt.math log(%t) : (f64) -> f64
    ad.target_add %l
  }
  func.return %none : f64
}
