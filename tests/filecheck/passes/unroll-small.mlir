// RUN: stan-opt -p unroll-small,verify-dominance %s | filecheck %s

// Straight code; the sum is carried through.
// CHECK-LABEL: @sum
// CHECK-NOT: scf.for
// CHECK: %[[A:.*]] = rt.load %x[%{{.*}}]
// CHECK-NEXT: %[[S:.*]] = arith.addf %v, %[[A]]
// CHECK: %[[B:.*]] = rt.load %x[%{{.*}}]
// CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %[[B]]
// CHECK-NEXT: func.return %[[T]]
func.func @sum(%x: !rt.buf<f64>, %v: f64) -> f64 {
  %zero = arith.constant 0 : i64
  %two = arith.constant 2 : i64
  %one = arith.constant 1 : i64
  %s = scf.for %i = %zero to %two step %one iter_args(%t = %v) -> (f64) : i64 {
    %a = rt.load %x[%i] : f64
    %u = arith.addf %t, %a : f64
    scf.yield %u : f64
  }
  func.return %s : f64
}

// One inner loop: repeated. What the body swaps, the iterations swap in turn.
// CHECK-LABEL: @inner
// CHECK-COUNT-2: scf.for
// CHECK: func.return %a, %b
func.func @inner(%x: !rt.buf<f64>, %n: i64, %a: f64, %b: f64) -> (f64, f64) {
  %zero = arith.constant 0 : i64
  %three = arith.constant 3 : i64
  %two = arith.constant 2 : i64
  %one = arith.constant 1 : i64
  %r, %s = scf.for %i = %zero to %three step %two iter_args(%c = %a, %d = %b) -> (f64, f64) : i64 {
    scf.for %j = %zero to %n step %one : i64 {
      rt.store %c, %x[%j] : f64
    }
    scf.yield %d, %c : f64, f64
  }
  func.return %r, %s : f64, f64
}

// Too many iterations, or an unknown number: left alone.
// CHECK-LABEL: @alone
// CHECK-COUNT-2: scf.for
func.func @alone(%x: !rt.buf<f64>, %n: i64, %v: f64) {
  %zero = arith.constant 0 : i64
  %five = arith.constant 5 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %five step %one : i64 {
    rt.store %v, %x[%i] : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    rt.store %v, %x[%i] : f64
  }
  func.return
}
