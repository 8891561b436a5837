/* Densities of matrices. Stan Functions Reference, "Correlation matrix distributions" and "Covariance matrix
 * distributions". */

/* LKJ density of a correlation matrix. eta > 0. */
real lkj_corr_lpdf(matrix y, real eta) {
  require_positive(eta);
  require_corr_matrix(y);
  return (eta - 1) * log_determinant_spd(y) + lkj_log_constant(eta, rows(y));
}

/* LKJ density of the Cholesky factor of a correlation matrix. eta > 0. */
real lkj_corr_cholesky_lpdf(matrix L, real eta) {
  require_positive(eta);
  require_cholesky_factor(L);
  return lkj_log_kernel(L, eta) + lkj_log_constant(eta, rows(L));
}

real lkj_log_kernel(matrix L, real eta) {
  int K = rows(L);
  real total = 0;
  for (k in 2:K) total += (K - k + 2 * eta - 2) * log(L[k, k]);
  return total;
}

/* Minus the log of the integral of det(y)^(eta - 1) over correlation matrices of size K. */
real lkj_log_constant(real eta, int K) {
  real total = (K - 1) * lgamma(eta + 0.5 * (K - 1));
  for (k in 1:(K - 1)) total -= 0.5 * k * log_pi() + lgamma(eta + 0.5 * (K - 1 - k));
  return total;
}

/* Wishart. W and S symmetric and positive definite, nu > K - 1. */
real wishart_lpdf(matrix W, real nu, matrix S) {
  int K = rows(W);
  require_same_size(rows(W), cols(S));
  require_greater(nu, K - 1);
  require_symmetric(W);
  require_symmetric(S);
  return 0.5 * (nu - K - 1) * log_determinant_spd(W) - 0.5 * trace(mdivide_left_spd(S, W))
         - 0.5 * nu * log_determinant_spd(S) - nu * K * half_log_two() - lmgamma_by_terms(K, 0.5 * nu);
}

/* Inverse Wishart. W and S symmetric and positive definite, nu > K - 1. What `~` drops is Stan's choice. */
real inv_wishart_lpdf(matrix W, real nu, matrix S) {
  int K = rows(W);
  require_same_size(rows(W), cols(S));
  require_greater(nu, K - 1);
  require_symmetric(W);
  require_symmetric(S);
  return -0.5 * trace(mdivide_left_spd(W, S)) + 0.5 * nu * log_determinant_spd(S) - lmgamma_by_terms(K, 0.5 * nu)
         - kept_with(0.5 * (nu + K + 1) * log_determinant_spd(W), W, nu, S) - kept_with(nu * K * half_log_two(), nu, S);
}

/* Wishart density of the Cholesky factor of W, by the Cholesky factor of the scale matrix. */
real wishart_cholesky_lpdf(matrix L_W, real nu, matrix L_S) {
  int K = rows(L_W);
  require_same_size(rows(L_W), cols(L_S));
  require_greater(nu, K - 1);
  require_cholesky_factor(L_W);
  require_cholesky_factor(L_S);
  return wishart_cholesky_log_kernel(L_W, nu, L_S) + wishart_cholesky_log_normalizer(nu, K);
}

real wishart_cholesky_log_kernel(matrix L_W, real nu, matrix L_S) {
  return weighted_log_diagonal(L_W, nu - 1, -1) - nu * sum(log(diagonal(L_S)))
         - 0.5 * sum(square(mdivide_left_tri_low(L_S, L_W)));
}

real wishart_cholesky_log_normalizer(real nu, int K) {
  return K * (1 - 0.5 * nu) * log_two() - lmgamma_by_terms(K, 0.5 * nu);
}

/* Inverse Wishart density of the Cholesky factor of W, by the Cholesky factor of the scale matrix. */
real inv_wishart_cholesky_lpdf(matrix L_W, real nu, matrix L_S) {
  int K = rows(L_W);
  require_same_size(rows(L_W), cols(L_S));
  require_greater(nu, K - 1);
  require_cholesky_factor(L_W);
  require_cholesky_factor(L_S);
  return inv_wishart_cholesky_log_kernel(L_W, nu, L_S) + wishart_cholesky_log_normalizer(nu, K);
}

real inv_wishart_cholesky_log_kernel(matrix L_W, real nu, matrix L_S) {
  return nu * sum(log(diagonal(L_S))) - weighted_log_diagonal(L_W, nu + 1, 1)
         - 0.5 * sum(square(mdivide_left_tri_low(L_W, L_S)));
}

matrix inv_wishart_cholesky_rng(real nu, matrix L_S) {
  require_greater(nu, rows(L_S) - 1);
  require_cholesky_factor(L_S);
  return cholesky_decompose(inv_wishart_rng(nu, multiply_lower_tri_self_transpose(L_S)));
}

/* The sum of (first + (k - 1) * step) * log(L[k, k]). */
real weighted_log_diagonal(matrix L, real first, int step) {
  real total = 0;
  for (k in 1:rows(L)) total += (first + (k - 1) * step) * log(L[k, k]);
  return total;
}

/* LKJ density of the correlations of y, lognormal densities of its standard deviations. Deprecated in Stan. */
real lkj_cov_lpdf(matrix y, vector mu, vector sigma, real eta) {
  require_same_size(rows(y), num_elements(mu));
  require_same_size(num_elements(sigma), num_elements(mu));
  require_positive(eta);
  require_finite(mu);
  require_finite(sigma);
  require_finite(y);
  return lognormal_lupdf(sqrt(diagonal(y)) | mu, sigma)
         + lkj_corr_lupdf(quad_form_diag(y, inv_sqrt(diagonal(y))) | eta);
}
