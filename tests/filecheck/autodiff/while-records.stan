// A while loop pushes a record per iteration on the var stack; the reverse loop pops them until there is none.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

parameters {
  real a;
}
model {
  real x = a;
  while (x < 10) x = x * x + 1;
  target += x;
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.null
// CHECK: scf.while
// CHECK: %[[TOP:.*]] = ad.push
// CHECK: rt.store %[[TOP]], %{{.*}}[%{{.*}}]
// CHECK: scf.while
// CHECK: rt.is_null
// CHECK: ad.pop
