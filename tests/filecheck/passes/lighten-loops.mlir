// RUN: stan-opt -p lighten-loops,verify-dominance %s | filecheck %s
// RUN: stan-opt -p 'lighten-loops{few=true},verify-dominance' %s | filecheck %s

// The check of data has a loop of its own, the logarithm of data a table, and the check of a parameter sets a flag.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<2>} {
  // CHECK: rt.bound 2
  // CHECK: scf.for
  // CHECK-NOT: rt.math log
  // CHECK: rt.check %{{.*}} site -1 status 3
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %y[%i] : f64
      %positive = arith.cmpf ogt, %e, %none : f64
      rt.check %positive site 0 status 1
      %l = rt.math log(%e) : (f64) -> f64
      %t = rt.load %theta[%i] : f64
      %number = arith.cmpf ord, %t, %t : f64
      rt.check %number site 1 status 1
      %p = arith.mulf %l, %t : f64
      ad.target_add %p
    }
    func.return %none : f64
  }
  // CHECK-LABEL: @bind
  // CHECK: rt.check %{{.*}} site 0
  // CHECK: rt.math log
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
