// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=gradient_propto},simplify,hoist-data,lighten-loops,reverse-mode,cse' | filecheck %s

// How many iterations a loop has that starts elsewhere than at 0 is known ahead of the loops around it that do not
// change that: rows are then seen to be of one length.
data {
  int N;
  int T;
  array[N, T] int y;
}
parameters {
  vector[T] p;
}
model {
  for (n in 1 : N) {
    real l = p[1];
    for (t in 2 : T) {
      l = l + y[n, t] * p[t];
    }
    target += log1p_exp(l);
  }
}
// CHECK-LABEL: @evaluate
// CHECK-NOT: scf.for
// CHECK:     arith.maxsi
// CHECK:     scf.for
// CHECK:       scf.for
// CHECK-NOT: arith.maxsi
// CHECK:     func.return
