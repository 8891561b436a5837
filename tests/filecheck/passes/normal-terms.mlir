// RUN: stan-opt -p normal-terms,dce,verify-dominance %s | filecheck %s

// A factor and what a density computes of it are one kernel, where the system is solved.

"builtin.module"() ({
  func.func @evaluate(%A : !rt.buf<f64>, %b : !rt.buf<f64>, %n : i64) -> f64 attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %nothing = arith.constant 0.0 : f64
    %nn = arith.muli %n, %n : i64
    %L = rt.alloc %nn : !rt.buf<f64>
    rt.kernel cholesky_decompose(%A, %n, %L) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    %z = rt.alloc %n : !rt.buf<f64>
    rt.kernel mdivide_left_tri_low(%L, %b, %n, %one, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    %q = scf.for %k = %zero to %n step %one iter_args(%s = %nothing) -> (f64) : i64 {
      %element = rt.load %z[%k] : f64
      %square = arith.mulf %element, %element : f64
      %t = arith.addf %s, %square : f64
      scf.yield %t : f64
    }
    %d = scf.for %k = %zero to %n step %one iter_args(%s = %nothing) -> (f64) : i64 {
      %column = arith.muli %k, %n : i64
      %place = arith.addi %column, %k : i64
      %element = rt.load %L[%place] : f64
      %log = rt.math log(%element) : (f64) -> f64
      %t = arith.addf %s, %log : f64
      scf.yield %t : f64
    }
    %result = arith.addf %q, %d : f64
    func.return %result : f64
  }
}) : () -> ()

// CHECK:      %L = rt.alloc
// CHECK-NOT:  scf.for
// CHECK:      rt.kernel normal_terms(%A, %b, %n, %one, %[[S:.*]], %[[D:.*]], %L, %z) throws site 0
// CHECK-NEXT: %q = rt.load %[[S]][
// CHECK-NEXT: %d = rt.load %[[D]][
// CHECK-NEXT: arith.addf %q, %d
