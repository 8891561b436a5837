// RUN: stan-opt --split-input-file -p invariant-kernels,verify-dominance %s | filecheck %s

// A factor that each iteration takes of the same matrix is taken once, if there is an iteration; so is what fills its
// memory. What is solved with it differs from row to row. A check that refuses the point may come first.
builtin.module {
  func.func @evaluate(%x: !rt.buf<f64>, %v: !rt.buf<f64>, %k: i64, %n: i64, %ok: i1) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %kk = arith.muli %k, %k : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %0 to %n step %1 : i64 {
      %s = rt.alloc %kk : !rt.buf<f64>
      rt.copy %v to %s, %kk : !rt.buf<f64>
      rt.check %ok site 3 status 1
      %l = rt.alloc %kk : !rt.buf<f64>
      rt.kernel cholesky_decompose(%s, %k, %l) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
      %at = arith.muli %i, %k : i64
      %row = rt.view %x[%at] : !rt.buf<f64>
      %z = rt.alloc %k : !rt.buf<f64>
      rt.kernel mdivide_left_tri_low(%l, %row, %k, %1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
      %e = rt.load %z[%0] : f64
      ad.target_add %e
    }
    func.return %zero : f64
  }
}
// CHECK:       %s = rt.alloc %kk
// CHECK-NEXT:  %l = rt.alloc %kk
// CHECK-NEXT:  [[RUNS:%.*]] = arith.cmpi slt, %0, %n : i64
// CHECK-NEXT:  scf.if [[RUNS]] {
// CHECK-NEXT:    rt.copy %v to %s
// CHECK-NEXT:    rt.kernel cholesky_decompose(%s, %k, %l) throws site 0
// CHECK-NEXT:  } else {
// CHECK-NEXT:  }
// CHECK-NEXT:  scf.for %i = %0 to %n
// CHECK-NEXT:    rt.check
// CHECK-NEXT:    arith.muli
// CHECK-NEXT:    %row = rt.view
// CHECK-NEXT:    %z = rt.alloc
// CHECK-NEXT:    rt.kernel mdivide_left_tri_low

// -----

// Sizes that do not fit leave the program for good: nothing may be written before that is known. Nor is a kernel called
// in front of a loop that changes its matrix, reads what it fills before it does, or takes one by an index of its own.
builtin.module {
  func.func @evaluate(%v: !rt.buf<f64>, %k: i64, %n: i64, %ok: i1) -> f64 attributes {rt.entry = #rt.entry} {
    %0 = arith.constant 0 : i64
    %1 = arith.constant 1 : i64
    %kk = arith.muli %k, %k : i64
    %zero = arith.constant 0.0 : f64
    scf.for %i = %0 to %n step %1 : i64 {
      rt.check %ok site 3 status 2
      %l = rt.alloc %kk : !rt.buf<f64>
      rt.kernel cholesky_decompose(%v, %k, %l) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    }
    %u = rt.alloc %kk : !rt.buf<f64>
    rt.copy %v to %u, %kk : !rt.buf<f64>
    scf.for %i = %0 to %n step %1 : i64 {
      %l = rt.alloc %kk : !rt.buf<f64>
      rt.kernel cholesky_decompose(%u, %k, %l) throws site 1 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
      %e = rt.load %l[%0] : f64
      rt.store %e, %u[%0] : f64
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %l = rt.alloc zero %kk : !rt.buf<f64>
      %e = rt.load %l[%0] : f64
      ad.target_add %e
      rt.kernel cholesky_decompose(%v, %k, %l) throws site 2 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    }
    scf.for %i = %0 to %n step %1 : i64 {
      %at = arith.muli %i, %kk : i64
      %m = rt.view %v[%at] : !rt.buf<f64>
      %l = rt.alloc %kk : !rt.buf<f64>
      rt.kernel cholesky_decompose(%m, %k, %l) throws site 2 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    }
    func.return %zero : f64
  }
}
// CHECK-NOT:   scf.if
// CHECK:       func.return
