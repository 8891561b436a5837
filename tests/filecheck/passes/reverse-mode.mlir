// RUN: stan-opt -p reverse-mode,verify-dominance %s | filecheck %s

// The forward sweep as it was, then the adjoints, last op first; they are added to the gradient of the parameters.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<0>} {
  // CHECK-SAME: %gradient: !rt.buf<f64>
  // CHECK: rt.math exp
  // CHECK: ad.target_add
  // CHECK: arith.mulf
  // CHECK: ad.accumulate
  // CHECK: rt.copy %{{.*}} to %gradient
  // CHECK-NOT: ad.gradient
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %x = rt.alloc %one : !rt.buf<f64>
    ad.independent %x, %one
    rt.copy %theta to %x, %one initial : !rt.buf<f64>
    %a = rt.load %x[%zero] : f64
    %s = rt.math square(%a) : (f64) -> f64
    %e = rt.math exp(%a) : (f64) -> f64
    %p = arith.mulf %s, %e : f64
    ad.target_add %p
    func.return %none : f64
  }
  ad.gradient @evaluate
}
