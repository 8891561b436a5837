// What a branch in a loop repeats is computed before the loop, if an iteration asks for it: bound data say so.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data,lighten-loops{reassociate=true}' | filecheck %s

data {
  int N;
  array[N] int y;
}
parameters {
  real<lower=0> a;
}
model {
  for (n in 1:N) if (y[n] == 1) target += log(a);
}

// CHECK-LABEL: @evaluate
// CHECK: %[[USED:.*]] = arith.cmpf oeq
// CHECK: %[[LOG:.*]] = scf.if %[[USED]] -> (f64) {
// CHECK-NEXT: %[[IN:.*]] = rt.math log(%{{.*}})
// CHECK-NEXT: scf.yield %[[IN]]
// CHECK: scf.for
// CHECK-NOT: rt.math
// CHECK: ad.target_add %[[LOG]]
// CHECK-LABEL: @bind
// CHECK: scf.for
// CHECK: scf.if
// CHECK: rt.store
