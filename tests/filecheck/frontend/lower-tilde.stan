// RUN: stan-opt %s | filecheck %s
// RUN: stan-opt %s -t stan | filecheck %s --check-prefix=TEXT
// `~` and what it may drop; truncation; calls of the library and their definitions.

data {
  int N;
  array[N] real y;
  array[N] int k;
  int one;
}
parameters {
  real mu;
  real<lower=0> sigma;
}
model {
  y ~ normal(mu, 2);
  // CHECK:      %[[D:.*]] = stan.call normal_lpdf(%{{.*}}, %{{.*}}, %{{.*}}) unnormalized definition "normal_lpdf" autodiff [0, 1, 0] : (!stan.array<1, !stan.real>, !stan.real, !stan.real) -> !stan.real
  // CHECK-NEXT: stan.target_add tilde %[[D]] : !stan.real
  target += normal_lpdf(mu | 0, 1);
  // CHECK:      %[[D:.*]] = stan.call normal_lpdf({{.*}}) definition "normal_lpdf" autodiff [1, 0, 0]
  // CHECK-NEXT: stan.target_add %[[D]] : !stan.real
  target += normal_lupdf(mu | 0, 1);
  // CHECK:      stan.call
  target += one;
  // CHECK:      %[[P:.*]] = stan.promote %{{.*}} : (!stan.int) -> !stan.real
  // CHECK-NEXT: stan.target_add %[[P]] : !stan.real
  mu ~ normal(0, sigma) T[-1, 2];
  one ~ poisson(sigma) T[1, ];
  y ~ normal(mu, sigma) T[ , 3];
}

// TEXT:      y ~ normal(mu, 2);
// TEXT-NEXT: target += normal_lpdf(mu | 0, 1);
// TEXT-NEXT: target += normal_lupdf(mu | 0, 1);
// TEXT-NEXT: target += one;
// TEXT-NEXT: mu ~ normal(0, sigma);
// TEXT-NEXT: if (mu < -1) {
// TEXT-NEXT:   target += negative_infinity();
// TEXT-NEXT: } else if (mu > 2) {
// TEXT-NEXT:   target += negative_infinity();
// TEXT-NEXT: } else {
// TEXT-NEXT:   target += -log_diff_exp(normal_lcdf(2 | 0, sigma), normal_lcdf(-1 | 0, sigma));
// TEXT-NEXT: }
// TEXT-NEXT: one ~ poisson(sigma);
// TEXT-NEXT: if (one < 1) {
// TEXT-NEXT:   target += negative_infinity();
// TEXT-NEXT: } else {
// TEXT-NEXT:   target += -poisson_lccdf(1 - 1 | sigma);
// TEXT-NEXT: }
// TEXT-NEXT: y ~ normal(mu, sigma);
// TEXT-NEXT: if (max(y) > 3) {
// TEXT-NEXT:   target += negative_infinity();
// TEXT-NEXT: } else {
// TEXT-NEXT:   target += -(normal_lcdf(3 | mu, sigma) * size(y));
// TEXT-NEXT: }
