// RUN: stan-opt -p logs-of-transforms,dce,verify-dominance --split-input-file %s | filecheck %s

// What `logs-of-choices` makes of a probability and the rest, with what the rounding of the rest has lost. The first or
// the second may be the probability.
// CHECK-LABEL: @evaluate
// CHECK:      [[Z:%.*]] = arith.select %c, %u, [[MINUS:%.*]] : f64
// CHECK-NEXT: [[END:%.*]] = arith.select %c
// CHECK-NEXT: [[ZERO:%.*]] = arith.cmpf ole, [[Z]], [[END]]
// CHECK:      [[L:%.*]] = rt.math log_inv_logit([[Z]])
// CHECK-NEXT: [[FIRST:%.*]] = arith.select [[ZERO]], %{{.*}}, [[L]]
// CHECK:      [[OTHER:%.*]] = arith.select %c, %{{.*}}, %u : f64
// CHECK:      [[M:%.*]] = rt.math log_inv_logit([[OTHER]])
// CHECK-NEXT: [[SECOND:%.*]] = arith.select %{{.*}}, %{{.*}}, [[M]]
// CHECK:      func.return [[FIRST]], [[SECOND]]
func.func @evaluate(%u : f64, %c : i1) -> (f64, f64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %p = rt.math inv_logit(%u) : (f64) -> f64
  %less = arith.subf %p, %one : f64
  %rest = arith.negf %less : f64
  %whole = arith.subf %one, %rest : f64
  %lost = arith.subf %whole, %p : f64
  %x = arith.select %c, %p, %rest : f64
  %lx = rt.math log(%x) : (f64) -> f64
  %kx = arith.select %c, %zero, %lost : f64
  %ex = rt.math value_of(%kx) : (f64) -> f64
  %a = arith.addf %lx, %ex : f64
  %y = arith.select %c, %rest, %p : f64
  %ly = rt.math log(%y) : (f64) -> f64
  %ky = arith.select %c, %lost, %zero : f64
  %ey = rt.math value_of(%ky) : (f64) -> f64
  %b = arith.addf %ey, %ly : f64
  func.return %a, %b : f64, f64
}

// -----

// One less a probability: its logarithm, and that of what is left of it. A choice that is none between a probability
// and its rest keeps what is added.
// CHECK-LABEL: @evaluate
// CHECK:      rt.math log1m_inv_logit(%u)
// CHECK:      rt.math log_inv_logit(%u)
// CHECK:      rt.math log1m_inv_logit(%u)
// CHECK:      arith.mulf %k
// CHECK:      [[LOG:%.*]] = rt.math log(%{{.*}})
// CHECK:      arith.addf [[LOG]]
func.func @evaluate(%u : f64, %k : f64, %c : i1) -> (f64, f64, f64, f64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %p = rt.math inv_logit_of_bounds(%u) : (f64) -> f64
  %rest = arith.subf %one, %p : f64
  %l1 = rt.math log(%rest) : (f64) -> f64
  %l2 = rt.math log1m(%rest) : (f64) -> f64
  %l3 = rt.math lmultiply(%k, %rest) : (f64, f64) -> f64
  %x = arith.select %c, %p, %k : f64
  %l4 = rt.math log(%x) : (f64) -> f64
  %e = rt.math value_of(%k) : (f64) -> f64
  %s = arith.addf %l4, %e : f64
  func.return %l1, %l2, %l3, %s : f64, f64, f64, f64
}

// -----

// In a loop, arms that take one logarithm each stay for `logs-of-choices`; outside they do not.
// CHECK-LABEL: @evaluate
// CHECK:      scf.for
// CHECK:        rt.math log([[E:%.*]])
// CHECK:        rt.math log1m([[E]])
// CHECK:      scf.if
// CHECK-NOT:    rt.math log(
// CHECK:      func.return
func.func @evaluate(%theta : !rt.buf<f64>, %c : i1) -> f64 attributes {rt.entry = #rt.entry} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %n = rt.bound 0 : i64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %u = rt.load %theta[%i] : f64
    %e = rt.math exp(%u) : (f64) -> f64
    scf.if %c {
      %l = rt.math log(%e) : (f64) -> f64
      ad.target_add %l
    } else {
      %m = rt.math log1m(%e) : (f64) -> f64
      ad.target_add %m
    }
  }
  %v = rt.load %theta[%i0] : f64
  %f = rt.math exp(%v) : (f64) -> f64
  %r = scf.if %c -> (f64) {
    %l = rt.math log(%f) : (f64) -> f64
    scf.yield %l : f64
  } else {
    %m = rt.math log1m(%f) : (f64) -> f64
    scf.yield %m : f64
  }
  func.return %r : f64
}
