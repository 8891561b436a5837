// RUN: stan-opt -p dce,verify-dominance %s | filecheck %s

// Carried values that only carry themselves on, results that nobody uses, and a loop that computes nothing.
// CHECK-LABEL: @loops
func.func @loops(%n: i64, %x: f64) -> f64 {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[S:.*]] = %x) -> (f64)
  // CHECK-NEXT: %[[T:.*]] = arith.addf %[[S]], %x
  // CHECK-NEXT: scf.yield %[[T]]
  // CHECK-NEXT: }
  // CHECK-NEXT: func.return %[[R]]
  %r, %d = scf.for %i = %zero to %n step %one iter_args(%s = %x, %u = %x) -> (f64, f64) : i64 {
    %t = arith.addf %s, %x : f64
    %w = arith.mulf %u, %t : f64
    scf.yield %t, %w : f64, f64
  }
  %e = scf.for %i = %zero to %n step %one iter_args(%s = %x) -> (f64) : i64 {
    %w = arith.mulf %s, %s : f64
    scf.yield %w : f64
  }
  func.return %r : f64
}

// A buffer that is only written; one that a returned load reads; a check stays.
// CHECK-LABEL: @memory
func.func @memory(%n: i64, %x: f64, %c: i1) -> f64 {
  // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i64
  // CHECK-NEXT: %[[B:.*]] = rt.alloc %n
  // CHECK-NEXT: rt.store %x, %[[B]][%[[ZERO]]]
  // CHECK-NEXT: rt.check
  // CHECK-NEXT: %[[L:.*]] = rt.load %[[B]][%[[ZERO]]]
  // CHECK-NEXT: func.return %[[L]]
  %zero = arith.constant 0 : i64
  %a = rt.alloc %n : !rt.buf<f64>
  %b = rt.alloc %n : !rt.buf<f64>
  %view = rt.view %a[%zero] : !rt.buf<f64>
  rt.store %x, %view[%zero] : f64
  ad.accumulate %a[%zero], %x
  rt.store %x, %b[%zero] : f64
  rt.check %c site 0
  %l = rt.load %b[%zero] : f64
  func.return %l : f64
}

// A `while` stays, with the carried values that its condition needs.
// CHECK-LABEL: @while
func.func @while(%n: i64, %x: f64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK: scf.while (%[[K:.*]] = %{{[a-z]*}}) : (i64) -> i64 {
  // CHECK: do
  %k, %y = scf.while (%k = %zero, %y = %x) : (i64, f64) -> (i64, f64) {
    %c = arith.cmpi slt, %k, %n : i64
    scf.condition(%c) %k, %y : i64, f64
  } do {
  ^bb0(%k : i64, %y : f64):
    %next = arith.addi %k, %one : i64
    %z = arith.mulf %y, %y : f64
    // CHECK-NOT: arith.mulf
    scf.yield %next, %z : i64, f64
  }
  func.return
}
