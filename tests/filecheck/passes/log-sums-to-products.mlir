// RUN: stan-opt -p log-sums-to-products,dce,verify-dominance %s | filecheck %s

// One logarithm of a sum of products; what is not in range goes by the way that was there, in a second loop.
// CHECK-LABEL: @two
// CHECK:      [[BAD:%.*]] = scf.for %n = %i0 to %count step %i1 iter_args([[OLD:%.*]] = {{.*}}) -> (i64)
// CHECK-NOT:  rt.math log_sum_exp
// CHECK:      [[SUM:%.*]] = arith.addf {{.*}} fastmath<reassoc>
// CHECK:      [[OK:%.*]] = arith.andi
// CHECK:      [[SAFE:%.*]] = arith.select [[OK]], [[SUM]]
// CHECK-NEXT: [[LOG:%.*]] = rt.math log([[SAFE]])
// CHECK-NEXT: ad.target_add [[LOG]]
// CHECK:      [[END:%.*]] = arith.select {{.*}}, %i0, %count : i64
// CHECK-NEXT: scf.for {{.*}} = %i0 to [[END]] step %i1
// CHECK:      scf.if
// CHECK-NEXT: } else {
// CHECK:      rt.math log_sum_exp
// CHECK-NEXT: ad.target_add
// CHECK:      rt.loop<cold>
func.func @two(%a : !rt.buf<f64>, %count : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  scf.for %n = %i0 to %count step %i1 : i64 {
    %x = rt.load %a[%n] : f64
    %l = rt.math log(%x) : (f64) -> f64
    %m = rt.math log1m(%x) : (f64) -> f64
    %t = rt.math log_sum_exp(%l, %m) : (f64, f64) -> f64
    ad.target_add %t
  }
  func.return
}

// Memory of logarithms gets a twin, of what these are the logarithms of.
// CHECK-LABEL: @memory
// CHECK:      %logs = rt.alloc %count
// CHECK-NEXT: [[TWIN:%.*]] = rt.alloc %count
// CHECK:      rt.store {{.*}}, [[TWIN]][%k]
// CHECK:      rt.load [[TWIN]][%n]
// CHECK-NEXT: rt.load [[TWIN]][%i0]
// CHECK-NEXT: arith.addf
func.func @memory(%u : f64, %count : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %logs = rt.alloc %count : !rt.buf<f64>
  %p = rt.math exp(%u) : (f64) -> f64
  scf.for %k = %i0 to %count step %i1 : i64 {
    %f = arith.sitofp %k : i64 to f64
    %q = arith.mulf %p, %f : f64
    %l = rt.math log(%q) : (f64) -> f64
    rt.store %l, %logs[%k] initial : f64
  }
  scf.for %n = %i0 to %count step %i1 : i64 {
    %x = rt.load %logs[%n] : f64
    %y = rt.load %logs[%i0] : f64
    %t = rt.math log_sum_exp(%x, %y) : (f64, f64) -> f64
    ad.target_add %t
  }
  func.return
}

// A term that is no logarithm, a result that is used otherwise, what the loop carries.
// CHECK-LABEL: @others
// CHECK-NOT: arith.select
func.func @others(%a : !rt.buf<f64>, %count : i64, %u : f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %e = scf.for %n = %i0 to %count step %i1 iter_args(%c = %u) -> (f64) : i64 {
    %x = rt.load %a[%n] : f64
    %l = rt.math log(%x) : (f64) -> f64
    %s = arith.mulf %x, %x : f64
    %t = rt.math log_sum_exp(%l, %s) : (f64, f64) -> f64
    ad.target_add %t
    %v = rt.math log_sum_exp(%l, %l) : (f64, f64) -> f64
    %w = arith.mulf %v, %v : f64
    ad.target_add %w
    %d = rt.math log(%c) : (f64) -> f64
    %z = rt.math log_sum_exp(%l, %d) : (f64, f64) -> f64
    ad.target_add %z
    %h = arith.mulf %c, %x : f64
    scf.yield %h : f64
  }
  ad.target_add %e
  func.return
}

// Two terms with weights (log_mix): the logarithms of weights that the loop does not change are taken ahead of it, also
// where it computes one of them anew, or one term is 0 and no difference to it is written.
// CHECK-LABEL: @mixtures
// CHECK:      [[LV:%.*]] = rt.math log(%v)
// CHECK:      [[W:%.*]] = arith.subf %one, %v
// CHECK-NEXT: [[LW:%.*]] = rt.math log([[W]])
// CHECK:      scf.for
// CHECK:        [[A:%.*]] = arith.addf [[LV]], %x
// CHECK-NEXT:   [[B:%.*]] = arith.addf [[LW]], %none
// CHECK-NEXT:   [[S:%.*]] = rt.math log_sum_exp([[A]], [[B]])
// CHECK-NEXT:   ad.target_add [[S]]
func.func @mixtures(%a : !rt.buf<f64>, %count : i64, %v : f64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  %one = arith.constant 1.0 : f64
  scf.for %n = %i0 to %count step %i1 : i64 {
    %x = rt.load %a[%n] : f64
    %c = arith.cmpf ogt, %x, %none : f64
    %m = arith.select %c, %x, %none : f64
    %below = arith.subf %none, %x : f64
    %gap = arith.select %c, %below, %x : f64
    %w = arith.subf %one, %v : f64
    %first = arith.select %c, %v, %w : f64
    %other = arith.select %c, %w, %v : f64
    %e = rt.math exp(%gap) : (f64) -> f64
    %p = arith.mulf %other, %e : f64
    %s = arith.addf %first, %p : f64
    %l = rt.math log(%s) : (f64) -> f64
    %t = arith.addf %m, %l : f64
    ad.target_add %t
  }
  func.return
}
