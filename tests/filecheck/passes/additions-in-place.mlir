// RUN: stan-opt -p additions-in-place,verify-dominance %s | filecheck %s

// Sums of columns, of memory that is 0 at first; what it was before that is gone.
// CHECK-LABEL: @columns
// CHECK:      [[SUMS:%.*]] = rt.alloc zero
// CHECK-NOT:  rt.fill
// CHECK-NOT:  rt.store
// CHECK:      scf.for
// CHECK-NEXT: scf.for [[N:%.*]] =
// CHECK:      ad.accumulate [[SUMS]]{{\[}}[[N]]{{\]}}
// CHECK-NOT:  rt.store
func.func @columns(%n: i64, %columns: i64) -> f64 {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %x = rt.bound 0 : !rt.buf<f64>
  %nan = arith.constant 0x7ff8000000000000 : f64
  %zero = arith.constant 0.0 : f64
  %m = rt.alloc variable %n : !rt.buf<f64>
  rt.fill %m, %nan, %n initial : f64
  scf.for %i = %i0 to %n step %i1 : i64 {
    rt.store %zero, %m[%i] : f64
  }
  scf.for %k = %i0 to %columns step %i1 : i64 {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %a = rt.load %m[%i] : f64
      %b = rt.load %x[%k] : f64
      %c = arith.addf %a, %b : f64
      rt.store %c, %m[%i] : f64
    }
  }
  %d = rt.load %m[%i0] : f64
  func.return %d : f64
}

// Memory that begins with something else; a sum of which more is made; one loop alone.
// CHECK-LABEL: @others
// CHECK-NOT:  ad.accumulate
func.func @others(%n: i64, %columns: i64, %begin: f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %x = rt.bound 0 : !rt.buf<f64>
  %p = rt.alloc %n : !rt.buf<f64>
  rt.fill %p, %begin, %n initial : f64
  %q = rt.alloc zero %n : !rt.buf<f64>
  %r = rt.alloc zero %n : !rt.buf<f64>
  scf.for %k = %i0 to %columns step %i1 : i64 {
    scf.for %i = %i0 to %n step %i1 : i64 {
      %a = rt.load %p[%i] : f64
      %b = rt.load %x[%k] : f64
      %c = arith.addf %a, %b : f64
      rt.store %c, %p[%i] : f64
      %d = rt.load %q[%i] : f64
      %e = arith.addf %d, %b : f64
      rt.store %e, %q[%i] : f64
      ad.target_add %e
    }
  }
  scf.for %i = %i0 to %n step %i1 : i64 {
    %a = rt.load %r[%i] : f64
    %b = rt.load %x[%i] : f64
    %c = arith.addf %a, %b : f64
    rt.store %c, %r[%i] : f64
  }
  func.return
}
