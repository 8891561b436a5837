// RUN: stan-opt -p sums-of-elements -t stan %s | filecheck %s
// RUN: stan-opt --explain -p sums-of-elements %s | filecheck --check-prefix=WHY %s

data {
  int<lower=0> N;
  int<lower=0> K;
  vector[N] y;
  array[N] int k;
}
parameters {
  real mu;
}
model {
  vector[N] a;
  vector[N] b = rep_vector(2, N);
  matrix[N, K] c;
  array[N, K] real d;
  for (n in 1:N) {
    a[n] = normal_lpdf(y[n] | mu, 1);
    if (k[n] > 1) {
      a[n] = log_sum_exp(a[n], mu);
    }
    for (j in 1:K) {
      b[n] += mu * j;
    }
  }
  for (j in 1:K) {
    for (n in 1:N) {
      c[n, j] = mu;
    }
  }
  for (n in 1:N) {
    for (j in 1:K) {
      d[n, j] = y[n] * mu;
    }
  }
  target += sum(a);
  target += mu - sum(b);
  target += -sum(c);
  for (n in 1:N) {
    target += sum(d[n]);
  }
}
// CHECK:       for (n in 1:N) {
// CHECK-NEXT:    real b_sym2_ = 2;
// CHECK-NEXT:    real a_sym1_ = normal_lpdf(y[n] | mu, 1);
// CHECK-NEXT:    if (k[n] > 1) {
// CHECK-NEXT:      a_sym1_ = log_sum_exp(a_sym1_, mu);
// CHECK-NEXT:    }
// CHECK-NEXT:    for (j in 1:K) {
// CHECK-NEXT:      b_sym2_ = b_sym2_ + mu * j;
// CHECK-NEXT:    }
// CHECK-NEXT:    target += a_sym1_;
// CHECK-NEXT:    target += -b_sym2_;
// CHECK-NEXT:  }
// CHECK-NEXT:  for (j in 1:K) {
// CHECK-NEXT:    for (n in 1:N) {
// CHECK-NEXT:      real c_sym3_ = mu;
// CHECK-NEXT:      target += -c_sym3_;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  for (n in 1:N) {
// CHECK-NEXT:    for (j in 1:K) {
// CHECK-NEXT:      real d_sym4_ = y[n] * mu;
// CHECK-NEXT:      target += d_sym4_;
// CHECK-NEXT:    }
// CHECK-NEXT:  }
// CHECK-NEXT:  target += mu - 0;
// WHY:         variable a
// WHY-NEXT:    done sums-of-elements: its elements are added to the target where they are computed
