// Regression by a Gaussian process with a squared-exponential kernel, the latent function integrated out.
data {
  int<lower=1> N;
  array[N] real x;
  vector[N] y;
}
transformed data {
  vector[N] zero = rep_vector(0, N);
}
parameters {
  real<lower=0> rho;      // length scale
  real<lower=0> alpha;    // amplitude
  real<lower=0> sigma;    // noise
}
model {
  matrix[N, N] K = gp_exp_quad_cov(x, alpha, rho);
  for (n in 1:N) K[n, n] += square(sigma) + 1e-9;
  rho ~ inv_gamma(5, 5);
  alpha ~ normal(0, 2);
  sigma ~ normal(0, 1);
  y ~ multi_normal_cholesky(zero, cholesky_decompose(K));
}
