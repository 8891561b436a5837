// RUN: stan-opt -p data-divisors,verify-dominance %s | filecheck %s

// A factor that the loop does not change is divided by a constant; `licm` takes the quotient out.
// CHECK-LABEL: @invariant_factor
// CHECK:      %x = rt.load
// CHECK-NEXT: [[Q:%.*]] = arith.divf %b, %c
// CHECK-NEXT: [[P:%.*]] = arith.mulf [[Q]], %x
// CHECK-NEXT: ad.target_add [[P]]
func.func @invariant_factor(%b : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %c = arith.constant 100.0 : f64
  %d = rt.bound 0 : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %d[%i] : f64
    %p = arith.mulf %b, %x : f64
    %q = arith.divf %p, %c : f64
    ad.target_add %q
  }
  func.return
}

// A factor that is data is divided by data, in products of products, behind a sign, wherever the divisor stands.
// CHECK-LABEL: @data_factor
// CHECK:      %x = rt.load
// CHECK-NEXT: %g = rt.load
// CHECK-NEXT: %s = rt.load
// CHECK-NEXT: [[Q:%.*]] = arith.divf %x, %s
// CHECK-NEXT: [[P:%.*]] = arith.mulf %g, [[Q]]
// CHECK-NEXT: [[M:%.*]] = arith.negf [[P]]
// CHECK-NEXT: [[R:%.*]] = arith.mulf [[M]], %g
// CHECK-NEXT: ad.target_add [[R]]
func.func @data_factor(%a : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %n = rt.bound 2 : i64
  %d = rt.bound 0 : !rt.buf<f64>
  %e = rt.bound 1 : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %d[%i] : f64
    %g = rt.load %a[%i] : f64
    %p = arith.mulf %g, %x : f64
    %m = arith.negf %p : f64
    %r = arith.mulf %m, %g : f64
    %s = rt.load %e[%i] : f64
    %q = arith.divf %r, %s : f64
    ad.target_add %q
  }
  func.return
}

// No factor that is data, one that a constant of extraordinary size would divide, a product that others read, a
// divisor that is no data, no loop.
// CHECK-LABEL: @others
// CHECK: arith.divf %p0, %c
// CHECK: arith.divf %p1, %tiny
// CHECK: arith.divf %p2, %c
// CHECK: arith.divf %p3, %g
// CHECK: arith.divf %b, %c
func.func @others(%a : !rt.buf<f64>, %b : f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %c = arith.constant 100.0 : f64
  %tiny = arith.constant 1.0e-200 : f64
  %n = rt.bound 2 : i64
  %d = rt.bound 0 : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %d[%i] : f64
    %g = rt.load %a[%i] : f64
    %p0 = arith.mulf %g, %g : f64
    %q0 = arith.divf %p0, %c : f64
    ad.target_add %q0
    %p1 = arith.mulf %b, %g : f64
    %q1 = arith.divf %p1, %tiny : f64
    ad.target_add %q1
    %p2 = arith.mulf %b, %x : f64
    %q2 = arith.divf %p2, %c : f64
    ad.target_add %q2
    ad.target_add %p2
    %p3 = arith.mulf %b, %x : f64
    %q3 = arith.divf %p3, %g : f64
    ad.target_add %q3
  }
  %q4 = arith.divf %b, %c : f64
  ad.target_add %q4
  func.return
}
