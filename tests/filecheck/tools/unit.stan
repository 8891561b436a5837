// RUN: stan-opt %s --unit value_propto | filecheck %s --check-prefix=VALUE
// RUN: stan-opt %s --unit gradient_propto | filecheck %s --check-prefix=GRADIENT
// RUN: stan-opt %s --unit unconstrain | filecheck %s --check-prefix=UNCONSTRAIN
// RUN: stan-opt %s -t llvm --unit value_propto | filecheck %s --check-prefix=LLVM

// VALUE: func.func @evaluate(%{{.*}}: !rt.buf<f64>, %{{.*}}: i32) -> f64
// VALUE-NOT: stan.
// GRADIENT: func.func @evaluate(%{{.*}}: !rt.buf<f64>, %gradient: !rt.buf<f64>, %{{.*}}: i32) -> f64
// GRADIENT: ad.accumulate
// UNCONSTRAIN: func.func @evaluate(%{{.*}}: !rt.buf<f64>, %{{.*}}: !rt.buf<f64>)
// LLVM: define i32 @evaluate(ptr noalias %context, ptr noalias %bound, ptr noalias %{{.*}}, i32 %{{.*}}, ptr noalias %out.0)
parameters {
  real x;
}
model {
  target += -0.5 * square(x);
}
