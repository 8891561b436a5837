// A vectorised density: one loop over the elements; summands of scalar arguments once, times the number of elements, and 0 if there are none.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify' | filecheck %s
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_propto},simplify' | filecheck %s --check-prefix=PROPTO

data {
  int N;
  vector[N] y;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  y ~ normal(mu, sigma);
}

// CHECK-LABEL: func.func @evaluate
// CHECK-DAG: %[[COUNT:.*]] = arith.sitofp
// CHECK-DAG: %[[LOG:.*]] = rt.math log(%{{.*}})
// CHECK: %[[MINUS:.*]] = arith.negf %[[LOG]]
// CHECK: %[[TERM:.*]] = arith.mulf %[[COUNT]], %[[MINUS]]
// CHECK: %[[ANY:.*]] = arith.select %{{.*}}, %{{.*}}, %[[TERM]]
// CHECK: ad.target_add %[[ANY]]
// CHECK: scf.for
// CHECK-NOT: function = "log"
// CHECK: rt.math square(%{{.*}})
// CHECK: rt.check
// CHECK: ad.target_add

// What has no parameter is dropped: two additions, not three (log Jacobian apart).
// PROPTO-LABEL: func.func @evaluate
// PROPTO-COUNT-3: ad.target_add
// PROPTO-NOT: ad.target_add
