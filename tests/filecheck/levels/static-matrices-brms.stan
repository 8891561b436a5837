// RUN: stan-opt -p memory-pattern-optimization --verify-each --debug-mem-patterns %s | filecheck %s --check-prefixes=ALL,LOOP
// RUN: stan-opt -p loop-vectorization,memory-pattern-optimization --verify-each --debug-mem-patterns %s | filecheck %s --check-prefixes=ALL,WHOLE
// RUN: stan-opt -p loop-vectorization --debug-optimized-mir-pretty %s | filecheck %s --check-prefix=MIR

// The hierarchical model of the design of static matrices, as brms writes it. `mu` is written in a loop: it is dynamic
// until the loop has become a statement on whole vectors.
data {
  int<lower=1> N;
  vector[N] Y;
  int<lower=1> Kc;
  matrix[N, Kc] Xc;
  int<lower=1> N_1;
  int<lower=1> M_1;
  array[N] int<lower=1> J_1;
  vector[N] Z_1_1;
  vector[N] Z_1_2;
}
parameters {
  vector[Kc] b;
  real Intercept;
  real<lower=0> sigma;
  vector<lower=0>[M_1] sd_1;
  matrix[M_1, N_1] z_1;
  cholesky_factor_corr[M_1] L_1;
}
transformed parameters {
  matrix[N_1, M_1] r_1 = (diag_pre_multiply(sd_1, L_1) * z_1)';
  vector[N_1] r_1_1 = r_1[ , 1];
  vector[N_1] r_1_2 = r_1[ , 2];
}
model {
  vector[N] mu = Intercept + Xc * b;
  for (n in 1 : N) {
    mu[n] += r_1_1[J_1[n]] * Z_1_1[n] + r_1_2[J_1[n]] * Z_1_2[n];
  }
  Y ~ normal(mu, sigma);
  to_vector(z_1) ~ std_normal();
}
// ALL: matrix r_1: static
// ALL: vector r_1_1: static
// ALL: vector r_1_2: static
// LOOP: :34:5: vector mu: dynamic: assigned in part in the loop over n: mu[n] =
// WHOLE: vector mu: static

// MIR-LABEL: log_prob {
// MIR:         vector[N] mu = (Intercept + (Xc * b));
// MIR-NEXT:    mu = (mu + ((r_1_1[J_1] .* Z_1_1) + (r_1_2[J_1] .* Z_1_2)));
// MIR-NEXT:    target += normal_lupdf(Y, mu, sigma);
