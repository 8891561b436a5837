// RUN: stan-opt -p 'repeat{passes="copy-propagation,dead-code-elimination"}' -t stan %s | filecheck %s

// Copies of copies, and what is dead then, as long as something changes.
// CHECK: model {
// CHECK-NOT: =
// CHECK: x ~ normal(0, 1);
parameters {
  real x;
}
model {
  real a = x;
  real b = a;
  real c = b;
  c ~ normal(0, 1);
}
