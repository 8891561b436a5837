// RUN: stan-opt -p "unroll-small{most=6 inner=true}" %s | filecheck %s

// Of loops with up to six iterations those alone that stand in another loop, and do not run rarely.
// CHECK-LABEL: @nest
// CHECK-COUNT-6: ad.target_add
// CHECK:         rt.loop<cold>
// CHECK:         scf.for
// CHECK-NEXT:    ad.target_add
func.func @nest(%x : f64, %n : i64) {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %i5 = arith.constant 5 : i64
  scf.for %k = %i0 to %n step %i1 : i64 {
    scf.for %j = %i0 to %i5 step %i1 : i64 {
      ad.target_add %x
    }
    scf.for %j = %i0 to %i5 step %i1 : i64 {
      ad.target_add %x
    } {rt.loop = #rt.loop<cold>}
  }
  scf.for %j = %i0 to %i5 step %i1 : i64 {
    ad.target_add %x
  }
  func.return
}
