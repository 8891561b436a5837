// RUN: stan-opt -p share-arms,verify-dominance %s | filecheck %s

// What both arms compute, load and check is done ahead of the branch; what only one does stays, and so do loads behind
// a store. Outside of loops nothing moves.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %c = arith.cmpi slt, %i, %one : i64
    // CHECK:      %[[C:.*]] = arith.cmpi slt
    // CHECK-NEXT: %[[A:.*]] = rt.load %x[%i]
    // CHECK-NEXT: %[[OK:.*]] = arith.cmpf oge, %[[A]], %[[A]]
    // CHECK-NEXT: rt.check %[[OK]] site 1 status 1
    // CHECK-NEXT: %[[L:.*]] = rt.math log(%[[A]])
    // CHECK-NEXT: scf.if %[[C]] {
    // CHECK-NEXT:   rt.store %[[L]], %y[%i]
    // CHECK-NEXT:   %[[M:.*]] = rt.load %x[%zero]
    // CHECK-NEXT:   %[[E:.*]] = rt.math exp(%[[L]])
    // CHECK-NEXT:   ad.target_add %[[E]]
    // CHECK-NEXT:   ad.target_add %[[M]]
    // CHECK-NEXT: } else {
    // CHECK-NEXT:   %[[M2:.*]] = rt.load %x[%zero]
    // CHECK-NEXT:   ad.target_add %[[M2]]
    // CHECK-NEXT:   ad.target_add %[[L]]
    scf.if %c {
      %a = rt.load %x[%i] : f64
      %ok = arith.cmpf oge, %a, %a : f64
      rt.check %ok site 1 status 1
      %l = rt.math log(%a) : (f64) -> f64
      rt.store %l, %y[%i] : f64
      %m = rt.load %x[%zero] : f64
      %e = rt.math exp(%l) : (f64) -> f64
      ad.target_add %e
      ad.target_add %m
    } else {
      %m = rt.load %x[%zero] : f64
      %b = rt.load %x[%i] : f64
      %fine = arith.cmpf oge, %b, %b : f64
      rt.check %fine site 2 status 1
      %l = rt.math log(%b) : (f64) -> f64
      ad.target_add %m
      ad.target_add %l
    }
  }
  func.return
}
