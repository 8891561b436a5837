// Measurements in groups: an intercept and a slope for each group, correlated, drawn from a common distribution.
data {
  int<lower=0> N;
  int<lower=1> J;
  array[N] int<lower=1, upper=J> group;
  vector[N] x;
  vector[N] y;
}
parameters {
  vector[2] mu;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
  matrix[2, J] z;
  real<lower=0> sigma;
}
transformed parameters {
  matrix[J, 2] b = rep_matrix(mu', J) + (diag_pre_multiply(tau, L) * z)';
}
model {
  vector[J] intercept = b[, 1];
  vector[J] slope = b[, 2];
  mu ~ normal(0, 5);
  tau ~ normal(0, 2);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ exponential(1);
  y ~ normal(intercept[group] + slope[group] .* x, sigma);
}
generated quantities {
  real rho = L[2, 1];
}
