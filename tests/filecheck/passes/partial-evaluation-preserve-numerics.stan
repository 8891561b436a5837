// RUN: stan-opt --verify-each -p 'partial-evaluation{preserve-numerics=true}' -t stan %s | filecheck %s

// Only what keeps every bit.
data {
  int N;
  matrix[N, 3] X;
  vector[N] y;
}
parameters {
  real x;
  vector[3] b;
  real<lower=0> s;
}
model {
  real a = 1 + 1;
  target += log(1 - x);
  target += a + x * 5;
  target += x * 2 * 3;
  target += -(-x) + x * 1 + x ^ 2 + b' * b;
  y ~ normal(x + X * b, s);
  y ~ normal(x + X * b + y, s);
}
// CHECK:       real a = 2;
// CHECK-NEXT:  target += log(1 - x);
// CHECK-NEXT:  target += a + x * 5;
// CHECK-NEXT:  target += x * 2 * 3;
// CHECK-NEXT:  target += x + x + square(x) + dot_self(b);
// CHECK-NEXT:  y ~ normal_id_glm(X, x, b, s);
// CHECK-NEXT:  y ~ normal(x + X * b + y, s);
