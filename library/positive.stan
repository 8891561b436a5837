/* Densities on the positive numbers. Stan Functions Reference, "Positive continuous distributions" and
 * "Positive lower-bounded distributions". Conventions: continuous.stan. */

/* Lognormal. y >= 0, mu finite, sigma > 0 and finite; density 0 at y = 0. `~` keeps the constant, as in Stan. */
real lognormal_lpdf(real y, real mu, real sigma) {
  require_nonnegative(y);
  require_finite(mu);
  require_positive_finite(sigma);
  if (y == 0) return negative_infinity();
  return std_normal_log_density((log(y) - mu) * inv(sigma)) - log(sigma) - log(y);
}

/* Exponential. y >= 0; beta, a rate, > 0 and finite. */
real exponential_lpdf(real y, real beta) {
  require_nonnegative(y);
  require_positive_finite(beta);
  return -beta * y + log(beta);
}

/* Gamma. y, alpha, beta (a rate) > 0 and finite. */
real gamma_lpdf(real y, real alpha, real beta) {
  require_positive_finite(y);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  return (alpha - 1) * log(y) - beta * y + alpha * log(beta) - lgamma(alpha);
}

/* Inverse gamma. y not NaN; alpha, beta (a scale) > 0 and finite; density 0 for y <= 0. */
real inv_gamma_lpdf(real y, real alpha, real beta) {
  require_not_nan(y);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (y <= 0) return negative_infinity();
  return -(alpha + 1) * log(y) - beta / y + alpha * log(beta) - lgamma(alpha);
}

/* Chi-square. y >= 0, nu > 0 and finite. */
real chi_square_lpdf(real y, real nu) {
  require_nonnegative(y);
  require_positive_finite(nu);
  return (0.5 * nu - 1) * log(y) - 0.5 * y - chi_square_log_normalizer(nu);
}

real chi_square_log_normalizer(real nu) { return nu * half_log_two() + lgamma(0.5 * nu); }

/* Inverse chi-square. y not NaN, nu > 0 and finite; density 0 for y <= 0. */
real inv_chi_square_lpdf(real y, real nu) {
  require_positive_finite(nu);
  require_not_nan(y);
  if (y <= 0) return negative_infinity();
  return -(0.5 * nu + 1) * log(y) - 0.5 / y - chi_square_log_normalizer(nu);
}

/* Scaled inverse chi-square. y not NaN; nu, sigma > 0 and finite; density 0 for y <= 0. */
real scaled_inv_chi_square_lpdf(real y, real nu, real sigma) {
  require_not_nan(y);
  require_positive_finite(nu);
  require_positive_finite(sigma);
  if (y <= 0) return negative_infinity();
  return -(0.5 * nu + 1) * log(y) - 0.5 * nu * square(sigma) / y + nu * log(sigma) + 0.5 * nu * log(0.5 * nu)
         - lgamma(0.5 * nu);
}

/* Weibull. y finite; alpha, sigma > 0 and finite; density 0 for y < 0. */
real weibull_lpdf(real y, real alpha, real sigma) {
  require_finite(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y < 0) return negative_infinity();
  return log(alpha) + (alpha - 1) * log(y) - alpha * log(sigma) - pow(y / sigma, alpha);
}

/* Frechet. y > 0; alpha, sigma > 0 and finite. */
real frechet_lpdf(real y, real alpha, real sigma) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  return log(alpha) - (alpha + 1) * log(y) + alpha * log(sigma) - pow(sigma / y, alpha);
}

/* Rayleigh. y, sigma > 0. */
real rayleigh_lpdf(real y, real sigma) {
  require_positive(sigma);
  require_positive(y);
  return log(y) - 0.5 * square(y / sigma) - 2 * log(sigma);
}

/* Log-logistic. y, alpha (a scale), beta (a shape) > 0 and finite. */
real loglogistic_lpdf(real y, real alpha, real beta) {
  require_positive_finite(y);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  return loglogistic_log_kernel(y, alpha, beta) + loglogistic_log_normalizer(alpha, beta);
}

real loglogistic_log_kernel(real y, real alpha, real beta) {
  return (beta - 1) * log(y) - 2 * log1p_exp(beta * (log(y) - log(alpha)));
}

real loglogistic_log_normalizer(real alpha, real beta) { return log(beta) - beta * log(alpha); }

/* Pareto. y not NaN; y_min, alpha > 0 and finite; density 0 for y < y_min. */
real pareto_lpdf(real y, real y_min, real alpha) {
  require_not_nan(y);
  require_positive_finite(y_min);
  require_positive_finite(alpha);
  if (y < y_min) return negative_infinity();
  return log(alpha) + alpha * log(y_min) - (alpha + 1) * log(y);
}

/* Pareto type 2. y >= mu; lambda, alpha > 0 and finite. */
real pareto_type_2_lpdf(real y, real mu, real lambda, real alpha) {
  require_at_least(y, mu);
  require_positive_finite(lambda);
  require_positive_finite(alpha);
  return log(alpha) - log(lambda) - (alpha + 1) * log1p((y - mu) / lambda);
}

real lognormal_lcdf(real y, real mu, real sigma) {
  require_nonnegative(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return log_Phi(scaled_outcome(log(y) - mu, sigma));
}

real lognormal_lccdf(real y, real mu, real sigma) {
  require_nonnegative(y);
  require_finite(mu);
  require_positive_finite(sigma);
  if (y == 0) return 0;
  return log_Phi(scaled_outcome(mu - log(y), sigma));
}

real lognormal_cdf(real y, real mu, real sigma) {
  require_nonnegative(y);
  require_finite(mu);
  require_positive_finite(sigma);
  if (y == 0) return 0;
  return Phi(scaled_outcome(log(y) - mu, sigma));
}

/* The outcome of a function that is constant long before the largest number. */
real finite_outcome(real y) { return fmin(y, 1.7976931348623157e308); }

real exponential_lcdf(real y, real beta) {
  require_nonnegative(y);
  require_positive_finite(beta);
  return log_exponential_probability(finite_outcome(y), beta);
}

real log_exponential_probability(real y, real beta) {
  return beta * y < 1e-290 ? log(beta) + log(y) : log1m_exp(-beta * y);
}

real exponential_lccdf(real y, real beta) {
  require_nonnegative(y);
  require_positive_finite(beta);
  return -beta * y;
}

real exponential_cdf(real y, real beta) {
  require_nonnegative(y);
  require_positive_finite(beta);
  return -expm1(-beta * finite_outcome(y));
}

real weibull_lcdf(real y, real alpha, real sigma) {
  require_nonnegative(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  return log_weibull_probability(y, sigma, alpha);
}

/* log(1 - exp(-(y / sigma)^alpha)), also where the power runs under. */
real log_weibull_probability(real y, real sigma, real alpha) {
  if (y > 0 && y / sigma < 1e-290) return log1m_exp_of_log(alpha * (log(y) - log(sigma)));
  real power = power_of_outcome(scaled_outcome(y, sigma), alpha);
  return power < 1e-290 ? alpha * (log(y) - log(sigma)) : log1m_exp(-power);
}

/* log(1 - exp(-exp(x))) */
real log1m_exp_of_log(real x) { return x < -650 ? x : log1m_exp(-exp(x)); }

real weibull_lccdf(real y, real alpha, real sigma) {
  require_nonnegative(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y / sigma < 1e-290) return y == 0 ? -power_at_zero(y, alpha, 1 / sigma) : -exp(alpha * (log(y) - log(sigma)));
  return -pow(y / sigma, alpha);
}

/* (x / y)^exponent, also where the quotient runs under; infinite without a slope where it runs over. */
real power_of_quotient(real x, real y, real exponent) {
  if (x / y < 1e-290) return exp(exponent * (log(x) - log(y)));
  return power_of_outcome(scaled_outcome(x, y), exponent);
}

/* What a power of factor * y is at 0, with its slope by y; the factor has none. */
real power_at_zero(real y, real exponent, real factor) {
  return exponent == 1 ? factor * y : exponent < 1 ? sqrt(y) : 0;
}

real weibull_cdf(real y, real alpha, real sigma) {
  require_nonnegative(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y == 0) return power_at_zero(y, alpha, 1 / sigma);
  return -expm1(-power_of_quotient(y, sigma, alpha));
}

real frechet_lcdf(real y, real alpha, real sigma) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y == positive_infinity()) return 0;
  return -power_of_quotient(sigma, y, alpha);
}

real frechet_lccdf(real y, real alpha, real sigma) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  return log_weibull_probability(sigma, y, alpha);
}

real frechet_cdf(real y, real alpha, real sigma) {
  require_positive(y);
  require_positive_finite(alpha);
  require_positive_finite(sigma);
  if (y == positive_infinity()) return 1;
  return exp(-power_of_quotient(sigma, y, alpha));
}

real rayleigh_lcdf(real y, real sigma) {
  require_positive(sigma);
  require_nonnegative(y);
  return log_rayleigh_probability(y, sigma);
}

real log_rayleigh_probability(real y, real sigma) {
  real z = fmin(scaled_outcome(y, sigma), 1e150);
  return z < 1e-145 ? 2 * (log(y) - log(sigma)) - log_two() : log1m_exp(-0.5 * square(z));
}

real rayleigh_lccdf(real y, real sigma) {
  require_positive(sigma);
  require_nonnegative(y);
  return -0.5 * square(y / sigma);
}

real rayleigh_cdf(real y, real sigma) {
  require_positive(sigma);
  require_nonnegative(y);
  return -expm1(-0.5 * square(fmin(scaled_outcome(y, sigma), 1e150)));
}

real loglogistic_cdf(real y, real alpha, real beta) {
  require_nonnegative(y);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (y == 0) return power_at_zero(y, beta, 1 / alpha);
  if (y == positive_infinity()) return 1;
  return loglogistic_probability(power_of_quotient(y < alpha ? y : alpha, y < alpha ? alpha : y, beta), y < alpha);
}

/* From the odds, or where these exceed 1 from their inverse. */
real loglogistic_probability(real odds, int below) { return below ? odds / (1 + odds) : 1 / (1 + odds); }

/* log(x / y) and log1p(x / y), also where the quotient runs under or over. */
real log_ratio(real x, real y) {
  real ratio = x / y;
  return ratio < 1e-290 ? log(x) - log(y) : log(ratio);
}

real log1p_ratio(real x, real y) {
  real ratio = scaled_outcome(x, y);
  return ratio > 1e290 ? log(x) - log(y) : log1p(ratio);
}

real pareto_lcdf(real y, real y_min, real alpha) {
  require_nonnegative(y);
  require_positive_finite(y_min);
  require_positive_finite(alpha);
  if (y < y_min) return negative_infinity();
  if (y == positive_infinity()) return 0;
  return log1m_exp(alpha * log_ratio(y_min, y));
}

real pareto_lccdf(real y, real y_min, real alpha) {
  require_nonnegative(y);
  require_positive_finite(y_min);
  require_positive_finite(alpha);
  if (y < y_min) return 0;
  return alpha * log_ratio(y_min, y);
}

real pareto_cdf(real y, real y_min, real alpha) {
  require_nonnegative(y);
  require_positive_finite(y_min);
  require_positive_finite(alpha);
  if (y < y_min) return 0;
  if (y == positive_infinity()) return 1;
  return -expm1(alpha * log_ratio(y_min, y));
}

real pareto_type_2_lcdf(real y, real mu, real lambda, real alpha) {
  require_at_least(y, mu);
  require_nonnegative(y);
  require_positive_finite(lambda);
  require_positive_finite(alpha);
  if (y == positive_infinity()) return 0;
  return log1m_exp(-alpha * log1p_ratio(y - mu, lambda));
}

real pareto_type_2_lccdf(real y, real mu, real lambda, real alpha) {
  require_at_least(y, mu);
  require_nonnegative(y);
  require_positive_finite(lambda);
  require_positive_finite(alpha);
  return -alpha * log1p_ratio(y - mu, lambda);
}

real pareto_type_2_cdf(real y, real mu, real lambda, real alpha) {
  require_at_least(y, mu);
  require_nonnegative(y);
  require_positive_finite(lambda);
  require_positive_finite(alpha);
  if (y == positive_infinity()) return 1;
  return -expm1(-alpha * log1p_ratio(y - mu, lambda));
}
