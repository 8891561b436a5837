// RUN: stan-opt -p count-profile-entries,verify-dominance %s | filecheck %s

// A region that keeps a value in each iteration of a loop has its entries counted behind the loop.
// CHECK-LABEL: @evaluate
// CHECK: scf.for
// CHECK: ad.keep
// CHECK: arith.muli
// CHECK: ad.profile_entries
func.func @evaluate(%x: !rt.buf<f64>, %kept: !rt.buf<f64>, %n: i64) attributes {rt.entry = #rt.entry} {
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %ok = ad.profile_begin 0 named 0 gradient
  scf.if %ok {
    scf.for %i = %zero to %n step %one : i64 {
      %a = rt.load %x[%i] : f64
      %e = rt.math exp(%a) : (f64) -> f64
      ad.keep %kept[%i], %e : f64
    }
  } else {
  } {ad.profile = #ad.profile}
  ad.profile_end %ok, 0 named 0 gradient
  func.return
}
