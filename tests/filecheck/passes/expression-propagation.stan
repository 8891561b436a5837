// RUN: stan-opt --split-input-file -p expression-propagation --verify-each -t stan %s | filecheck %s
// RUN: stan-opt --split-input-file -p 'expression-propagation{preserve-numerics=true}' --verify-each -t stan %s | filecheck %s --check-prefix=INTS
// RUN: stan-opt --split-input-file -p 'expression-propagation{budget=0}' --verify-each -t stan %s | filecheck %s --check-prefix=NONE

// What a density sees becomes one expression.
data {
  int N;
  matrix[N, 2] X;
  vector[N] y;
}
parameters {
  real alpha;
  vector[2] beta;
}
model {
  vector[N] mu = alpha + X * beta;
  y ~ normal(mu, 1);
}
// CHECK-LABEL: model {
// CHECK:         y ~ normal(alpha + X * beta, 1);
// INTS-LABEL:  model {
// INTS:          y ~ normal(mu, 1);
// NONE-LABEL:  model {
// NONE:          y ~ normal(mu, 1);

// -----
// Not containers or calls into a loop that does not contain the assignment; cheap scalars are.
data {
  int N;
  matrix[N, 2] X;
  vector[2] b;
}
model {
  vector[N] mu = X * b;
  real e = exp(b[1]);
  int m = N - 1;
  for (n in 1 : m) {
    target += mu[n] * e;
  }
  target += e;
}
// CHECK-LABEL: model {
// CHECK:         for (n in 1:N - 1) {
// CHECK-NEXT:      target += mu[n] * e;
// CHECK:         target += exp(b[1]);

// -----
// Not what draws, prints, or reads the target; not after a variable in it has changed.
functions {
  real loud(real x) {
    print(x);
    return x;
  }
}
data {
  real d;
}
generated quantities {
  real r = normal_rng(0, 1);
  real s = loud(d);
  real t = d + 1;
  real u = t * 2;
  t = 3;
  print(r, s, u);
}
// CHECK-LABEL: generated quantities {
// CHECK:         real u = (d + 1) * 2;
// CHECK-NEXT:    t = 3;
// CHECK-NEXT:    print(r, s, u);

// -----
// Nothing is computed on the other side of the edge of a profile.
parameters {
  real p;
}
model {
  real e = exp(p);
  profile("a") {
    target += e;
  }
  target += e;
}
// CHECK-LABEL: model {
// CHECK:         profile("a") {
// CHECK-NEXT:      target += e;
// CHECK-NEXT:    }
// CHECK-NEXT:    target += e;
