// Within a loop a nest of loops is shared if it is equal to another; a loop without one, which LLVM may widen, is not.
// RUN: stan-opt %s -p 'structure-exits,promote-variables,convert-stan-to-loops{unit=value_full},simplify,thread-target,dce,share-parts{above=20 least=8 relocated=true}' | filecheck %s

data {
  int K;
  int N;
  matrix[N, N] x;
  matrix[N, N] y;
}
parameters {
  vector[K] a;
}
model {
  for (k in 1:K) {
    for (i in 1:N) {
      real sum_x = 0;
      for (j in 1:N) sum_x += exp(a[k] * x[i, j]) - expm1(a[k] - x[i, j]) * cos(a[k]) / tanh(a[k]);
      target += -log1p(abs(sum_x));
    }
    for (i in 1:N) {
      real sum_y = 0;
      for (j in 1:N) sum_y += exp(a[k] * y[i, j]) - expm1(a[k] - y[i, j]) * cos(a[k]) / tanh(a[k]);
      target += -log1p(abs(sum_y));
    }
    for (i in 1:N) target += exp(a[k] * x[i, 1]) * sin(a[k]) - cos(a[k] * x[i, 1]) * tanh(x[i, 1]);
    for (i in 1:N) target += exp(a[k] * y[i, 1]) * sin(a[k]) - cos(a[k] * y[i, 1]) * tanh(y[i, 1]);
  }
}

// CHECK: func.func @evaluate(
// CHECK: scf.for
// CHECK: func.call @evaluate.shared(
// CHECK-NOT: scf.for
// CHECK: func.call @evaluate.shared(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: func.func private @evaluate.shared(
// CHECK: scf.for
// CHECK: scf.for
// CHECK-NOT: func.func
