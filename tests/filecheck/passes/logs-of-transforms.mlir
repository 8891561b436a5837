// RUN: stan-opt -p logs-of-transforms,dce,verify-dominance %s | filecheck %s

// A parameter between 0 and 1, its Jacobian, and the logarithms of its value.
// CHECK-LABEL: @evaluate
// CHECK:      rt.math log1p_exp_minus_magnitude(%u)
// CHECK-NEXT: [[P:%.*]] = rt.math inv_logit_of_bounds(%u)
// CHECK:      [[L:%.*]] = rt.math log_inv_logit(%u)
// CHECK:      [[LOW:%.*]] = arith.cmpf oeq, [[P]]
// CHECK-NEXT: arith.select [[LOW]], {{%.*}}, [[L]]
// CHECK:      [[D:%.*]] = arith.subf [[P]]
// CHECK-NEXT: [[LEAST:%.*]] = rt.math log_of_zero([[D]])
// CHECK:      [[HIGH:%.*]] = arith.cmpf oeq, [[P]]
// CHECK:      [[M:%.*]] = rt.math log1m_inv_logit(%u)
// CHECK-NEXT: arith.select [[HIGH]], [[LEAST]], [[M]]
// CHECK:      arith.cmpf oeq, %k
// CHECK:      arith.mulf %k
// A positive one: its logarithm is what it was made of, but for 0 and infinity.
// CHECK:      [[S:%.*]] = rt.math exp(%u)
// CHECK:      [[INFINITE:%.*]] = arith.cmpf oeq, [[S]]
// CHECK:      [[LOG:%.*]] = rt.math log_given([[S]], %u)
// CHECK:      [[FINITE:%.*]] = arith.select [[INFINITE]], {{%.*}}, [[LOG]]
// CHECK:      [[ZERO:%.*]] = arith.cmpf oeq, [[S]]
// CHECK-NEXT: arith.select [[ZERO]], {{%.*}}, [[FINITE]]
// Others.
// CHECK:      rt.math log(%v)
func.func @evaluate(%u : f64, %k : f64) -> (f64, f64, f64, f64, f64, f64, f64, f64) {
  %zero = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  %c = arith.cmpf olt, %u, %zero : f64
  %n = arith.negf %u : f64
  %m = arith.select %c, %u, %n : f64
  %e = rt.math exp(%m) : (f64) -> f64
  %j = rt.math log1p(%e) : (f64) -> f64
  %a = arith.select %c, %e, %one : f64
  %b = arith.addf %one, %e : f64
  %q = arith.divf %a, %b : f64
  %p = arith.addf %q, %zero : f64
  %l1 = rt.math log(%p) : (f64) -> f64
  %l2 = rt.math log1m(%p) : (f64) -> f64
  %l3 = rt.math lmultiply(%k, %p) : (f64, f64) -> f64
  %x = rt.math exp(%u) : (f64) -> f64
  %s = arith.addf %x, %zero : f64
  %l4 = rt.math log(%s) : (f64) -> f64
  %v = arith.addf %x, %one : f64
  %l5 = rt.math log(%v) : (f64) -> f64
  func.return %j, %p, %l1, %l2, %l3, %s, %l4, %l5 : f64, f64, f64, f64, f64, f64, f64, f64
}
