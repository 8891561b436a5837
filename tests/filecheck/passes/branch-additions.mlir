// RUN: stan-opt --split-input-file --verify-each -p branch-additions,dce,verify-dominance %s | filecheck %s

// What a branch adds to a log_sum_exp that was stored is chosen, and the element is stored once.
// CHECK-LABEL: @evaluate
// CHECK:       scf.for
// CHECK:         %[[SUM:.*]] = rt.math log_sum_exp
// CHECK-NEXT:    %[[E:.*]] = scf.if %{{.*}} -> (f64) {
// CHECK-NEXT:      %[[X:.*]] = rt.load
// CHECK-NEXT:      scf.yield %[[X]]
// CHECK-NEXT:    } else {
// CHECK-NEXT:      %[[NONE:.*]] = arith.constant -0.0
// CHECK-NEXT:      scf.yield %[[NONE]]
// CHECK-NEXT:    }
// CHECK-NEXT:    %[[ALL:.*]] = arith.addf %[[SUM]], %[[E]]
// CHECK-NEXT:    rt.store %[[ALL]], %{{.*}}[%k]
// CHECK-NOT:     rt.store
func.func @evaluate(%a: f64, %b: f64, %c: i1, %count: i64) {
  %e = rt.bound 0 : !rt.buf<f64>
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %g = rt.alloc variable %count : !rt.buf<f64>
  scf.for %k = %i0 to %count step %i1 : i64 {
    %sum = rt.math log_sum_exp(%a, %b) : (f64, f64) -> f64
    rt.store %sum, %g[%k] : f64
    scf.if %c {
      %x = rt.load %e[%k] : f64
      %all = arith.addf %sum, %x : f64
      rt.store %all, %g[%k] : f64
    } else {
    }
  }
  %first = rt.load %g[%i0] : f64
  ad.target_add %first
  func.return
}

// -----

// The same of what is no element; something is taken away, and added twice.
// CHECK-LABEL: @evaluate
// CHECK:       %[[SUM:.*]] = rt.math log_sum_exp
// CHECK-NEXT:  %[[E:.*]] = scf.if
// CHECK-NEXT:    %[[LESS:.*]] = arith.negf %a
// CHECK-NEXT:    scf.yield %[[LESS]]
// CHECK-NEXT:  } else {
// CHECK-NEXT:    %[[BOTH:.*]] = arith.addf %a, %b
// CHECK-NEXT:    scf.yield %[[BOTH]]
// CHECK-NEXT:  }
// CHECK-NEXT:  arith.addf %[[SUM]], %[[E]]
func.func @evaluate(%a: f64, %b: f64, %c: i1) -> f64 {
  %sum = rt.math log_sum_exp(%a, %b) : (f64, f64) -> f64
  %either = scf.if %c -> (f64) {
    %less = arith.subf %sum, %a : f64
    scf.yield %less : f64
  } else {
    %more = arith.addf %a, %sum : f64
    %most = arith.addf %more, %b : f64
    scf.yield %most : f64
  }
  %other = scf.if %c -> (f64) {
    scf.yield %sum : f64
  } else {
    scf.yield %sum : f64
  }
  %result = arith.addf %either, %other : f64
  func.return %result : f64
}

// -----

// Not where the element is read in between, or in an arm, where another one is stored, or the sum is none of logarithms.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-8: rt.store
func.func @evaluate(%a: f64, %b: f64, %c: i1, %count: i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %g = rt.alloc variable %count : !rt.buf<f64>
  scf.for %k = %i0 to %count step %i1 : i64 {
    %sum = rt.math log_sum_exp(%a, %b) : (f64, f64) -> f64
    rt.store %sum, %g[%k] : f64
    %x = rt.load %g[%i0] : f64
    scf.if %c {
      %all = arith.addf %sum, %x : f64
      rt.store %all, %g[%k] : f64
    } else {
    }
    rt.store %sum, %g[%k] : f64
    scf.if %c {
      %y = rt.load %g[%i0] : f64
      %all = arith.addf %sum, %y : f64
      rt.store %all, %g[%k] : f64
    } else {
    }
    rt.store %sum, %g[%k] : f64
    scf.if %c {
      %all = arith.addf %sum, %b : f64
      rt.store %all, %g[%i0] : f64
    } else {
    }
    rt.store %b, %g[%k] : f64
    scf.if %c {
      %all = arith.addf %b, %a : f64
      rt.store %all, %g[%k] : f64
    } else {
    }
  }
  %first = rt.load %g[%i0] : f64
  ad.target_add %first
  func.return
}
