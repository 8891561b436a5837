// RUN: stan-opt -p linear-layouts,verify-dominance --split-input-file %s | filecheck %s

// A scale of groups: squares of all kinds by a kernel, if the scale of each is moderate; what rows add besides, times how
// many there are.
// CHECK-LABEL: @evaluate
// CHECK:      rt.kernel kind_squares
// CHECK:      [[WRONG:%.*]] = scf.for
// CHECK:        [[KEY:%.*]] = rt.load {{.*}} : i64
// CHECK:        rt.load %s[[[KEY]]] : f64
// CHECK:        arith.ori
// CHECK:      arith.cmpi eq, [[WRONG]]
// CHECK:      scf.if
// CHECK:        scf.for
// CHECK:          rt.math inv
// CHECK:          ad.target_add
// CHECK:          rt.math log
// CHECK:          ad.target_add
// CHECK-NOT:      ad.target_add
// CHECK:      } else {
// CHECK-NEXT:   scf.for %i = %i0 to %n
// CHECK-LABEL: @bind
// CHECK:      rt.kernel kinds_begin
// CHECK:      scf.for {{.*}} %i0 to %n
// CHECK:        rt.load %g
// CHECK:        rt.kernel kinds_rows
// CHECK:      rt.kernel kinds_turn
// CHECK:      rt.layout "reduced rows" slot 4 outcome {{.*}} figures ["rows", "kinds", "coefficients", "bytes"]
// CHECK:      rt.kernel kinds_tables
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i64>
    %y = rt.bound 2 : !rt.buf<f64>
    %k = rt.bound 3 : i64
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    %s = rt.view %theta[%k] : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %j = rt.load %g[%i] : i64
      %scale = rt.load %s[%j] : f64
      %inverse = rt.math inv(%scale) : (f64) -> f64
      %r = arith.subf %v, %b : f64
      %z = arith.mulf %r, %inverse : f64
      %q = rt.math square(%z) : (f64) -> f64
      ad.target_add %q
      %log = rt.math log(%scale) : (f64) -> f64
      ad.target_add %log
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// A scale of each row.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.kernel
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %y = rt.bound 2 : !rt.buf<f64>
    %k = rt.bound 3 : i64
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    %b = rt.load %theta[%i0] : f64
    %s = rt.view %theta[%k] : !rt.buf<f64>
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %scale = rt.load %s[%i] : f64
      %inverse = rt.math inv(%scale) : (f64) -> f64
      %r = arith.subf %v, %b : f64
      %z = arith.mulf %r, %inverse : f64
      %q = rt.math square(%z) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}

// -----

// Data times a coefficient of groups is linear: the coefficient is no scale.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.kernel kind_squares
// CHECK:      rt.kernel reduced_squares
// CHECK-NOT:  rt.kernel kind_squares
builtin.module attributes {rt.slots = #rt.slots<4>} {
  func.func @evaluate(%theta : !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %n = rt.bound 0 : i64
    %g = rt.bound 1 : !rt.buf<i64>
    %y = rt.bound 2 : !rt.buf<f64>
    %i0 = arith.constant 0 : i64
    %i1 = arith.constant 1 : i64
    scf.for %i = %i0 to %n step %i1 : i64 {
      %v = rt.load %y[%i] : f64
      %j = rt.load %g[%i] : i64
      %u = rt.load %theta[%j] : f64
      %z = arith.mulf %v, %u : f64
      %q = rt.math square(%z) : (f64) -> f64
      ad.target_add %q
    }
    %zero = arith.constant 0.0 : f64
    func.return %zero : f64
  }
}
