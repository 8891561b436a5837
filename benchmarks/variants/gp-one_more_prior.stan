// posterior: gp_pois_regr-gp_regr
// names of data: {"x": "place", "y": "height"}
data {
  int<lower=1> N;
  array[N] real place;
  vector[N] height;
}
parameters {
  real<lower=0> span;
  real<lower=0> size;
  real<lower=0> noise;
}
model {
  matrix[N, N] L = cholesky_decompose(gp_exp_quad_cov(place, size, span) + diag_matrix(rep_vector(noise, N)));
  height ~ multi_normal_cholesky(rep_vector(0, N), L);
  span ~ gamma(25, 4);
  span ~ lognormal(2, 1);
  size ~ normal(0, 2);
  noise ~ normal(0, 1);
}
