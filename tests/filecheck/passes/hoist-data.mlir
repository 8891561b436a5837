// RUN: stan-opt -p hoist-data,verify-dominance %s | filecheck %s

// What depends on data alone goes to `bind`, which runs once; `evaluate` finds the result in a slot of the bound table.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<2>} {
  // CHECK: %[[SUM:.*]] = rt.bound 2 : f64
  // CHECK-NOT: scf.for
  // CHECK: arith.mulf %{{.*}}, %[[SUM]]
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %sum = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> (f64) : i64 {
      %e = rt.load %y[%i] : f64
      %l = rt.math log(%e) : (f64) -> f64
      %next = arith.addf %s, %l : f64
      scf.yield %next : f64
    }
    %t = rt.load %theta[%zero] : f64
    %p = arith.mulf %t, %sum : f64
    ad.target_add %p
    func.return %none : f64
  }
  // CHECK-LABEL: @bind
  // CHECK: scf.for
  // CHECK: rt.set_bound 2
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
