// RUN: stan-opt -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_propto}' %s | filecheck %s

// A whole-vector statement becomes a loop; no vector is made for the product.
// CHECK-LABEL: @evaluate
// CHECK-COUNT-1: rt.alloc
// CHECK-NOT: rt.alloc
// CHECK: scf.for
// CHECK: arith.mulf
// CHECK: ad.target_add
data {
  int N;
  vector[N] x;
}
parameters {
  real b;
}
model {
  target += sum(exp(x * b));
}
