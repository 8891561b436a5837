// RUN: stan-opt -p products-ahead,verify-dominance %s | filecheck %s

// Rows that are stored one behind the other are put side by side when data are bound; few rows or columns stay.
// CHECK-LABEL: @evaluate
// CHECK-DAG:  [[TABLE:%.*]] = rt.bound {{.*}} : !rt.buf<f64>
// CHECK-DAG:  [[ENOUGH:%.*]] = rt.bound {{.*}} : i1
// CHECK:      scf.if [[ENOUGH]] {
// CHECK:        [[SUMS:%.*]] = rt.alloc zero
// CHECK:        scf.for [[K:%.*]] =
// CHECK:          scf.for [[N:%.*]] =
// CHECK:            rt.load [[TABLE]]
// CHECK:            ad.accumulate [[SUMS]]{{\[}}[[N]]{{\]}}
// CHECK:        scf.for
// CHECK-NOT:    scf.for
// CHECK:        ad.target_add
// CHECK:      } else {
// CHECK:        scf.for
// CHECK:          scf.for
// CHECK:      func.func @bind
// CHECK:      arith.cmpi sge
// CHECK:      scf.if
// CHECK:        scf.for
// CHECK:          scf.for
// CHECK:            rt.store
func.func @evaluate(%p: !rt.buf<f64>, %flags: i32) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
  %i0 = arith.constant 0 : i64
  %i1 = arith.constant 1 : i64
  %z = arith.constant 0.0 : f64
  %x = rt.bound 0 : !rt.buf<f64>
  %n = rt.bound 1 : i64
  %columns = rt.bound 2 : i64
  %b = rt.alloc %columns : !rt.buf<f64>
  ad.independent %b, %columns
  rt.copy %p to %b, %columns initial : !rt.buf<f64>
  scf.for %i = %i0 to %n step %i1 : i64 {
    %s = scf.for %k = %i0 to %columns step %i1 iter_args(%t = %z) -> (f64) : i64 {
      %start = arith.muli %i, %columns : i64
      %at = arith.addi %start, %k : i64
      %entry = rt.load %x[%at] : f64
      %c = rt.load %b[%k] : f64
      %d = arith.mulf %entry, %c : f64
      %e = arith.addf %t, %d fastmath<reassoc> : f64
      scf.yield %e : f64
    }
    %f = rt.math exp(%s) : (f64) -> f64
    ad.target_add %f
  }
  func.return %z : f64
}
func.func @bind() attributes {rt.entry = #rt.entry} {
  func.return
}
