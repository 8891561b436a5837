// RUN: stan-opt -p 'loop-fusion{before-reverse-mode=true reassociate=true},verify-dominance' %s | filecheck %s
// RUN: stan-opt -p 'loop-fusion{before-reverse-mode=true}' %s | filecheck --check-prefix=ORDERED %s

// What branches that only compute and add to the target alone read is computed in their loop, where sums may change.
// CHECK-LABEL: @choices
// CHECK-COUNT-1: scf.for
// CHECK-NOT:     scf.for
// CHECK:         rt.math log_sum_exp
// ORDERED-LABEL: @choices
// ORDERED-COUNT-2: scf.for
func.func @choices(%theta : !rt.buf<f64>, %l : f64) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %y = rt.bound 1 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %means = rt.alloc %rows : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %t = rt.load %theta[%n] : f64
    %e = rt.math exp(%t) : (f64) -> f64
    rt.store %e, %means[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %m = rt.load %means[%n] : f64
    %z = rt.load %y[%n] : f64
    %c = arith.cmpf oeq, %z, %zero : f64
    scf.if %c {
      %s = rt.math log_sum_exp(%l, %m) : (f64, f64) -> f64
      ad.target_add %s
    } else {
      ad.target_add %m
    }
  }
  func.return %zero : f64
}

// A function that no loop is widened over keeps its loop to itself.
// CHECK-LABEL: @calls
// CHECK-COUNT-2: scf.for
func.func @calls(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
  %rows = rt.bound 0 : i64
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %zero = arith.constant 0.0 : f64
  %means = rt.alloc %rows : !rt.buf<f64>
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %t = rt.load %theta[%n] : f64
    %e = rt.math exp(%t) : (f64) -> f64
    rt.store %e, %means[%n] : f64
  }
  scf.for %n = %i0 to %rows step %i1 : i64 {
    %m = rt.load %means[%n] : f64
    %c = arith.cmpf ogt, %m, %zero : f64
    scf.if %c {
      %s = rt.math lgamma(%m) : (f64) -> f64
      ad.target_add %s
    }
  }
  func.return %zero : f64
}
