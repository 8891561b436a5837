// RUN: stan-opt -p counted-loops -t stan %s | filecheck %s

// A counter from below, which nothing reads behind the loop; one that is raised first, and read behind it.
// CHECK-LABEL: model {
data {
  int<lower=0> N;
  int M;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  int n = 1;
  while (n <= N) {
    y[n] ~ normal(mu, 1);
    n += 1;
  }
  // CHECK:      for (n_sym1__ in n:N) {
  // CHECK-NEXT:   y[n_sym1__] ~ normal(mu, 1);
  // CHECK-NEXT: }
  int k = 0;
  while (N > k) {
    k = 1 + k;
    target += y[k] * mu;
  }
  // CHECK:      for (k_sym2__ in k:N - 1) {
  // CHECK-NEXT:   target += y[k_sym2__ + 1] * mu;
  // CHECK-NEXT: }
  // CHECK-NEXT: if (k < N) {
  // CHECK-NEXT:   k = N;
  // CHECK-NEXT: }
  target += k * mu;
  // A bound that may be the least int has none before it.
  int j = 0;
  while (j < M) {
    j += 1;
    target += j * mu;
  }
  // CHECK:      if (j < M) {
  // CHECK-NEXT:   for (j_sym3__ in j:M - 1) {
  // CHECK-NEXT:     target += (j_sym3__ + 1) * mu;
  // CHECK-NEXT:   }
  // CHECK-NEXT:   j = M;
  // CHECK-NEXT: }
  target += j * mu;
  // A bound that the body moves, a counter that a branch raises, another step, one that leaves the loop, a condition of
  // two parts, a comparison of reals.
  int m = N;
  int i = 1;
  while (i < m) {
    m -= 1;
    i += 1;
  }
  // CHECK: while (i < m)
  while (i < N) {
    if (y[i] > 0) {
      i += 1;
    }
  }
  // CHECK: while (i < N)
  while (i < N) {
    i += 2;
  }
  // CHECK: while (i < N)
  while (i < N) {
    if (y[i] > 0) {
      break;
    }
    i += 1;
  }
  // CHECK: while (i < N)
  while (i < N && y[i] > 0) {
    i += 1;
  }
  // CHECK: while (i < N && y[i] > 0)
  while (i < mu) {
    i += 1;
  }
  // CHECK: while (i < mu)
}
