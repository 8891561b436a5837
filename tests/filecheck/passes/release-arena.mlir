// RUN: stan-opt -p release-arena,verify-dominance %s | filecheck %s

// What an iteration takes is given back at its end: the loop has the memory of one.
// CHECK-LABEL: @evaluate
// CHECK: scf.for
// CHECK-NEXT: %[[MARK:.*]] = rt.mark_arena
// CHECK-NEXT: rt.alloc
// CHECK: rt.release %[[MARK]]
// CHECK-NEXT: }
func.func @evaluate(%x: !rt.buf<f64>, %y: !rt.buf<f64>, %n: i64, %k: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.alloc %k : !rt.buf<f64>
    rt.copy %x to %b, %k initial : !rt.buf<f64>
    %e = rt.load %b[%i] : f64
    rt.store %e, %y[%i] : f64
  }
  func.return
}

// What is returned outlives the iteration.
// CHECK-LABEL: @last
// CHECK-NOT: rt.release
func.func @last(%first: !rt.buf<f64>, %n: i64) -> !rt.buf<f64> attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %found = scf.for %i = %zero to %n step %one iter_args(%before = %first) -> (!rt.buf<f64>) : i64 {
    %b = rt.alloc zero %one : !rt.buf<f64>
    scf.yield %b : !rt.buf<f64>
  }
  func.return %found : !rt.buf<f64>
}
