// RUN: stan-opt -p share-arms,verify-dominance --split-input-file %s | filecheck %s

// Arms that add the same function of different values: the branch chooses the values.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK:      scf.for
  // CHECK:        %[[Z:.*]] = scf.if {{.*}} -> (f64) {
  // CHECK-NEXT:     scf.yield %a : f64
  // CHECK-NEXT:   } else {
  // CHECK-NEXT:     %[[B:.*]] = arith.addf %a, %a : f64
  // CHECK-NEXT:     scf.yield %[[B]] : f64
  // CHECK-NEXT:   }
  // CHECK-NEXT:   %[[E:.*]] = rt.math exp(%[[Z]]) : (f64) -> f64
  // CHECK-NEXT:   %[[L:.*]] = rt.math log1p(%[[E]]) : (f64) -> f64
  // CHECK-NEXT:   %[[T:.*]] = arith.negf %[[L]] : f64
  // CHECK-NEXT:   ad.target_add %[[T]]
  // CHECK-NEXT: }
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %c = arith.cmpi slt, %i, %one : i64
    scf.if %c {
      %e = rt.math exp(%a) : (f64) -> f64
      %l = rt.math log1p(%e) : (f64) -> f64
      %t = arith.negf %l : f64
      ad.target_add %t
    } else {
      %b = arith.addf %a, %a : f64
      %e = rt.math exp(%b) : (f64) -> f64
      %l = rt.math log1p(%e) : (f64) -> f64
      %t = arith.negf %l : f64
      ad.target_add %t
    }
  }
  func.return
}

// -----

// What no row changes is computed once, ahead of the loop: nothing is saved then.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: !rt.buf<f64>, %s: f64, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  // CHECK:      scf.if
  // CHECK:        ad.target_add
  // CHECK:      } else {
  // CHECK:        ad.target_add
  scf.for %i = %zero to %n step %one : i64 {
    %a = rt.load %x[%i] : f64
    %c = arith.cmpi slt, %i, %one : i64
    scf.if %c {
      %e = rt.math exp(%a) : (f64) -> f64
      %l = rt.math log1p(%e) : (f64) -> f64
      %t = arith.negf %l : f64
      ad.target_add %t
    } else {
      %e = rt.math exp(%s) : (f64) -> f64
      %l = rt.math log1p(%e) : (f64) -> f64
      %t = arith.negf %l : f64
      ad.target_add %t
    }
  }
  func.return
}
