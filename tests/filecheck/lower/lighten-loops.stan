// Checks leave the loop: that of data for `bind`, that of the scale to before the loop, that of the mean becomes a flag.
// Costly functions of data become a table.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data,lighten-loops' | filecheck %s

data {
  int N;
  vector<lower=0>[N] y;
  vector[N] x;
}
parameters {
  real beta;
  real<lower=0> sigma;
}
model {
  for (n in 1:N) y[n] ~ lognormal(beta * x[n], sigma);
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.bound {{[0-9]+}} : !rt.buf<f64>
// CHECK: rt.check %{{.*}} site {{[0-9]+}} status 3 with %{{.*}}
// CHECK: %[[FLAG:.*]] = scf.for
// CHECK-NOT: rt.check
// CHECK-NOT: function = "log"
// CHECK: arith.ori
// CHECK: scf.yield
// CHECK: %[[FINE:.*]] = arith.cmpi eq, %[[FLAG]],
// CHECK-NEXT: rt.check %[[FINE]] site -1 status 3
// CHECK-LABEL: func.func @bind
// CHECK-DAG: rt.check
// CHECK-DAG: rt.math log(%{{.*}})
