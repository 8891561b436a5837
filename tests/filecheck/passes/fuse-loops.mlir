// RUN: stan-opt -p 'fuse-loops{before-reverse-mode=true}',verify-dominance %s | filecheck %s

// Two loops of equal length become one, and what the first stored is not loaded again.
// CHECK-LABEL: @evaluate
// CHECK: scf.for
// CHECK: %[[E:.*]] = rt.math exp
// CHECK-NOT: scf.for
// CHECK-NOT: rt.load %e
// CHECK: ad.target_add %[[E]]
// CHECK: func.return
func.func @evaluate(%x: !rt.buf<f64>, %n: i64) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %e = rt.alloc %n : !rt.buf<f64>
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %b = rt.math exp(%a) : (f64) -> f64
    rt.store %b, %e[%i] initial : f64
  }
  scf.for %i = %zero to %n step %one : i64 {
    %c = rt.load %e[%i] : f64
    ad.target_add %c
  }
  func.return %none : f64
}
