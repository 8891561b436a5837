// RUN: stan-opt -p cancel-inverses,verify-dominance %s | filecheck %s

// In the same iteration.
// CHECK-LABEL: @here
// CHECK:      %v = rt.math exp(%u)
// CHECK:      ad.target_add %v
// CHECK:      [[LOG:%.*]] = rt.math log(%v)
// CHECK-NEXT: [[HALF:%.*]] = arith.mulf {{.*}}, [[LOG]]
// CHECK-NEXT: ad.target_add [[HALF]]
func.func @here(%u : f64) {
  %v = rt.math exp(%u) : (f64) -> f64
  %r = rt.math sqrt(%v) : (f64) -> f64
  %q = arith.mulf %r, %r : f64
  ad.target_add %q
  %l = rt.math log(%r) : (f64) -> f64
  ad.target_add %l
  func.return
}

// In the next one: what is under the root is carried, too.
// CHECK-LABEL: @next
// CHECK:      [[START:%.*]] = rt.math square(%u)
// CHECK-NEXT: scf.for {{.*}} iter_args(%s = %u, [[SQUARE:%.*]] = [[START]]) -> (f64, f64)
// CHECK-NEXT: %v = rt.math fma(%a, [[SQUARE]], %a)
// CHECK-NEXT: %r = rt.math sqrt(%v)
// CHECK-NEXT: scf.yield %r, %v : f64, f64
func.func @next(%u : f64, %n : i64) -> f64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %a = rt.math inv_logit(%u) : (f64) -> f64
  %e = scf.for %t = %i0 to %n step %i1 iter_args(%s = %u) -> (f64) : i64 {
    %q = rt.math square(%s) : (f64) -> f64
    %v = rt.math fma(%a, %q, %a) : (f64, f64, f64) -> f64
    %r = rt.math sqrt(%v) : (f64) -> f64
    scf.yield %r : f64
  }
  func.return %e : f64
}

// What may be negative stays: its root is NaN.
// CHECK-LABEL: @negative
// CHECK: rt.math sqrt(%u)
// CHECK-NEXT: rt.math square
func.func @negative(%u : f64) {
  %r = rt.math sqrt(%u) : (f64) -> f64
  %q = rt.math square(%r) : (f64) -> f64
  ad.target_add %q
  func.return
}

// A loop that divides by the root has the slope of its logarithm.
// CHECK-LABEL: @divided
// CHECK:      %r = rt.math sqrt(%v)
// CHECK-NEXT: %d = rt.math inv(%r)
// CHECK-NEXT: %l = rt.math log(%r)
func.func @divided(%u : f64, %n : i64, %b : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  scf.for %t = %i0 to %n step %i1 : i64 {
    %x = rt.load %b[%t] : f64
    %v = rt.math exp(%x) : (f64) -> f64
    %r = rt.math sqrt(%v) : (f64) -> f64
    %d = rt.math inv(%r) : (f64) -> f64
    %l = rt.math log(%r) : (f64) -> f64
    %s = arith.addf %d, %l : f64
    ad.target_add %s
  }
  func.return
}
