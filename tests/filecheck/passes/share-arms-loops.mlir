// RUN: stan-opt -p share-arms,verify-dominance %s | filecheck %s

// Both arms sum up the same terms in a loop, one of them into the target, with its ops in another order: one loop ahead
// of the branch. Loops with other terms stay.
// CHECK-LABEL: @evaluate
func.func @evaluate(%x: !rt.buf<f64>, %c: i1, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %none = arith.constant 0.0 : f64
  scf.for %i = %zero to %n step %one : i64 {
    // CHECK:      %[[SUM:.*]] = scf.for %{{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (f64)
    // CHECK:        rt.math log
    // CHECK:        arith.addf %[[S]], %{{.*}} fastmath<reassoc>
    // CHECK:      scf.if %c {
    // CHECK-NEXT:   ad.target_add
    // CHECK-NEXT:   ad.target_add %[[SUM]]
    // CHECK-NEXT:   scf.for
    // CHECK:      } else {
    // CHECK-NOT:    rt.math log
    // CHECK:        %[[E:.*]] = rt.math exp(%[[SUM]])
    scf.if %c {
      ad.target_add %none
      scf.for %j = %zero to %n step %one : i64 {
        %a = rt.load %x[%j] : f64
        %l = rt.math log(%a) : (f64) -> f64
        %ok = arith.cmpf oge, %a, %a : f64
        rt.check %ok site 1 status 1
        ad.target_add %l
        ad.target_add %a
      }
      scf.for %j = %zero to %n step %one : i64 {
        %a = rt.load %x[%j] : f64
        ad.target_add %a
      }
    } else {
      %s = scf.for %j = %zero to %n step %one iter_args(%t = %none) -> (f64) : i64 {
        %a = rt.load %x[%j] : f64
        %ok = arith.cmpf oge, %a, %a : f64
        rt.check %ok site 2 status 1
        %l = rt.math log(%a) : (f64) -> f64
        %both = arith.addf %l, %a : f64
        %u = arith.addf %t, %both fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      %w = scf.for %j = %zero to %n step %one iter_args(%t = %none) -> (f64) : i64 {
        %a = rt.load %x[%i] : f64
        %u = arith.addf %t, %a fastmath<reassoc> : f64
        scf.yield %u : f64
      }
      %e = rt.math exp(%s) : (f64) -> f64
      ad.target_add %e
      ad.target_add %w
    }
  }
  func.return
}
