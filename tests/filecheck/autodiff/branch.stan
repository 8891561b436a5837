// A branch pops its condition by testing it again; values of the branch that ran are kept in the stack frame.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

data {
  int flag;
}
parameters {
  real a;
}
model {
  real x;
  if (a > 0) x = exp(sin(a)); else x = 1 / a;
  target += x * x;
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.alloc stack %{{.*}}
// CHECK: %[[C:.*]] = arith.cmpf ogt
// CHECK: scf.if %[[C]] -> (f64)
// CHECK: scf.if %[[C]] -> (f64)
// CHECK: rt.math cos(%{{.*}})
// CHECK: arith.divf
