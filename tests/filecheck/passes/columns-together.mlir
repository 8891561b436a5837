// Four columns to an iteration over a block of rows; the last one is there as often as one is missing, with its share.
// RUN: stan-opt %s -p columns-together | filecheck %s

// CHECK-LABEL: func.func @evaluate
// CHECK: %[[LAST:.*]] = arith.subi %k, %{{.*}} : i64
// CHECK: %[[GROUPS:.*]] = arith.shrsi %{{.*}}, %{{.*}} : i64
// CHECK: scf.for %[[GROUP:.*]] = %{{.*}} to %[[GROUPS]] step
// CHECK: %[[AT:.*]] = arith.minsi %[[GROUP]], %[[LAST]] : i64
// CHECK-NEXT: %[[B:.*]] = rt.load %theta[%[[AT]]] : f64
// CHECK: arith.mulf %[[B]], %{{.*}} : f64
// CHECK: scf.for %[[ROW:.*]] = %from to %n step
// CHECK-COUNT-3: arith.addf %{{.*}} fastmath<reassoc> : f64
// CHECK: %[[TO:.*]] = arith.subi %[[ROW]], %from : i64
// CHECK: ad.accumulate %y[%[[TO]]]
// Sums of which each column has its own stay.
// CHECK: scf.for %[[COLUMN:.*]] = %zero to %k step %one : i64 {
// CHECK: ad.accumulate %z[%[[COLUMN]]]
builtin.module {
  func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %k = rt.bound 1 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %from = rt.bound 3 : i64
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %y = rt.alloc zero %n : !rt.buf<f64>
    %z = rt.alloc zero %k : !rt.buf<f64>
    scf.for %j = %zero to %k step %one : i64 {
      %b = rt.load %theta[%j] : f64
      %first = arith.muli %j, %n : i64
      scf.for %i = %from to %n step %one : i64 {
        %at = arith.addi %first, %i : i64
        %v = rt.load %x[%at] : f64
        %p = arith.mulf %v, %b : f64
        %to = arith.subi %i, %from : i64
        ad.accumulate %y[%to], %p
      }
    }
    scf.for %j2 = %zero to %k step %one : i64 {
      %b2 = rt.load %theta[%j2] : f64
      %first2 = arith.muli %j2, %n : i64
      scf.for %i2 = %from to %n step %one : i64 {
        %at2 = arith.addi %first2, %i2 : i64
        %v2 = rt.load %x[%at2] : f64
        %p2 = arith.mulf %v2, %b2 : f64
        ad.accumulate %z[%j2], %p2
      }
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
