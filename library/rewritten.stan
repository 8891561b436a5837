/* Functions as a rewrite means them (passes/optimize/rewrite_rules.txt): the value of a function that the program could
 * have called, with the requirements and the constants of the one that it did call. No program can call them. */


/* binomial(N, inv_logit(alpha)), which takes infinite log odds: theta is then 0 or 1. */
real binomial_of_log_odds_lpmf(int n, int N, real alpha) {
  require_in_interval(n, 0, N);
  require_nonnegative(N);
  require_not_nan(alpha);
  return lchoose(N, n) - binomial_of_log_odds_cost(n, N, alpha);
}

/* Both logarithms are computed in any case, so that loops over rows have no branch. */
real binomial_of_log_odds_cost(int n, int N, real alpha) {
  real per_success = log1p_exp(-alpha);
  real per_failure = log1p_exp(alpha);
  return (n == 0 ? 0 : n * per_success) + (n == N ? 0 : (N - n) * per_failure);
}

/* categorical(softmax(beta)), which takes log odds of minus infinity unless all are. */
real categorical_of_log_odds_lpmf(int y, vector beta) {
  require_in_interval(y, 1, num_elements(beta));
  require_nonempty(num_elements(beta));
  require_finite(log_sum_exp(beta));
  return beta[y] - log_sum_exp(beta);
}

/* P(n > 0) for n = 0, without an incomplete gamma or beta function. */
real poisson_above_zero_lccdf(int n, real lambda) {
  require_nonnegative(lambda);
  return log1m_exp(-lambda);
}

real neg_binomial_2_above_zero_lccdf(int n, real mu, real phi) {
  require_positive_finite(mu);
  require_positive_finite(phi);
  return log1m_exp(-phi * log1p(mu / phi));
}

/* weibull(alpha, sigma), whose power loops compute side by side. */
real weibull_of_log_scale_lpdf(real y, real alpha, real sigma) {
  require_finite(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y < 0) return negative_infinity();
  return log(alpha) + (alpha - 1) * log(y) - alpha * log(sigma) - weibull_power_of_logs(y, alpha, sigma);
}

real weibull_of_log_scale_lccdf(real y, real alpha, real sigma) {
  require_nonnegative(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  return -weibull_power_of_logs(y, alpha, sigma);
}

/* (y / sigma)^alpha, also where the quotient runs under. At y = 0 its slope is that of y alone, 1 / sigma if alpha is 1. */
real weibull_power_of_logs(real y, real alpha, real sigma) {
  real log_sigma = log(sigma);
  real power = power_by_log(y, alpha, log_of_base(y) - (y == 0 ? 0 : log_sigma));
  real slope_left = 1 / value_of(sigma) - 1;
  return power + (y == 0 && alpha == 1 ? slope_left * y : 0);
}

/* neg_binomial_2(exp(eta), phi), which refuses a mean that overflows, or is 0. */
real neg_binomial_2_of_log_mean_lpmf(int n, real eta, real phi) {
  require_nonnegative(n);
  require_positive_finite(exp(eta));
  require_positive_finite(phi);
  return neg_binomial_log_coefficient(n, phi) + n * eta - neg_binomial_2_log_mass(n, eta, phi);
}

/* neg_binomial_2_log(alpha + x * beta, phi): the GLM of the language drops other constants. */
real neg_binomial_2_log_of_product_lpmf(array[] int y, matrix x, real alpha, vector beta, real phi) {
  return neg_binomial_2_log_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_of_product_lpmf(array[] int y, matrix x, real alpha, vector beta, vector phi) {
  return neg_binomial_2_log_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_of_product_lpmf(array[] int y, matrix x, vector alpha, vector beta, real phi) {
  return neg_binomial_2_log_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_log_of_product_lpmf(array[] int y, matrix x, vector alpha, vector beta, vector phi) {
  return neg_binomial_2_log_lupmf(y | alpha + x * beta, phi);
}

/* neg_binomial_2(exp(alpha + x * beta), phi). */
real neg_binomial_2_of_product_lpmf(array[] int y, matrix x, real alpha, vector beta, real phi) {
  return neg_binomial_2_of_log_mean_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_of_product_lpmf(array[] int y, matrix x, real alpha, vector beta, vector phi) {
  return neg_binomial_2_of_log_mean_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_of_product_lpmf(array[] int y, matrix x, vector alpha, vector beta, real phi) {
  return neg_binomial_2_of_log_mean_lupmf(y | alpha + x * beta, phi);
}

real neg_binomial_2_of_product_lpmf(array[] int y, matrix x, vector alpha, vector beta, vector phi) {
  return neg_binomial_2_of_log_mean_lupmf(y | alpha + x * beta, phi);
}

/* log_mix(theta, a, b) as log_sum_exp(log(theta) + a, log(1 - theta) + b): NaN for theta outside of [0, 1]. */
real log_mix_of_logs(real theta, real a, real b) { return log_sum_exp(log(theta) + a, log(1 - theta) + b); }

/* log_mix(theta, a, b) as log_sum_exp(log(theta) + a, log1m(theta) + b), which only log1m refuses: theta above 1. */
real log_mix_of_fraction(real theta, real a, real b) {
  require_at_most(is_nan(theta) ? 0 : theta, 1);
  return log_sum_exp(log(theta) + a, log1m(theta) + b);
}

/* trace(D * B' * A * B), where D need not be square. */
real trace_of_quad_form_times(matrix D, matrix A, matrix B) {
  return rows(D) == cols(D) ? trace_gen_quad_form(D, A, B) : trace(D * quad_form(A, B));
}
