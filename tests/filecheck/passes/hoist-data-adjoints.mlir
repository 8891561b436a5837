// RUN: stan-opt -p hoist-data,verify-dominance %s | filecheck %s

// Adjoints of what functions of solvers call: a record has them, by which they are written. Data that a function that is
// not differentiated reads are moved nevertheless.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<2>} {
  // CHECK: %[[LOGS:.*]] = rt.bound 2 : !rt.buf<f64>
  // CHECK: %adjoint = rt.alloc
  // CHECK-NEXT: rt.fill %adjoint
  // CHECK: func.call @f.forward(%{{.*}}, %adjoint)
  // CHECK: func.call @g(%[[LOGS]])
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %n = rt.bound 0 : i64
    %y = rt.bound 1 : !rt.buf<f64>
    %adjoint = rt.alloc %n : !rt.buf<f64>
    rt.fill %adjoint, %none, %n initial : f64
    %logs = rt.alloc %n : !rt.buf<f64>
    scf.for %i = %zero to %n step %one : i64 {
      %e = rt.load %y[%i] : f64
      %l = rt.math log(%e) : (f64) -> f64
      rt.store %l, %logs[%i] initial : f64
    }
    %value, %record = func.call @f.forward(%theta, %adjoint) : (!rt.buf<f64>, !rt.buf<f64>) -> (f64, !rt.buf<f64>)
    func.call @f.reverse(%record, %value) : (!rt.buf<f64>, f64) -> ()
    %other = func.call @g(%logs) : (!rt.buf<f64>) -> f64
    %d = rt.load %adjoint[%zero] : f64
    %p = arith.mulf %d, %other : f64
    ad.target_add %p
    ad.accumulate %theta[%zero], %value
    func.return %none : f64
  }
  func.func private @f.forward(!rt.buf<f64>, !rt.buf<f64>) -> (f64, !rt.buf<f64>)
  func.func private @f.reverse(!rt.buf<f64>, f64) -> ()
  func.func private @g(!rt.buf<f64>) -> f64
  // CHECK: @bind
  // CHECK: rt.alloc_bound
  func.func @bind() attributes {rt.entry = #rt.entry} {
    func.return
  }
}
