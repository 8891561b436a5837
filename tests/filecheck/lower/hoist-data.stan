// Work on data alone goes to `bind`, which runs once; its results pass through the bound table.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data' | filecheck %s

data {
  int N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  target += mu * sum(exp(y));
}

// CHECK-LABEL: func.func @evaluate
// CHECK: %[[SUM:.*]] = rt.bound [[SLOT:[0-9]+]] : f64
// CHECK-NOT: function = "exp"
// CHECK: arith.mulf %{{.*}}, %[[SUM]]
// CHECK-LABEL: func.func @bind
// CHECK: scf.for
// CHECK: rt.math exp(%{{.*}})
// CHECK: rt.set_bound [[SLOT]], %{{.*}} : f64
