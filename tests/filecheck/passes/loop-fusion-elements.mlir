// RUN: stan-opt -p 'loop-fusion{before-reverse-mode=true reassociate=true}' %s | filecheck %s
// RUN: stan-opt -p 'loop-fusion{before-reverse-mode=true}' %s | filecheck --check-prefix=EXACT %s

// An element that both loops set is set once; levels that keep every bit keep every store, too.
// CHECK-LABEL: @both
// CHECK:      scf.for
// CHECK-NEXT:   [[S:%.*]] = arith.addf %v, %w
// CHECK-NEXT:   rt.store [[S]], %x
// CHECK-NOT:    rt.store
// EXACT-LABEL: @both
// EXACT-COUNT-2: rt.store
func.func @both(%n: i64, %v: f64, %w: f64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x = rt.alloc variable %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    rt.store %v, %x[%i] : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %s = arith.addf %a, %w : f64
    rt.store %s, %x[%i] : f64
  }
  %e = rt.load %x[%zero] : f64
  ad.target_add %e
  func.return
}

// An element that both add to is added to once.
// CHECK-LABEL: @sums
// CHECK:      scf.for
// CHECK-NEXT:   [[S:%.*]] = arith.addf %v, %w fastmath<reassoc>
// CHECK-NEXT:   ad.accumulate %x[%{{.*}}], [[S]]
// CHECK-NOT:    ad.accumulate
// EXACT-LABEL: @sums
// EXACT-COUNT-2: ad.accumulate
func.func @sums(%n: i64, %v: f64, %w: f64) {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %x = rt.alloc zero variable %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    ad.accumulate %x[%i], %v
  }
  scf.for %i = %zero to %n step %one : i64 {
    ad.accumulate %x[%i], %w
  }
  %e = rt.load %x[%zero] : f64
  ad.target_add %e
  func.return
}
