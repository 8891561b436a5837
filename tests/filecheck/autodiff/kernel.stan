// A kernel is differentiated by its pullback, which takes the adjoints of what is active; null for the rest.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

data {
  int N;
  matrix[N, N] S;
}
parameters {
  vector[N] a;
}
model {
  target += sum(mdivide_left_tri_low(S, a));
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.kernel mdivide_left_tri_low(%{{.*}})
// CHECK: %[[NULL:.*]] = rt.null
// CHECK: rt.kernel mdivide_left_tri_low_pullback({{.*}}%[[NULL]]{{.*}})
