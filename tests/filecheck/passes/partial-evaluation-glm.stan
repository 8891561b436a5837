// RUN: stan-opt --verify-each -p partial-evaluation -t stan %s | filecheck %s

// Generalised linear models: `~` and `target +=`, either order, longer sums, through their links.
data {
  int N;
  int K;
  matrix[N, 3] X;
  matrix[N, 3] Z;
  array[N] int y;
  array[N] int n;
  vector[N] z;
  array[N] real za;
  vector[N] off;
  matrix[3, K] B;
}
parameters {
  real alpha;
  vector[N] a;
  vector[3] beta;
  vector[3] gamma;
  vector[K] v;
  real<lower=0> sigma;
  real<lower=0> phi;
  ordered[K - 1] c;
}
model {
  y ~ bernoulli_logit(alpha + X * beta);
  y ~ bernoulli_logit(X * beta + a);
  y ~ bernoulli_logit(X * beta);
  y ~ bernoulli(inv_logit(a + X * beta));
  y ~ poisson_log(alpha + X * beta + off);
  y ~ poisson(exp(X * beta));
  z ~ normal(alpha + off + X * beta + a, sigma);
  z ~ normal(X * beta - off, sigma);
  y ~ neg_binomial_2_log(alpha + X * beta, phi);
  y ~ neg_binomial_2(exp(alpha + X * beta), phi);
  y ~ binomial_logit(n, alpha + X * beta);
  y ~ binomial(n, inv_logit(alpha + X * beta));
  y[1] ~ categorical_logit(v + (X[1] * B)');
  y ~ ordered_logistic(X * beta, c);
  target += normal_lpdf(z | X * beta + Z * gamma, sigma);
  target += normal_lupdf(z | X * beta, sigma);
  za ~ normal(X * beta, sigma);
  z[1] ~ normal(X[1] * beta, sigma);
}
generated quantities {
  real l = normal_lpdf(z | X * beta, sigma);
}
// CHECK:      y ~ bernoulli_logit_glm(X, alpha, beta);
// CHECK-NEXT: y ~ bernoulli_logit_glm(X, a, beta);
// CHECK-NEXT: y ~ bernoulli_logit_glm(X, 0, beta);
// CHECK-NEXT: y ~ bernoulli_logit_glm(X, a, beta);
// CHECK-NEXT: y ~ poisson_log_glm(X, alpha + off, beta);
// CHECK-NEXT: y ~ poisson_log_glm(X, 0, beta);
// CHECK-NEXT: z ~ normal_id_glm(X, alpha + off + a, beta, sigma);
// CHECK-NEXT: z ~ normal_id_glm(X, -off, beta, sigma);
// CHECK-NEXT: y ~ neg_binomial_2_log_glm(X, alpha, beta, phi);
// CHECK-NEXT: y ~ neg_binomial_2_log_glm(X, alpha, beta, phi);
// CHECK-NEXT: y ~ binomial_logit_glm(n, X, alpha, beta);
// CHECK-NEXT: y ~ binomial_logit(n, alpha + X * beta);
// CHECK-NEXT: y[1] ~ categorical_logit_glm(X[1], v, B);
// CHECK-NEXT: y ~ ordered_logistic_glm(X, beta, c);
// CHECK-NEXT: target += normal_id_glm_lpdf(z | Z, X * beta, gamma, sigma);
// CHECK-NEXT: target += normal_id_glm_lupdf(z | X, 0, beta, sigma);
// CHECK-NEXT: za ~ normal(X * beta, sigma);
// CHECK-NEXT: z[1] ~ normal(X[1] * beta, sigma);
// CHECK: real l = normal_lpdf(z | X * beta, sigma);
