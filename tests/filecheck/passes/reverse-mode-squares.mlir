// RUN: stan-opt -p reverse-mode,verify-dominance %s | filecheck %s

// A power of two that a partial begins with goes to the adjoint: -0.5 * square(a) has the slope -a.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<0>} {
  // CHECK: %[[A:.*]] = rt.load
  // CHECK: ad.target_add
  // CHECK-NEXT: %[[SLOPE:.*]] = arith.negf %[[A]]
  // CHECK-NOT: arith.mulf
  // CHECK: ad.accumulate %{{.*}}, %[[SLOPE]]
  func.func @evaluate(%theta: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry, ad.target_position = #ad.target_position<result 0>} {
    %zero = arith.constant 0 : i64
    %one = arith.constant 1 : i64
    %none = arith.constant 0.0 : f64
    %half = arith.constant -0.5 : f64
    %x = rt.alloc %one : !rt.buf<f64>
    ad.independent %x, %one
    rt.copy %theta to %x, %one initial : !rt.buf<f64>
    %a = rt.load %x[%zero] : f64
    %s = rt.math square(%a) : (f64) -> f64
    %p = arith.mulf %half, %s : f64
    ad.target_add %p
    func.return %none : f64
  }
  ad.gradient @evaluate
}
