// What the outer loop would compute for each n, but does not depend on n, is computed before it, once for each k.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,hoist-data,lighten-loops' | filecheck %s

data {
  int N;
  int K;
  matrix[N, K] y;
}
parameters {
  vector<lower=0>[K] theta;
}
model {
  for (n in 1:N) for (k in 1:K) target += y[n, k] * log(theta[k]);
}

// CHECK: %[[LOG:.*]] = rt.math log(%{{.*}})
// CHECK: rt.store %[[LOG]], %[[TABLE:[0-9]+]][%{{.*}}] initial
// CHECK: scf.for
// CHECK: scf.for
// CHECK: rt.load %[[TABLE]][%{{.*}}]
// CHECK-NOT: function = "log"
// CHECK: ad.target_add
