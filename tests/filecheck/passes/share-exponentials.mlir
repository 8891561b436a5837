// RUN: stan-opt --split-input-file -p share-exponentials,dce,verify-dominance %s | filecheck %s

// Of %z and of its negative; of %y only one, which stays.
// CHECK-LABEL: @evaluate
// CHECK:      rt.math log1p_exp(%y)
// CHECK-NEXT: [[Q:%.*]] = rt.math exp_minus_magnitude(%z)
// CHECK:      [[T:%.*]] = arith.addf {{%.*}}, [[Q]]
// CHECK:      arith.divf {{%.*}}, [[T]]
// CHECK:      rt.math log([[T]])
// CHECK-NOT:  rt.math
// CHECK-NOT:  arith.divf
// CHECK:      func.return
func.func @evaluate(%z : f64, %y : f64) -> (f64, f64, f64, f64) {
  %n = arith.negf %z : f64
  %0 = rt.math log1p_exp(%y) : (f64) -> f64
  %1 = rt.math log_inv_logit(%z) : (f64) -> f64
  %2 = rt.math inv_logit(%n) : (f64) -> f64
  %3 = rt.math inv_logit(%z) : (f64) -> f64
  func.return %0, %1, %2, %3 : f64, f64, f64, f64
}

// -----

// The argument of a sum of exponentials is the difference that its slopes have.
// CHECK-LABEL: @evaluate
// CHECK:      [[D:%.*]] = arith.subf %a, %b
// CHECK:      rt.math exp_minus_magnitude([[D]])
// CHECK-NOT:  inv_logit
// CHECK:      func.return
func.func @evaluate(%a : f64, %b : f64) -> (f64, f64) {
  %d = arith.subf %b, %a : f64
  %0 = rt.math log_sum_exp(%a, %b) : (f64, f64) -> f64
  %1 = rt.math inv_logit(%d) : (f64) -> f64
  func.return %0, %1 : f64, f64
}

// -----

// Branches behind a first function share with it; a logarithm that only they have is computed there.
// CHECK-LABEL: @evaluate
// CHECK:      [[Q:%.*]] = rt.math exp_minus_magnitude(%z)
// CHECK-NOT:  rt.math
// CHECK:      scf.if
// CHECK-NOT:    exp_minus_magnitude
// CHECK:        rt.math log(
// CHECK-NOT:  rt.math
// CHECK:      func.return
func.func @evaluate(%z : f64, %c : i1) -> (f64, f64) {
  %zero = arith.constant 0.0 : f64
  %p = rt.math inv_logit(%z) : (f64) -> f64
  %l = scf.if %c -> (f64) {
    %m = arith.negf %z : f64
    %a = rt.math log_inv_logit(%m) : (f64) -> f64
    scf.yield %a : f64
  } else {
    scf.yield %zero : f64
  }
  func.return %p, %l : f64, f64
}
