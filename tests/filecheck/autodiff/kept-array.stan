// A loop that carries a value keeps what its reverse needs in an array sized by the trip count; the reverse runs
// backwards. A sum (here of the target) needs nothing kept.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

data {
  int N;
}
parameters {
  real a;
}
model {
  real x = a;
  for (n in 1:N) x = sin(x);
  target += x;
}

// CHECK-LABEL: func.func @evaluate
// CHECK: %[[TRIP:.*]] = arith.maxsi
// CHECK: %[[KEPT:.*]] = rt.alloc %[[TRIP]] : !rt.buf<f64>
// CHECK: scf.for
// CHECK: ad.keep %[[KEPT]][%{{.*}}], %[[X:.*]] :
// CHECK: rt.math sin(%[[X]])
// CHECK: scf.for
// CHECK: arith.subi %[[TRIP]],
// CHECK: %[[BACK:.*]] = ad.kept %[[KEPT]][%{{.*}}]
// CHECK: rt.math cos(%[[BACK]])
