/* Densities of vectors. Stan Functions Reference, "Distributions over unbounded vectors", "Simplex distributions" and
 * "Multivariate discrete distributions". Arguments declared as containers: arrays of them are vectorised over. */

/* Multivariate normal by the Cholesky factor of its covariance matrix, whose lower triangle is read; as in Stan only
 * arrays ask whether it is one. y not NaN, mu finite. */
real multi_normal_cholesky_lpdf(vector y, vector mu, matrix L) {
  require_finite(mu);
  require_not_nan(y);
  require_same_size(rows(L), num_elements(y));
  require_same_size(cols(L), num_elements(y));
  require_cholesky_factor_of_arrays(L);
  return -0.5 * dot_self(mdivide_left_tri_low(L, y - mu)) - sum(log(diagonal(L)))
         - num_elements(y) * log_sqrt_two_pi();
}

real multi_normal_cholesky_lpdf(row_vector y, vector mu, matrix L) {
  require_cholesky_factor_of_arrays(L);
  return multi_normal_cholesky_lupdf(y' | mu, L);
}

real multi_normal_cholesky_lpdf(vector y, row_vector mu, matrix L) {
  require_cholesky_factor_of_arrays(L);
  return multi_normal_cholesky_lupdf(y | mu', L);
}

real multi_normal_cholesky_lpdf(row_vector y, row_vector mu, matrix L) {
  require_cholesky_factor_of_arrays(L);
  return multi_normal_cholesky_lupdf(y' | mu', L);
}

/* Multivariate normal. y not NaN, mu finite, Sigma symmetric and positive definite. */
real multi_normal_lpdf(vector y, vector mu, matrix Sigma) {
  matrix[rows(Sigma), cols(Sigma)] L = cholesky_decompose(Sigma);
  require_finite(mu);
  require_not_nan(y);
  require_same_size(rows(Sigma), num_elements(y));
  return -0.5 * dot_self(mdivide_left_tri_low(L, y - mu)) - sum(log(diagonal(L)))
         - num_elements(y) * log_sqrt_two_pi();
}

real multi_normal_lpdf(row_vector y, vector mu, matrix Sigma) { return multi_normal_lupdf(y' | mu, Sigma); }

real multi_normal_lpdf(vector y, row_vector mu, matrix Sigma) { return multi_normal_lupdf(y | mu', Sigma); }

real multi_normal_lpdf(row_vector y, row_vector mu, matrix Sigma) { return multi_normal_lupdf(y' | mu', Sigma); }

/* Multivariate normal by its precision matrix, symmetric and positive definite. */
real multi_normal_prec_lpdf(vector y, vector mu, matrix Omega) {
  require_finite(mu);
  require_not_nan(y);
  require_same_size(rows(Omega), num_elements(y));
  require_symmetric(Omega);
  return -0.5 * quad_form(Omega, y - mu) + 0.5 * log_determinant_spd(Omega) - num_elements(y) * log_sqrt_two_pi();
}

real multi_normal_prec_lpdf(row_vector y, vector mu, matrix Omega) { return multi_normal_prec_lupdf(y' | mu, Omega); }

real multi_normal_prec_lpdf(vector y, row_vector mu, matrix Omega) { return multi_normal_prec_lupdf(y | mu', Omega); }

real multi_normal_prec_lpdf(row_vector y, row_vector mu, matrix Omega) {
  return multi_normal_prec_lupdf(y' | mu', Omega);
}

/* Multivariate Student's t. nu > 0 and finite; Sigma, a scale matrix, symmetric and positive definite. */
real multi_student_t_lpdf(vector y, real nu, vector mu, matrix Sigma) {
  matrix[rows(Sigma), cols(Sigma)] L = cholesky_decompose(Sigma);
  int K = num_elements(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_not_nan(y);
  require_same_size(rows(Sigma), K);
  return -0.5 * (nu + K) * log1p(dot_self(mdivide_left_tri_low(L, y - mu)) / nu) - sum(log(diagonal(L)))
         + lgamma(0.5 * (nu + K)) - lgamma(0.5 * nu) - 0.5 * K * log(nu) - 0.5 * K * log_pi();
}

real multi_student_t_lpdf(row_vector y, real nu, vector mu, matrix Sigma) {
  return multi_student_t_lupdf(y' | nu, mu, Sigma);
}

real multi_student_t_lpdf(vector y, real nu, row_vector mu, matrix Sigma) {
  return multi_student_t_lupdf(y | nu, mu', Sigma);
}

real multi_student_t_lpdf(row_vector y, real nu, row_vector mu, matrix Sigma) {
  return multi_student_t_lupdf(y' | nu, mu', Sigma);
}

/* Multivariate Student's t by the Cholesky factor of its scale matrix. */
real multi_student_t_cholesky_lpdf(vector y, real nu, vector mu, matrix L) {
  int K = num_elements(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_not_nan(y);
  require_same_size(rows(L), K);
  require_cholesky_factor(L);
  return -0.5 * (nu + K) * log1p(dot_self(mdivide_left_tri_low(L, y - mu)) / nu) - sum(log(diagonal(L)))
         + lgamma(0.5 * (nu + K)) - lgamma(0.5 * nu) - 0.5 * K * log(nu) - 0.5 * K * log_pi();
}

real multi_student_t_cholesky_lpdf(row_vector y, real nu, vector mu, matrix L) {
  return multi_student_t_cholesky_lupdf(y' | nu, mu, L);
}

real multi_student_t_cholesky_lpdf(vector y, real nu, row_vector mu, matrix L) {
  return multi_student_t_cholesky_lupdf(y | nu, mu', L);
}

real multi_student_t_cholesky_lpdf(row_vector y, real nu, row_vector mu, matrix L) {
  return multi_student_t_cholesky_lupdf(y' | nu, mu', L);
}

/* Gaussian process: row i of y is normal with covariance Sigma / w[i]. */
real multi_gp_lpdf(matrix y, matrix Sigma, vector w) {
  require_same_size(num_elements(w), rows(y));
  require_same_size(rows(Sigma), cols(y));
  require_finite(Sigma);
  require_symmetric(Sigma);
  require_positive_finite(w);
  require_finite(y);
  return -0.5 * trace_gen_quad_form(diag_matrix(w), inverse_spd(Sigma), y') - 0.5 * rows(y) * log_determinant_spd(Sigma)
         + 0.5 * cols(y) * sum(log(w)) - num_elements(y) * log_sqrt_two_pi();
}

/* As multi_gp, by the Cholesky factor of the kernel matrix. */
real multi_gp_cholesky_lpdf(matrix y, matrix L, vector w) {
  require_same_size(num_elements(w), rows(y));
  require_same_size(rows(L), cols(y));
  require_finite(y);
  require_cholesky_factor(L);
  require_positive_finite(w);
  return -0.5 * dot_product(w, columns_dot_self(mdivide_left_tri_low(L, y'))) - rows(y) * sum(log(diagonal(L)))
         + 0.5 * cols(y) * sum(log(w)) - num_elements(y) * log_sqrt_two_pi();
}

/* Dirichlet. alpha > 0; theta a simplex. */
real dirichlet_lpdf(vector theta, vector alpha) {
  require_same_size(num_elements(theta), num_elements(alpha));
  require_positive(alpha);
  require_simplex(theta);
  return dot_product(alpha - 1, log(theta)) + dirichlet_log_normalizer(alpha);
}

real dirichlet_log_normalizer(vector alpha) { return lgamma(sum(alpha)) - sum(lgamma(alpha)); }

real dirichlet_lpdf(row_vector theta, vector alpha) { return dirichlet_lupdf(theta' | alpha); }

real dirichlet_lpdf(vector theta, row_vector alpha) { return dirichlet_lupdf(theta | alpha'); }

real dirichlet_lpdf(row_vector theta, row_vector alpha) { return dirichlet_lupdf(theta' | alpha'); }

/* Categorical: theta a simplex, y in 1..K. */
real categorical_lpmf(int y, vector theta) {
  require_in_interval(y, 1, num_elements(theta));
  require_simplex(theta);
  return log(theta[y]);
}

/* Categorical of log odds beta, finite. */
real categorical_logit_lpmf(int y, vector beta) {
  require_in_interval(y, 1, num_elements(beta));
  require_finite(beta);
  return beta[y] - log_sum_exp(beta);
}

/* Multinomial: theta a simplex; 0 * log(0) is 0. */
real multinomial_lpmf(array[] int n, vector theta) {
  require_same_size(size(n), num_elements(theta));
  require_nonnegative(n);
  require_simplex(theta);
  return multinomial_log_mass(n, theta) + multinomial_log_coefficient(n);
}

real multinomial_log_mass(array[] int n, vector theta) {
  real total = 0;
  for (k in 1:size(n)) total += lmultiply(n[k], theta[k]);
  return total;
}

real multinomial_log_coefficient(array[] int n) {
  real total = lgamma(sum(n) + 1.0);
  for (k in 1:size(n)) total -= lgamma(n[k] + 1.0);
  return total;
}

/* Multinomial of log odds beta, finite. */
real multinomial_logit_lpmf(array[] int n, vector beta) {
  require_same_size(size(n), num_elements(beta));
  require_nonnegative(n);
  require_finite(beta);
  return dot_product(to_vector(n), beta) - sum(n) * log_sum_exp(beta) + multinomial_log_coefficient(n);
}

/* Dirichlet-multinomial. alpha > 0 and finite. */
real dirichlet_multinomial_lpmf(array[] int n, vector alpha) {
  require_same_size(size(n), num_elements(alpha));
  require_nonnegative(n);
  require_positive_finite(alpha);
  if (sum(n) == 0) return 0;
  return dirichlet_multinomial_log_mass(n, alpha) + dirichlet_multinomial_log_coefficient(n);
}

real dirichlet_multinomial_log_mass(array[] int n, vector alpha) {
  real total = lbeta(sum(alpha), sum(n));
  for (k in 1:size(n)) total -= n[k] == 0 ? 0 : lbeta(alpha[k], n[k]);
  return total;
}

real dirichlet_multinomial_log_coefficient(array[] int n) {
  real total = log(sum(n));
  for (k in 1:size(n)) total -= n[k] == 0 ? 0 : log(n[k]);
  return total;
}

/* Ordered logistic: y in 1..K, K - 1 ordered finite cut points c. */
real ordered_logistic_lpmf(int y, real eta, vector c) {
  require_finite(eta);
  require_in_interval(y, 1, num_elements(c) + 1);
  require_ordered(c);
  require_finite(c);
  return ordered_logistic_log_mass(y, eta, c);
}

real ordered_logistic_log_mass(int y, real eta, vector c) {
  int K = num_elements(c) + 1;
  return K == 1 ? 0
         : y == 1 ? -log1p_exp(eta - c[1])
         : y == K ? -log1p_exp(c[K - 1] - eta)
         : log_inv_logit_diff(eta - c[y - 1], eta - c[y]);
}

/* Ordered probit: y in 1..K, K - 1 ordered cut points c. */
real ordered_probit_lpmf(int y, real eta, vector c) {
  require_in_interval(y, 1, num_elements(c) + 1);
  require_finite(eta);
  require_ordered(c);
  return ordered_probit_log_mass(y, eta, c);
}

real ordered_probit_log_mass(int y, real eta, vector c) {
  int K = num_elements(c) + 1;
  return K == 1 ? 0
         : y == 1 ? log_Phi(c[1] - eta)
         : y == K ? log_Phi(eta - c[K - 1])
         : log_diff_exp(log_Phi(c[y] - eta), log_Phi(c[y - 1] - eta));
}
