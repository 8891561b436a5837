// RUN: stan-opt -p 'insert-profiles{each=statement}' -t stan %s | filecheck %s

// Each statement is a region of its own, named by its line.
// CHECK: profile(
// CHECK: x ~ normal(0, 1);
// CHECK: profile(
parameters {
  real x;
}
model {
  x ~ normal(0, 1);
  for (i in 1:3) {
    target += i * x;
  }
}
