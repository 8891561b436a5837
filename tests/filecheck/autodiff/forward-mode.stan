// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=hessian_vector_propto},simplify,reverse-mode,cse,thread-target,dce,forward-mode' | filecheck %s

// Each real has its tangent beside it, each buffer a buffer of tangents; what does not vary has none.

data {
  int N;
  vector[N] x;
}
parameters {
  real a;
}
model {
  for (n in 1:N) target += exp(a * x[n]);
}

// CHECK:      func.func @evaluate(%0: !rt.buf<f64>, %direction: !rt.buf<f64>, %gradient: !rt.buf<f64>, %product: !rt.buf<f64>, %1: i32) -> f64
// CHECK:      rt.copy %0 to [[theta:%.*]], [[count:%.*]] initial
// CHECK-NEXT: rt.copy %direction to [[tangents:%.*]], [[count]] initial
// CHECK:      [[a:%.*]] = rt.load [[theta]][{{.*}}]
// CHECK-NEXT: [[da:%.*]] = rt.load [[tangents]][{{.*}}]
// CHECK:      scf.for
// CHECK:      [[x:%.*]] = rt.load
// CHECK-NEXT: [[ax:%.*]] = arith.mulf [[a]], [[x]]
// CHECK-NEXT: [[dax:%.*]] = arith.mulf [[da]], [[x]]
// CHECK-NEXT: [[e:%.*]] = rt.math exp([[ax]])
// CHECK-NEXT: [[de:%.*]] = arith.mulf [[dax]], [[e]]
// CHECK:      arith.mulf [[e]], [[x]]
// CHECK-NEXT: arith.mulf [[de]], [[x]]
// CHECK:      rt.copy %{{.*}} to %gradient,
// CHECK-NEXT: rt.copy %{{.*}} to %product,
