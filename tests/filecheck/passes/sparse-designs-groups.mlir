// Two columns to an iteration, the second ones behind all the first: coefficients and columns are gone through one by one.
// RUN: stan-opt %s -p sparse-designs | filecheck %s

// CHECK-LABEL: func.func @evaluate
// CHECK: scf.for %[[COLUMN:[0-9]+]] =
// CHECK: %[[AT:.*]] = arith.minsi %[[COLUMN]], %last : i64
// CHECK-NEXT: %[[B:.*]] = rt.load %theta[%[[AT]]] : f64
// CHECK-NEXT: rt.store %[[B]], %{{.*}}[%[[COLUMN]]] initial : f64
// CHECK-NOT: rt.store
// CHECK: rt.kernel sparse_product
// CHECK-LABEL: func.func @bind
// CHECK: %[[END:.*]] = arith.muli %{{.*}}, %{{.*}} : i64
// CHECK: scf.for %[[COLUMN:.*]] = %{{.*}} to %{{.*}} step
// CHECK: rt.store %{{.*}}, %{{.*}}[%[[COLUMN]]] : i64
// CHECK-NOT: rt.store
// CHECK: rt.kernel sparse_columns
builtin.module attributes {rt.slots = #rt.slots<5>} {
  func.func @evaluate(%theta: !rt.buf<f64>) attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %half = rt.bound 1 : i64
    %last = rt.bound 3 : i64
    %x = rt.bound 2 : !rt.buf<f64>
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %y = rt.alloc zero %n : !rt.buf<f64>
    scf.for %j = %zero to %half step %one : i64 {
      %j2 = arith.addi %j, %half : i64
      %k = arith.minsi %j, %last : i64
      %k2 = arith.minsi %j2, %last : i64
      %b = rt.load %theta[%k] : f64
      %b2 = rt.load %theta[%k2] : f64
      %first = arith.muli %k, %n : i64
      %first2 = arith.muli %k2, %n : i64
      scf.for %i = %zero to %n step %one : i64 {
        %at = arith.addi %first, %i : i64
        %v = rt.load %x[%at] : f64
        %p = arith.mulf %v, %b : f64
        %at2 = arith.addi %first2, %i : i64
        %v2 = rt.load %x[%at2] : f64
        %p2 = arith.mulf %v2, %b2 : f64
        %sum = arith.addf %p, %p2 fastmath<reassoc> : f64
        ad.accumulate %y[%i], %sum
      }
    }
    func.return
  }
  func.func @bind() attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    rt.set_bound 4, %zero : i64
    func.return
  }
}
