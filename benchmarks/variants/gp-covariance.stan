// posterior: gp_pois_regr-gp_regr
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
parameters {
  real<lower=0> rho;
  real<lower=0> alpha;
  real<lower=0> sigma;
}
model {
  y ~ multi_normal(rep_vector(0, N), add_diag(gp_exp_quad_cov(x, alpha, rho), sigma));
  sigma ~ normal(0, 1);
  alpha ~ normal(0, 2);
  rho ~ gamma(25, 4);
}
