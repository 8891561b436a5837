// RUN: stan-opt -p powers-to-exponentials,verify-dominance %s | filecheck %s

// The logarithm is taken in front of the outermost loop that does not change the base, once for all its powers.
// CHECK-LABEL: @nested
// CHECK:      %a = rt.math exp(%u)
// CHECK-NEXT: [[LOG:%.*]] = rt.math log_of_base(%a)
// CHECK-NEXT: scf.for
// CHECK:      scf.for
// CHECK:      rt.math power_by_log(%a, %x, [[LOG]])
// CHECK-NEXT: rt.math power_by_log(%a, %z, [[LOG]])
// CHECK-NOT:  rt.math pow
func.func @nested(%u : f64, %n : i64, %b : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %a = rt.math exp(%u) : (f64) -> f64
  scf.for %i = %i0 to %n step %i1 : i64 {
    scf.for %j = %i0 to %n step %i1 : i64 {
      %x = rt.load %b[%j] : f64
      %z = rt.load %b[%i] : f64
      %p = rt.math pow(%a, %x) : (f64, f64) -> f64
      %q = rt.math pow(%a, %z) : (f64, f64) -> f64
      %s = arith.addf %p, %q : f64
      ad.target_add %s
    }
  }
  func.return
}

// Elements of memory to which only what is not negative is written.
// CHECK-LABEL: @memory
// CHECK: rt.math power_by_log(%a
func.func @memory(%u : f64, %n : i64, %b : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %m = rt.alloc %n : !rt.buf<f64>
  %p = rt.math inv_logit(%u) : (f64) -> f64
  rt.store %p, %m[%i0] initial : f64
  %a = rt.load %m[%i0] : f64
  scf.for %j = %i0 to %n step %i1 : i64 {
    %x = rt.load %b[%j] : f64
    %r = rt.math pow(%a, %x) : (f64, f64) -> f64
    ad.target_add %r
  }
  func.return
}

// Data that are declared not to be negative, a power of a parameter each: the logarithms are data, too. Not so of data
// that may be negative, nor of an exponent that is data, whose powers are computed once.
// CHECK-LABEL: @data
// CHECK:      %t = rt.load
// CHECK:      [[LOG:%.*]] = rt.math log_of_base(%t)
// CHECK-NEXT: rt.math power_by_log(%t, %a, [[LOG]])
// CHECK:      rt.math pow(%x, %a)
// CHECK:      rt.math pow(%t, %x)
func.func @data(%theta : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %n = rt.bound 2 : i64
  %a = rt.load %theta[%i0] : f64
  %times = rt.bound 3 {rt.never_negative = #rt.never_negative} : !rt.buf<f64>
  %others = rt.bound 5 : !rt.buf<f64>
  scf.for %j = %i0 to %n step %i1 : i64 {
    %t = rt.load %times[%j] : f64
    %p = rt.math pow(%t, %a) : (f64, f64) -> f64
    ad.target_add %p
    %x = rt.load %others[%j] : f64
    %q = rt.math pow(%x, %a) : (f64, f64) -> f64
    ad.target_add %q
    %r = rt.math pow(%t, %x) : (f64, f64) -> f64
    ad.target_add %r
  }
  func.return
}

// A base that may be negative, one that the loop changes, an exponent that is a constant, no loop.
// CHECK-LABEL: @others
// CHECK-NOT: power_by_log
func.func @others(%u : f64, %n : i64, %b : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %h = arith.constant 2.5 : f64
  %a = rt.math exp(%u) : (f64) -> f64
  scf.for %j = %i0 to %n step %i1 : i64 {
    %x = rt.load %b[%j] : f64
    %p = rt.math pow(%u, %x) : (f64, f64) -> f64
    ad.target_add %p
    %y = rt.math exp(%x) : (f64) -> f64
    %q = rt.math pow(%y, %x) : (f64, f64) -> f64
    ad.target_add %q
    %r = rt.math pow(%a, %h) : (f64, f64) -> f64
    ad.target_add %r
  }
  %s = rt.math pow(%a, %u) : (f64, f64) -> f64
  ad.target_add %s
  func.return
}
