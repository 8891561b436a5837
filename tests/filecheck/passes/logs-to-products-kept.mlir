// RUN: stan-opt --split-input-file -p logs-to-products,dce,verify-dominance %s | filecheck %s

// A logarithm that something else reads, one outside of loops, one of a loop that is few known iterations: only the
// last becomes a product, without pieces.
// CHECK-LABEL: @evaluate
// CHECK:      rt.math log(%x)
// CHECK-NEXT: ad.target_add
// CHECK:      scf.for
// CHECK-NEXT:   rt.load
// CHECK-NEXT:   [[L:%.*]] = rt.math log
// CHECK-NEXT:   rt.store [[L]]
// CHECK-NEXT:   ad.target_add [[L]]
// CHECK:      scf.for
// CHECK-NOT:    scf.for
// CHECK:        arith.bitcast
// CHECK:        arith.mulf {{%.*}} fastmath<reassoc>
// CHECK-NOT:    rt.math
// CHECK:      scf.if
// CHECK:        rt.math log
func.func @evaluate(%n : i64, %b : !rt.buf<f64>, %c : !rt.buf<f64>, %x : f64) -> f64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i9 = arith.constant 9 : i64
  %zero = arith.constant 0.0 : f64
  %0 = rt.math log(%x) : (f64) -> f64
  ad.target_add %0
  scf.for %i = %i0 to %n step %i1 : i64 {
    %1 = rt.load %b[%i] : f64
    %2 = rt.math log(%1) : (f64) -> f64
    rt.store %2, %c[%i] : f64
    ad.target_add %2
  }
  scf.for %i = %i0 to %i9 step %i1 : i64 {
    %3 = rt.load %b[%i] : f64
    %4 = rt.math log(%3) : (f64) -> f64
    ad.target_add %4
  }
  func.return %zero : f64
}

// -----

// The target is read on the way.
// CHECK-LABEL: @evaluate
// CHECK-NOT: arith.mulf
// CHECK: ad.target
func.func @evaluate(%n : i64, %b : !rt.buf<f64>) -> f64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %1 = rt.load %b[%i] : f64
    %2 = rt.math log(%1) : (f64) -> f64
    ad.target_add %2
  }
  %t = ad.target
  func.return %t : f64
}
