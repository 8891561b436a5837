// RUN: stan-opt -p 'defer-checks{branches=true},verify-dominance' %s | filecheck %s

// Checks of domains leave the arms of a branch in a loop, and then the loop; one of a size stays.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: !rt.buf<f64>, %c: i1, %d: i1, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: %[[BAD:.*]] = scf.for
  scf.for %i = %zero to %n step %one : i64 {
    // CHECK: %[[FINE:.*]] = scf.if %c -> (i1) {
    // CHECK-NEXT: rt.load
    // CHECK-NEXT: %[[ORD:.*]] = arith.cmpf ord
    // CHECK-NEXT: %[[BOTH:.*]] = arith.andi %[[ORD]], %d
    // CHECK-NEXT: scf.yield %[[BOTH]]
    // CHECK-NEXT: } else {
    // CHECK-NEXT: rt.check %d site 3
    // CHECK-NEXT: %[[TRUE:.*]] = arith.constant true
    // CHECK-NEXT: scf.yield %[[TRUE]]
    scf.if %c {
      %a = rt.load %x[%i] : f64
      %ok = arith.cmpf ord, %a, %a : f64
      rt.check %ok site 1 status 1
      rt.check %d site 2 status 1
    } else {
      rt.check %d site 3 status 2
    }
  }
  // CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[BAD]]
  // CHECK: rt.check %[[NONE]] site -1 status 3
  func.return
}
