// RUN: stan-opt -p scaled-log-sums,dce,verify-dominance %s | filecheck %s

// What log_sum_exp makes of itself is numbers and exponents; what is added to both terms is a factor, known ahead.
// CHECK-LABEL: @chain
// CHECK:      [[SCALES:%.*]] = rt.alloc
// CHECK-NEXT: [[NUMBERS:%.*]] = rt.alloc
// CHECK:      rt.math exp
// CHECK:      scf.for %t = %i1 to %count
// CHECK-NOT:  rt.math
// CHECK:      rt.load [[NUMBERS]]
// CHECK-NOT:  rt.math
// CHECK:      arith.maxnumf
// CHECK-NOT:  rt.math
// CHECK:      rt.store {{.*}}, [[SCALES]]
// CHECK-NEXT: rt.store {{.*}}, [[NUMBERS]]
// CHECK-NOT:  rt.math exp
// CHECK:      rt.math log
// CHECK:      ad.target_add
func.func @chain(%count : i64, %a : f64, %b : f64) {
  %e = rt.bound 0 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %g = rt.alloc variable %count : !rt.buf<f64>
  rt.store %zero, %g[%i0] : f64
  scf.for %t = %i1 to %count step %i1 : i64 {
    %before = arith.subi %t, %i1 : i64
    %x = rt.load %g[%before] : f64
    %y = rt.load %e[%t] : f64
    %xy = arith.addf %x, %y : f64
    %xa = arith.addf %xy, %a : f64
    %xb = arith.addf %b, %xy : f64
    %s = rt.math log_sum_exp(%xa, %xb) : (f64, f64) -> f64
    rt.store %s, %g[%t] : f64
  }
  %last = arith.subi %count, %i1 : i64
  %end = rt.load %g[%last] : f64
  ad.target_add %end
  func.return
}

// No element depends on another one through the sum.
// CHECK-LABEL: @apart
// CHECK:      rt.math log_sum_exp
func.func @apart(%e : !rt.buf<f64>, %count : i64, %a : f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %g = rt.alloc variable %count : !rt.buf<f64>
  scf.for %t = %i0 to %count step %i1 : i64 {
    %y = rt.load %e[%t] : f64
    %s = rt.math log_sum_exp(%y, %a) : (f64, f64) -> f64
    rt.store %s, %g[%t] : f64
  }
  %end = rt.load %g[%i0] : f64
  ad.target_add %end
  func.return
}

// Others get the memory, too.
// CHECK-LABEL: @read
// CHECK:      rt.math log_sum_exp
func.func @read(%count : i64, %a : f64) -> !rt.buf<f64> {
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %i0 = arith.constant 0 : i64
  %g = rt.alloc variable %count : !rt.buf<f64>
  rt.store %zero, %g[%i0] : f64
  scf.for %t = %i1 to %count step %i1 : i64 {
    %before = arith.subi %t, %i1 : i64
    %x = rt.load %g[%before] : f64
    %s = rt.math log_sum_exp(%x, %a) : (f64, f64) -> f64
    rt.store %s, %g[%t] : f64
  }
  func.return %g : !rt.buf<f64>
}
