// RUN: stan-opt -p solved-columns,verify-dominance --split-input-file %s | filecheck %s

// The solution is a combination of columns that are solved once.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.kernel
// CHECK:      scf.for
// CHECK:        scf.for
// CHECK:        rt.store
// CHECK:      func.func @bind
// CHECK:      rt.kernel solve_columns
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %x = rt.bound 1 : !rt.buf<f64>
    %y = rt.bound 2 : !rt.buf<f64>
    %L = rt.bound 3 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %a = rt.load %theta[%i0] : f64
    %b = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %u = rt.load %x[%i] : f64
      %m = arith.mulf %a, %u : f64
      %r = arith.subf %v, %m : f64
      rt.store %r, %b[%i] : f64
    }
    %z = rt.alloc %n : !rt.buf<f64>
    rt.kernel mdivide_left_tri_low(%L, %b, %n, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    %e = rt.load %z[%i1] : f64
    func.return %e : f64
  }
}

// -----

// A multiple of data: what is solved is divided by it where it is read, and what reads it multiplies data.
// CHECK-LABEL: @evaluate
// CHECK:      [[ENTRY:%.*]] = rt.load %L
// CHECK-NEXT: arith.mulf %a, [[ENTRY]]
// CHECK:      [[SOLVED:%.*]] = rt.load %z
// CHECK-NEXT: arith.divf [[SOLVED]], %a
// CHECK:      func.func @bind
// CHECK:      rt.kernel solve_columns
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %L = rt.bound 3 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %a = rt.load %theta[%i0] : f64
    %size = arith.muli %n, %n : i64
    %M = rt.alloc %size : !rt.buf<f64>
    scf.for %i = %i0 to %size step %i1 : i64 {
      %v = rt.load %L[%i] : f64
      %m = arith.mulf %a, %v : f64
      rt.store %m, %M[%i] : f64
    }
    %d = rt.load %M[%i0] : f64
    %b = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %d : f64
      rt.store %r, %b[%i] : f64
    }
    %z = rt.alloc %n : !rt.buf<f64>
    rt.kernel mdivide_left_tri_low(%M, %b, %n, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    %e = rt.load %z[%i1] : f64
    func.return %e : f64
  }
}

// -----

// A matrix of parameters.
// CHECK-LABEL: @evaluate
// CHECK:      rt.kernel mdivide_left_tri_low
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %a = rt.load %theta[%i0] : f64
    %b = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %r = arith.subf %v, %a : f64
      rt.store %r, %b[%i] : f64
    }
    %z = rt.alloc %n : !rt.buf<f64>
    rt.kernel mdivide_left_tri_low(%theta, %b, %n, %i1, %z) : (!rt.buf<f64>, !rt.buf<f64>, i64, i64, !rt.buf<f64>) -> ()
    %e = rt.load %z[%i1] : f64
    func.return %e : f64
  }
}
