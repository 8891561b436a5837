/* Generalised linear models. Stan Functions Reference, "Generalised linear models" in the chapters on bounded discrete,
 * unbounded discrete and unbounded continuous distributions. Each is the plain density of alpha + x * beta, which the
 * compiler fuses with the product; a single row of x, or a single y, stands for all. */


/* Bernoulli of the log odds alpha + x * beta. */
real bernoulli_logit_glm_lpmf(array[] int y, matrix x, vector alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}

real bernoulli_logit_glm_lpmf(array[] int y, matrix x, real alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}

real bernoulli_logit_glm_lpmf(int y, matrix x, vector alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}

real bernoulli_logit_glm_lpmf(int y, matrix x, real alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}

real bernoulli_logit_glm_lpmf(array[] int y, row_vector x, vector alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}

real bernoulli_logit_glm_lpmf(array[] int y, row_vector x, real alpha, vector beta) {
  require_in_interval(y, 0, 1);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return bernoulli_logit_lupmf(y | alpha + x * beta);
}


/* Poisson of the log rate alpha + x * beta. */
real poisson_log_glm_lpmf(array[] int y, matrix x, vector alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}

real poisson_log_glm_lpmf(array[] int y, matrix x, real alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}

real poisson_log_glm_lpmf(int y, matrix x, vector alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}

real poisson_log_glm_lpmf(int y, matrix x, real alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}

real poisson_log_glm_lpmf(array[] int y, row_vector x, vector alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}

real poisson_log_glm_lpmf(array[] int y, row_vector x, real alpha, vector beta) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return poisson_log_lupmf(y | alpha + x * beta);
}


/* Normal with mean alpha + x * beta. sigma > 0 and finite. */
real normal_id_glm_lpdf(vector y, matrix x, vector alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, matrix x, vector alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, matrix x, real alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, matrix x, real alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(real y, matrix x, vector alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(real y, matrix x, vector alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(real y, matrix x, real alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(real y, matrix x, real alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, row_vector x, vector alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, row_vector x, vector alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, row_vector x, real alpha, vector beta, real sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}

real normal_id_glm_lpdf(vector y, row_vector x, real alpha, vector beta, vector sigma) {
  require_positive_finite(sigma);
  require_finite(y);
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  return normal_lupdf(y | alpha + x * beta, sigma);
}


/* Negative binomial with log mean alpha + x * beta and precision phi, > 0 and finite. */
real neg_binomial_2_log_glm_lpmf(array[] int y, matrix x, vector alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, matrix x, vector alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, matrix x, real alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, matrix x, real alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(int y, matrix x, vector alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(int y, matrix x, vector alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(int y, matrix x, real alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(int y, matrix x, real alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, row_vector x, vector alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, row_vector x, vector alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, row_vector x, real alpha, vector beta, real phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_glm_lpmf(array[] int y, row_vector x, real alpha, vector beta, vector phi) {
  require_nonnegative(y);
  require_finite(beta);
  require_finite(alpha);
  require_positive_finite(phi);
  require_finite(x);
  return neg_binomial_2_log_terms_lupmf(y | alpha + x * beta, phi);
}


/* As neg_binomial_2_log, with the factorial of n apart: the GLM drops it even where phi is a parameter. */
real neg_binomial_2_log_terms_lpmf(int n, real eta, real phi) {
  return n * eta - (n + phi) * log_sum_exp(eta, log(phi)) + lgamma(n + phi) + (phi * log(phi) - lgamma(phi))
         - lgamma(n + 1.0);
}

/* Binomial of N with log odds alpha + x * beta. */
real binomial_logit_glm_lpmf(array[] int n, array[] int N, matrix x, vector alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(array[] int n, array[] int N, matrix x, real alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(int n, int N, matrix x, real alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(int n, int N, matrix x, vector alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(int n, array[] int N, matrix x, real alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(array[] int n, int N, matrix x, real alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(array[] int n, array[] int N, row_vector x, real alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

real binomial_logit_glm_lpmf(array[] int n, array[] int N, row_vector x, vector alpha, vector beta) {
  return binomial_logit_lupmf(n | N, alpha + x * beta);
}

/* Categorical of the log odds alpha + x * beta, a column of beta for each category. */
real categorical_logit_glm_lpmf(array[] int y, matrix x, vector alpha, matrix beta) {
  require_same_size(rows(x), size(y));
  require_in_interval(y, 1, cols(beta));
  require_finite(beta);
  require_finite(alpha);
  require_finite(x);
  matrix[rows(x), cols(beta)] x_beta = x * beta;
  real total = 0;
  for (n in 1:size(y)) total += categorical_logit_lupmf(y[n] | alpha + x_beta[n]');
  return total;
}

real categorical_logit_glm_lpmf(int y, matrix x, vector alpha, matrix beta) {
  return categorical_logit_glm_lupmf(rep_array(y, rows(x)) | x, alpha, beta);
}

real categorical_logit_glm_lpmf(int y, row_vector x, vector alpha, matrix beta) {
  return categorical_logit_lupmf(y | alpha + (x * beta)');
}

/* Ordered logistic of the location x * beta, with cut points c. */
real ordered_logistic_glm_lpmf(array[] int y, matrix x, vector beta, vector c) {
  require_same_size(rows(x), size(y));
  require_finite(beta);
  require_finite(x);
  return ordered_logistic_lupmf(y | x * beta, c);
}

real ordered_logistic_glm_lpmf(int y, matrix x, vector beta, vector c) {
  require_finite(beta);
  require_finite(x);
  return ordered_logistic_lupmf(y | x * beta, c);
}

real ordered_logistic_glm_lpmf(int y, row_vector x, vector beta, vector c) {
  return ordered_logistic_lupmf(y | x * beta, c);
}

array[] int bernoulli_logit_glm_rng(matrix x, vector alpha, vector beta) {
  require_same_size(num_elements(alpha), rows(x));
  require_same_size(num_elements(beta), cols(x));
  return bernoulli_logit_rng(alpha + x * beta);
}

array[] int bernoulli_logit_glm_rng(row_vector x, vector alpha, vector beta) {
  require_same_size(num_elements(alpha), 1);
  require_same_size(num_elements(beta), num_elements(x));
  return bernoulli_logit_rng(alpha + x * beta);
}
