// RUN: stan-opt -p logs-of-choices,verify-dominance %s | filecheck %s

// One logarithm; what rounding takes from 1 - p is added. Other results are chosen, too.
// CHECK-LABEL: @branch
// CHECK-NOT:  scf.if
// CHECK:      [[NEGATIVE:%.*]] = arith.subf %p
// CHECK-NEXT: [[REST:%.*]] = arith.negf [[NEGATIVE]]
// CHECK-NEXT: [[NEAR:%.*]] = arith.subf {{.*}}, [[REST]]
// CHECK-NEXT: [[LOST:%.*]] = arith.subf [[NEAR]], %p
// CHECK-NEXT: [[CHOSEN:%.*]] = arith.select %c, %p, [[REST]]
// CHECK-NEXT: [[PART:%.*]] = arith.select %c, {{.*}}, [[LOST]]
// CHECK-NEXT: [[LOG:%.*]] = rt.math log([[CHOSEN]])
// CHECK-NEXT: [[FIXED:%.*]] = rt.math value_of([[PART]])
// CHECK-NEXT: [[SUM:%.*]] = arith.addf [[LOG]], [[FIXED]]
// CHECK-NEXT: ad.target_add [[SUM]]
func.func @branch(%u : f64, %n : i64, %y : !rt.buf<i32>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  scf.for %i = %i0 to %n step %i1 : i64 {
    %k = rt.load %y[%i] : i32
    %c = arith.cmpi eq, %k, %one : i32
    %f = arith.uitofp %k : i32 to f64
    %x = arith.mulf %u, %f : f64
    %p = rt.math inv_logit(%x) : (f64) -> f64
    %l = scf.if %c -> (f64) {
      %a = rt.math log(%p) : (f64) -> f64
      scf.yield %a : f64
    } else {
      %b = rt.math log1m(%p) : (f64) -> f64
      scf.yield %b : f64
    }
    ad.target_add %l
  }
  func.return
}

// Additions to the target in both arms are one.
// CHECK-LABEL: @additions
// CHECK-NOT:  scf.if
// CHECK:      [[X:%.*]] = arith.select %c, %x, %u
// CHECK-NEXT: [[F:%.*]] = rt.math log1p_exp([[X]])
// CHECK-NEXT: ad.target_add [[F]]
// CHECK-NOT:  ad.target_add
func.func @additions(%u : f64, %n : i64, %y : !rt.buf<f64>) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %y[%i] : f64
    %c = arith.cmpf olt, %x, %u : f64
    scf.if %c {
      %a = rt.math log1p_exp(%x) : (f64) -> f64
      ad.target_add %a
    } else {
      %b = rt.math log1p_exp(%u) : (f64) -> f64
      ad.target_add %b
    }
  }
  func.return
}

// Of no loop; other functions; a check; a result that is computed otherwise.
// CHECK-LABEL: @others
// CHECK-COUNT-4: scf.if
func.func @others(%u : f64, %n : i64, %y : !rt.buf<f64>, %d : i1) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %r = scf.if %d -> (f64) {
    %a = rt.math log(%u) : (f64) -> f64
    scf.yield %a : f64
  } else {
    %b = rt.math log1m(%u) : (f64) -> f64
    scf.yield %b : f64
  }
  ad.target_add %r
  scf.for %i = %i0 to %n step %i1 : i64 {
    %x = rt.load %y[%i] : f64
    %c = arith.cmpf olt, %x, %u : f64
    %s = scf.if %c -> (f64) {
      %a = rt.math log(%x) : (f64) -> f64
      scf.yield %a : f64
    } else {
      %b = rt.math exp(%x) : (f64) -> f64
      scf.yield %b : f64
    }
    %t = scf.if %c -> (f64) {
      rt.check %d site 0 status 3
      %a = rt.math log(%x) : (f64) -> f64
      scf.yield %a : f64
    } else {
      %b = rt.math log1m(%x) : (f64) -> f64
      scf.yield %b : f64
    }
    %v, %w = scf.if %c -> (f64, f64) {
      %a = rt.math log(%x) : (f64) -> f64
      scf.yield %a, %x : f64, f64
    } else {
      %b = rt.math log1m(%x) : (f64) -> f64
      %e = arith.mulf %x, %x : f64
      scf.yield %b, %e : f64, f64
    }
    %z = arith.addf %s, %t : f64
    ad.target_add %z
    ad.target_add %v
    ad.target_add %w
  }
  func.return
}
