// RUN: stan-opt -p partial-evaluation %s | filecheck %s
// RUN: stan-opt -p partial-evaluation %s | stan-opt -f mlir -t stan - | filecheck %s --check-prefix=STAN

// What stands for an expression without requirements has none either; printed as Stan it is a plain call. Calls that
// mean another definition than their own say so.
data {
  int N;
  matrix[N, 2] X;
  array[N] int y;
}
parameters {
  real p;
  vector[2] b;
  real<lower=0> phi;
}
model {
  target += log(1 - p);
  y ~ bernoulli_logit(p + X * b);
  y ~ neg_binomial_2_log(X * b, phi);
}
// CHECK:      stan.call log1m({{.*}}) unchecked autodiff [1] : (!stan.real) -> !stan.real
// CHECK:      stan.call bernoulli_logit_glm_lpmf({{.*}}) unnormalized unchecked definition
// CHECK:      stan.call neg_binomial_2_log_glm_lpmf({{.*}}) unnormalized definition "neg_binomial_2_log_of_product_lpmf"

// STAN:       target += log1m(p);
// STAN-NEXT:  y ~ bernoulli_logit_glm(X, p, b);
// STAN-NEXT:  y ~ neg_binomial_2_log_glm(X, 0, b, phi);
