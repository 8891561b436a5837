// RUN: stan-opt -p forward-mode,verify-dominance %s | filecheck %s

// Every value that varies has a tangent beside it, its derivative along `direction`; so the gradient has a product.
// CHECK-LABEL: @evaluate
builtin.module attributes {rt.slots = #rt.slots<0>} {
  // CHECK-SAME: %direction: !rt.buf<f64>
  // CHECK-SAME: %product: !rt.buf<f64>
  // CHECK: rt.load %direction
  // CHECK: rt.math exp
  // CHECK: arith.mulf
  // CHECK: rt.store %{{.*}}, %product
  func.func @evaluate(%theta: !rt.buf<f64>, %gradient: !rt.buf<f64>) -> f64 attributes {rt.entry = #rt.entry} {
    %zero = arith.constant 0 : i64
    %a = rt.load %theta[%zero] : f64
    %e = rt.math exp(%a) : (f64) -> f64
    rt.store %e, %gradient[%zero] : f64
    func.return %e : f64
  }
  ad.hessian_vector @evaluate
}
