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
  matrix[N, N] K;
  for (i in 1:N) {
    K[i, i] = square(alpha) + sigma;
    for (j in i + 1:N) {
      K[i, j] = square(alpha) * exp(-0.5 * square((x[i] - x[j]) / rho));
      K[j, i] = K[i, j];
    }
  }
  rho ~ gamma(25, 4);
  alpha ~ normal(0, 2);
  sigma ~ normal(0, 1);
  y ~ multi_normal_cholesky(rep_vector(0, N), cholesky_decompose(K));
}
