// RUN: stan-opt -p 'release-arena,stack-buffers' %s | filecheck %s

// Small and given back at the end of the iteration: one place of the frame serves all iterations, nothing to give back.
// CHECK-LABEL: @small
// CHECK-NOT: rt.mark_arena
// CHECK: rt.alloc stack %{{.*}}
// CHECK-NOT: rt.release
func.func @small(%x: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.alloc %three : !rt.buf<f64>
    rt.store %v, %b[%zero] : f64
    %u = rt.load %b[%zero] : f64
    rt.store %u, %x[%i] : f64
  }
  func.return
}

// Of unknown size, beside a small one: the memory of the arena is still given back.
// CHECK-LABEL: @unknown
// CHECK: rt.mark_arena
// CHECK: rt.alloc stack %{{.*}}
// CHECK: rt.alloc %{{.*}} :
// CHECK: rt.release
func.func @unknown(%x: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  scf.for %i = %zero to %n step %one : i64 {
    %b = rt.alloc %one : !rt.buf<f64>
    %c = rt.alloc %n : !rt.buf<f64>
    rt.store %v, %b[%zero] : f64
    %u = rt.load %b[%zero] : f64
    rt.store %u, %c[%i] : f64
  }
  func.return
}

// Carried to the next iteration: each iteration needs a buffer of its own.
// CHECK-LABEL: @carried
// CHECK-NOT: stack
// CHECK: func.return
func.func @carried(%x: !rt.buf<f64>, %n: i64, %v: f64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %three = arith.constant 3 : i64
  %r = scf.for %i = %zero to %n step %one iter_args(%last = %x) -> (!rt.buf<f64>) : i64 {
    %b = rt.alloc %three : !rt.buf<f64>
    %u = rt.load %last[%zero] : f64
    rt.store %u, %b[%zero] : f64
    scf.yield %b : !rt.buf<f64>
  }
  func.return
}
