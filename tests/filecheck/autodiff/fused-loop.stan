// A loop that only adds to the target gets its reverse into the same body: nothing is kept.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

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

// CHECK-LABEL: func.func @evaluate
// CHECK-NOT: ad.keep
// CHECK: %[[ADJOINT:.*]] = scf.for
// CHECK: %[[EXP:.*]] = rt.math exp(%{{.*}})
// CHECK: ad.target_add %[[EXP]]
// CHECK: arith.mulf %[[EXP]], %{{.*}}
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<reassoc>
// CHECK: scf.yield
// CHECK-NOT: scf.for
// CHECK: ad.accumulate %{{.*}}[%{{.*}}], %[[ADJOINT]]
