// RUN: stan-opt -p elements-by-index,verify-dominance %s | filecheck %s

// A loop that reads elements by an index computes them; nothing is stored.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for
// CHECK-NOT:  rt.store
// CHECK:      scf.for
// CHECK:      rt.load {{.*}} : i32
// CHECK:      arith.mulf
// CHECK:      ad.target_add
func.func @evaluate(%p: !rt.buf<f64>, %flags: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %z = arith.constant 0.0 : f64
  %x = rt.bound 0 : !rt.buf<f64>
  %n = rt.bound 1 : i64
  %list = rt.bound 2 : !rt.buf<i32>
  %count = rt.bound 3 : i64
  %theta = rt.alloc %i1 : !rt.buf<f64>
  ad.independent %theta, %i1
  rt.copy %p to %theta, %i1 initial : !rt.buf<f64>
  %b = rt.load %theta[%i0] : f64
  %m = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %v = rt.load %x[%i] : f64
    %w = arith.mulf %b, %v : f64
    rt.store %w, %m[%i] initial : f64
  }
  scf.for %k = %i0 to %count step %i1 : i64 {
    %r = rt.load %list[%k] : i32
    %at = arith.extsi %r : i32 to i64
    %v = rt.load %m[%at] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    ad.target_add %e
  }
  // Read in order: as it was.
  // CHECK: rt.store
  %q = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %v = rt.load %x[%i] : f64
    %w = arith.mulf %b, %v : f64
    rt.store %w, %q[%i] initial : f64
  }
  scf.for %i = %i0 to %n step %i1 : i64 {
    %v = rt.load %q[%i] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    ad.target_add %e
  }
  // A function for two lists of rows, which evaluate one, too: computed for both. For an index of both: as it was.
  // CHECK-COUNT-2: arith.negf
  // CHECK:         arith.constant 7
  // CHECK:         rt.store
  %others = rt.bound 7 : !rt.buf<i32>
  %s = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %v = rt.load %x[%i] : f64
    %l = arith.negf %v : f64
    %w = rt.math exp(%l) : (f64) -> f64
    rt.store %w, %s[%i] initial : f64
  }
  scf.for %k = %i0 to %count step %i1 : i64 {
    %r = rt.load %list[%k] : i32
    %at = arith.extsi %r : i32 to i64
    %v = rt.load %s[%at] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    ad.target_add %e
  }
  scf.for %k = %i1 to %count step %i1 : i64 {
    %r = rt.load %others[%k] : i32
    %at = arith.extsi %r : i32 to i64
    %v = rt.load %s[%at] : f64
    %e = rt.math exp(%v) : (f64) -> f64
    ad.target_add %e
  }
  %behind = arith.constant 7 : i64
  %three = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %v = rt.load %x[%i] : f64
    %w = rt.math exp(%v) : (f64) -> f64
    rt.store %w, %three[%i] initial : f64
  }
  scf.for %k = %i0 to %count step %i1 : i64 {
    %r = rt.load %list[%k] : i32
    %at = arith.extsi %r : i32 to i64
    %v = rt.load %three[%at] : f64
    ad.target_add %v
  }
  scf.for %k = %i1 to %count step %i1 : i64 {
    %r = rt.load %list[%k] : i32
    %at = arith.extsi %r : i32 to i64
    %v = rt.load %three[%at] : f64
    ad.target_add %v
  }
  func.return %z : f64
}
