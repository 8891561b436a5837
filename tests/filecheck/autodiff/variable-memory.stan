// An element that is overwritten: its adjoint is read and cleared; what was read before is kept, not read again.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

data {
  int N;
}
parameters {
  vector[N] a;
}
model {
  vector[N] x = a;
  for (n in 2:N) x[n] = x[n] * x[n - 1];
  target += sum(x);
}

// CHECK-LABEL: func.func @evaluate
// CHECK: rt.alloc variable %{{.*}}
// CHECK: ad.keep
// CHECK: ad.take
// CHECK: ad.kept
// CHECK: ad.accumulate
