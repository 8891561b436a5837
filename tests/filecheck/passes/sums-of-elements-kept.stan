// RUN: stan-opt --explain -p sums-of-elements %s | filecheck %s

// What keeps containers: an element that no iteration reaches, one that another reads, an iteration that may end early.
data {
  int<lower=0> N;
  vector[N] y;
}
parameters {
  real mu;
}
model {
  vector[N] a;
  vector[N] b;
  vector[N] c;
  vector[N] d = y * mu;
  vector[N] e;
  for (n in 2:N) {
    a[n] = y[n] * mu;
  }
  b[1] = mu;
  for (n in 1:N) {
    b[n] = y[n] * b[1];
    d[n] = mu;
  }
  for (n in 1:N) {
    c[n] = y[n] * mu;
    if (c[n] > 1) break;
  }
  target += sum(a);
  target += sum(b);
  target += sum(c);
  target += sum(d);
  for (n in 1:N) {
    e[n] = y[n] * mu;
  }
  target += sum(e) * 2;
  target += sum(e);
}
// CHECK:       29 | target += sum(a);
// CHECK-NEXT:  variable a
// CHECK-NEXT:  not done sums-of-elements: its loop may not reach all elements
// CHECK-NEXT:  30 | target += sum(b);
// CHECK-NEXT:  variable b
// CHECK-NEXT:  not done sums-of-elements: its elements are touched in several places
// CHECK-NEXT:  31 | target += sum(c);
// CHECK-NEXT:  variable c
// CHECK-NEXT:  not done sums-of-elements: iterations of its loop may be left
// CHECK-NEXT:  32 | target += sum(d);
// CHECK-NEXT:  variable d
// CHECK-NEXT:  not done sums-of-elements: it is assigned as a whole
// CHECK-NEXT:  37 | target += sum(e);
// CHECK-NEXT:  variable e
// CHECK-NEXT:  not done sums-of-elements: it is read in another place
