// RUN: stan-opt -p scaled-factors,verify-dominance --split-input-file %s | filecheck %s

// CHECK-LABEL: @evaluate
// CHECK:      scf.if
// CHECK:      } else {
// CHECK:      rt.kernel cholesky_decompose
// CHECK:      }
// CHECK-NEXT: rt.math sqrt(%c)
// CHECK:      scf.for
// CHECK:      rt.store {{%.*}}, %L
// CHECK:      func.func @bind
// CHECK:      rt.kernel factor_if_positive
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %V = rt.bound 1 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %c = rt.load %theta[%i0] : f64
    %size = arith.muli %n, %n : i64
    %S = rt.alloc %size : !rt.buf<f64>
    scf.for %i = %i0 to %size step %i1 : i64 {
      %v = rt.load %V[%i] : f64
      %m = arith.mulf %c, %v : f64
      rt.store %m, %S[%i] : f64
    }
    %L = rt.alloc %size : !rt.buf<f64>
    rt.kernel cholesky_decompose(%S, %n, %L) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    %e = rt.load %L[%i0] : f64
    func.return %e : f64
  }
}

// -----

// The multiple is read elsewhere, too.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  scf.if
// CHECK:      rt.kernel cholesky_decompose
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %V = rt.bound 1 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %c = rt.load %theta[%i0] : f64
    %size = arith.muli %n, %n : i64
    %S = rt.alloc %size : !rt.buf<f64>
    scf.for %i = %i0 to %size step %i1 : i64 {
      %v = rt.load %V[%i] : f64
      %m = arith.mulf %c, %v : f64
      rt.store %m, %S[%i] : f64
    }
    %L = rt.alloc %size : !rt.buf<f64>
    rt.kernel cholesky_decompose(%S, %n, %L) throws site 0 : (!rt.buf<f64>, i64, !rt.buf<f64>) -> ()
    %e = rt.load %S[%i0] : f64
    func.return %e : f64
  }
}
