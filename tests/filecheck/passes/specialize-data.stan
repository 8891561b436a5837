// RUN: stan-opt -p specialize-data --data %S/Inputs/specialize-data.json -t stan --verify-each %s | filecheck %s
// RUN: stan-opt -O4 --data %S/Inputs/specialize-data.json -t stan --verify-each %s | filecheck %s --check-prefix=LEVEL

// LEVEL: parameters {
// LEVEL-NEXT: vector[2] a;

data {
  int<lower=0> N;
  int K;
  array[N] int<lower=1, upper=K> J;
  array[N] int from4;
  array[N] int ones;
  array[N] int down;
  vector[N] y;
  matrix[N, K] X;
  real s;
  vector[N] unit;
  real none;
  int least;
  tuple(int, vector[K]) t;
}
// Data are bound and checked as before; their sizes are known.
// CHECK:      data {
// CHECK-NEXT:   int<lower=0> N;
// CHECK-NEXT:   int K;
// CHECK-NEXT:   array[3] int<lower=1, upper=K> J;
// CHECK:        matrix[3, 2] X;
transformed data {
  int M = N * 2;
  vector[M] z = rep_vector(s, M);
  array[2] int q = {N, K};
}
// Transformed data that a later block reads are known, too.
// CHECK:      transformed data {
// CHECK-NEXT:   int M = 3 * 2;
// CHECK-NEXT:   vector[6] z = rep_vector(0.5, M);
// CHECK-NEXT:   array[2] int q = {3, 2};
parameters {
  vector[K] a;
  vector[M] b;
  array[q[1]] real c;
}
// CHECK:        vector[2] a;
// CHECK-NEXT:   vector[6] b;
// CHECK-NEXT:   array[3] real c;
transformed parameters {
  vector[N + 1] w = rep_vector(z[5], num_elements(b) - 2);
}
// CHECK:        vector[4] w = rep_vector(0.5, 6 - 2);
model {
  // Ints and reals; indices that differ from element to element stay.
  for (n in 1 : N) {
    y[n] ~ normal(a[J[n]], s);
  }
  // CHECK:      for (n in 1:3) {
  // CHECK-NEXT:   y[n] ~ normal(a[J[n]], 0.5);

  // A flag.
  if (K > 1) {
    target += -s;
  }
  // CHECK:      if (2 > 1) {
  // CHECK-NEXT:   target += -0.5;

  // Elements at literal indices; sizes; fields of tuples.
  target += X[2, 1] + J[2] + size(y) + cols(X) + rows(X) + size(X) + num_elements(q) + dims(X)[2] + t.1 + y[3];
  // CHECK:      target += 3 + 2.0 + 3 + 2 + 3 + 6 + 2 + 2 + -7 + 3;

  // An array that is constant, an arithmetic progression: at indices surely in range.
  for (n in 1 : N) {
    target += b[from4[n]] * ones[n] + c[down[n] - 0] + unit[n];
    target += b[from4[n - 1]] + a[ones[n + 1]];
  }
  // CHECK:        target += b[n + 3] * 1 + c[n * -2 + 7 - 0] + 1;
  // CHECK-NEXT:   target += b[from4[n - 1]] + a[ones[n + 1]];

  // Out of range: an error, which stays.
  target += y[4];
  // CHECK:      target += y[4];

  // No literal denotes these.
  target += none + least;
  // CHECK:      target += none + least;

  // Sizes of local variables.
  vector[N] v = y;
  vector[0] empty = y;
  target += size(v) + size(empty);
  // CHECK:      vector[3] v = y;
  // CHECK-NEXT: vector[0] empty = y;
  // CHECK-NEXT: target += 3 + size(empty);
}
