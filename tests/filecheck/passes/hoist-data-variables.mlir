// RUN: stan-opt -p 'hoist-data{variables=true},verify-dominance' %s --split-input-file | filecheck %s

// A variable that data fill, and that nothing reads before: it is filled when data are bound.
// CHECK-LABEL: @evaluate
// CHECK-NOT:  rt.alloc
// CHECK-NOT:  rt.store
// CHECK:      func.func @bind
// CHECK:      rt.fill
// CHECK:      scf.for
// CHECK:        rt.store
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %z = rt.alloc variable %n : !rt.buf<f64>
    rt.fill %z, %none, %n initial : f64
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %y[%i] : f64
      %s = rt.math square(%e) : (f64) -> f64
      rt.store %s, %z[%i] : f64
    }
    %t = rt.load %theta[%zero] : f64
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %z[%i] : f64
      %p = arith.mulf %t, %e : f64
      ad.target_add %p
    }
    func.return %none : f64
  }
}

// -----

// One that is read between, and one that a parameter gets into.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-2: rt.alloc variable
// CHECK:      func.func @bind
// CHECK-NOT:  rt.store
builtin.module attributes {rt.slots = #rt.slots<2>} {
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %t = rt.load %theta[%zero] : f64
    %z = rt.alloc variable %n : !rt.buf<f64>
    rt.fill %z, %none, %n initial : f64
    %a = rt.load %z[%zero] : f64
    ad.target_add %a
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %y[%i] : f64
      rt.store %e, %z[%i] : f64
    }
    %w = rt.alloc variable %n : !rt.buf<f64>
    rt.fill %w, %none, %n initial : f64
    rt.store %t, %w[%zero] : f64
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %z[%i] : f64
      %f = rt.load %w[%i] : f64
      %p = arith.mulf %f, %e : f64
      ad.target_add %p
    }
    func.return %none : f64
  }
}
