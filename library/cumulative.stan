/* Distribution functions through incomplete gamma and beta functions. Stan Functions Reference, the sections of the
 * distributions; X_cdf is Pr(Y <= y), X_lcdf its log, X_lccdf the log of Pr(Y > y). */

/* Gamma with shape alpha and rate beta. */
real gamma_cdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == positive_infinity()) return 1;
  return gamma_p(alpha, beta * y);
}

real gamma_lcdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == positive_infinity()) return 0;
  return log_gamma_p_of_product(alpha, beta, y);
}

/* log_gamma_p(a, x * y), whose slopes with respect to a factor do not run over where the product is near 0. */
real log_gamma_p_of_product(real a, real x, real y) {
  return x * y < 1e-290 ? a * (log(x) + log(y)) - lgamma(a + 1) : log_gamma_p(a, x * y);
}

real gamma_lccdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == 0) return -power_at_zero(y, alpha, beta);
  if (y == positive_infinity()) return negative_infinity();
  return log_gamma_q(alpha, beta * y);
}

/* Inverse gamma with shape alpha and scale beta. */
real inv_gamma_cdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == 0) return 0;
  if (y == positive_infinity()) return 1;
  return beta / y > 1e-290 ? gamma_q(alpha, scaled_outcome(beta, y))
         : -expm1(gamma_log_power(alpha, log(beta) - log(y)));
}

real inv_gamma_lcdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == 0) return negative_infinity();
  if (y == positive_infinity()) return 0;
  return beta / y > 1e-290 ? log_gamma_q(alpha, scaled_outcome(beta, y))
         : log1m_exp(gamma_log_power(alpha, log(beta) - log(y)));
}

real inv_gamma_lccdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_nonnegative(y);
  if (y == 0) return 0;
  if (y == positive_infinity()) return negative_infinity();
  return beta / y > 1e-290 ? log_gamma_p(alpha, scaled_outcome(beta, y))
         : gamma_log_power(alpha, log(beta) - log(y));
}

/* Chi-square with nu degrees of freedom. */
real chi_square_cdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == positive_infinity()) return 1;
  return gamma_p(0.5 * nu, 0.5 * y);
}

real chi_square_lcdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == positive_infinity()) return 0;
  return log_gamma_p(0.5 * nu, 0.5 * y);
}

real chi_square_lccdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == positive_infinity()) return negative_infinity();
  return log_gamma_q(0.5 * nu, 0.5 * y);
}

/* Inverse chi-square with nu degrees of freedom. */
real inv_chi_square_cdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == 0) return 0;
  if (y == positive_infinity()) return 1;
  return gamma_q(0.5 * nu, scaled_outcome(0.5, y));
}

real inv_chi_square_lcdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == 0) return negative_infinity();
  if (y == positive_infinity()) return 0;
  return log_gamma_q(0.5 * nu, scaled_outcome(0.5, y));
}

real inv_chi_square_lccdf(real y, real nu) {
  require_positive_finite(nu);
  require_nonnegative(y);
  if (y == 0) return 0;
  if (y == positive_infinity()) return negative_infinity();
  return log_gamma_p(0.5 * nu, scaled_outcome(0.5, y));
}

/* Scaled inverse chi-square with nu degrees of freedom and scale sigma. */
real scaled_inv_chi_square_cdf(real y, real nu, real sigma) {
  require_nonnegative(y);
  require_positive_finite(nu);
  require_positive_finite(sigma);
  if (y == 0) return 0;
  if (y == positive_infinity()) return 1;
  real x = scaled_chi_square(nu, sigma, y);
  return x > 1e-290 ? gamma_q(0.5 * nu, x) : -expm1(scaled_chi_square_log_power(nu, sigma, y));
}

real scaled_inv_chi_square_lcdf(real y, real nu, real sigma) {
  require_nonnegative(y);
  require_positive_finite(nu);
  require_positive_finite(sigma);
  if (y == 0) return negative_infinity();
  if (y == positive_infinity()) return 0;
  real x = scaled_chi_square(nu, sigma, y);
  return x > 1e-290 ? log_gamma_q(0.5 * nu, x) : log1m_exp(scaled_chi_square_log_power(nu, sigma, y));
}

real scaled_inv_chi_square_lccdf(real y, real nu, real sigma) {
  require_nonnegative(y);
  require_positive_finite(nu);
  require_positive_finite(sigma);
  if (y == 0) return 0;
  if (y == positive_infinity()) return negative_infinity();
  real x = scaled_chi_square(nu, sigma, y);
  return x > 1e-290 ? log_gamma_p(0.5 * nu, x) : scaled_chi_square_log_power(nu, sigma, y);
}

/* nu sigma^2 / (2 y), whose square may run over or under. */
real scaled_chi_square(real nu, real sigma, real y) {
  real squared = square(sigma);
  if (squared > 1e-290 && squared < 1e290) return scaled_outcome(0.5 * nu * squared, y);
  if (log(nu) + 2 * log(sigma) - log(y) > 709) return positive_infinity();
  real ratio = fmin(scaled_outcome(sigma, sqrt(y)), 1.7976931348623157e308);
  return 0.5 * nu * ratio * ratio;
}

/* log(x^a / Gamma(a + 1)) of that x, and a half of nu: log_gamma_p next to 0. */
real scaled_chi_square_log_power(real nu, real sigma, real y) {
  return gamma_log_power(0.5 * nu, log(0.5 * nu) + 2 * log(sigma) - log(y));
}

real gamma_log_power(real a, real log_x) { return a * log_x - lgamma(a + 1); }

/* Beta. */
real beta_cdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_probability(y);
  return inc_beta(alpha, beta, y);
}

real beta_lcdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_probability(y);
  return log_inc_beta(alpha, beta, y, 1 - y);
}

real beta_lccdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_probability(y);
  return log_inc_beta(beta, alpha, 1 - y, y);
}

/* Beta with mean mu and precision kappa. */
real beta_proportion_lcdf(real y, real mu, real kappa) {
  require_positive(mu);
  require_less(mu, 1.0);
  require_positive_finite(kappa);
  require_probability(y);
  return log_inc_beta(mu * kappa, kappa * (1 - mu), y, 1 - y);
}

real beta_proportion_lccdf(real y, real mu, real kappa) {
  require_positive(mu);
  require_less(mu, 1.0);
  require_positive_finite(kappa);
  require_probability(y);
  return log_inc_beta(kappa * (1 - mu), mu * kappa, 1 - y, y);
}

/* Student's t: half of an incomplete beta function beyond |y - mu|. */
real student_t_cdf(real y, real nu, real mu, real sigma) {
  require_not_nan(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_positive_finite(sigma);
  return student_t_probability(scaled_outcome(y - mu, sigma), nu);
}

real student_t_lcdf(real y, real nu, real mu, real sigma) {
  require_not_nan(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_positive_finite(sigma);
  return student_t_log_probability(scaled_outcome(y - mu, sigma), nu);
}

real student_t_lccdf(real y, real nu, real mu, real sigma) {
  require_not_nan(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_positive_finite(sigma);
  return student_t_log_probability(scaled_outcome(mu - y, sigma), nu);
}

/* Pr(T <= t). */
real student_t_probability(real t, real nu) {
  if (is_inf(t)) return t > 0 ? 1 : 0;
  if (nu > 1e15 && abs(t) < 1e10 * (1 + nu)) return exp(nearly_normal_log_probability(t, nu));
  return student_t_beta_probability(t, nu);
}

/* The same for what is neither infinite nor nearly normal. Near 0 through the complement, where the square of t would
 * lose t's derivative; at 0 by the slope there, as a root has none. */
real student_t_beta_probability(real t, real nu) {
  if (t < -1e10 * (1 + nu)) return exp(student_t_log_far_tail(-t, nu));
  if (t > 1e10 * (1 + nu)) return 1 - exp(student_t_log_far_tail(t, nu));
  return square(t) * (nu + 1) < 1e-17 * nu
         ? 0.5 + t * exp(log_gamma_half_step(0.5 * nu) - log_sqrt_pi() - 0.5 * log(nu))
         : square(t) < 4 && square(t) < 1e8 * nu
         ? 0.5 + (t < 0 ? -0.5 : 0.5) * inc_beta(0.5, 0.5 * nu, square(t) / (nu + square(t)))
         : t < 0 ? 0.5 * inc_beta(0.5 * nu, 0.5, nu / (nu + square(t)))
         : 1 - 0.5 * inc_beta(0.5 * nu, 0.5, nu / (nu + square(t)));
}

/* log(Pr(T > t)), as a power of t, which the square of t would not reach. */
real student_t_log_far_tail(real t, real nu) {
  if (t == positive_infinity()) return negative_infinity();
  return log_gamma_half_step(0.5 * nu) - log_sqrt_pi() + (0.5 * nu - 1) * log(nu) - nu * log(t);
}

real student_t_log_probability(real t, real nu) {
  if (is_inf(t)) return t > 0 ? 0 : negative_infinity();
  if (nu > 1e15 && abs(t) < 1e10 * (1 + nu)) return nearly_normal_log_probability(t, nu);
  if (t < -1e10 * (1 + nu)) return student_t_log_far_tail(-t, nu);
  if (t > -2) {
    real tail = student_t_beta_probability(t > 0 ? -t : t, nu);
    return t > 0 ? log1m(tail) : log(tail);
  }
  return log_inc_beta(0.5 * nu, 0.5, nu / (nu + square(t)), 1 / (1 + nu / square(t))) - log2();
}

/* The same for so many degrees of freedom nu that 1 / nu is rounding. w is such that exp(-w^2 / 2) is the power of the
 * density; what remains of its integral is the slope of w, near 1 but far out. */
real nearly_normal_log_probability(real t, real nu) {
  real q = t / nu * t;
  if (q > 1e290) {
    real log_q = 2 * log(abs(t)) - log(nu);
    real w = sqrt(nu) * sqrt(log_q);
    return t > 0 ? log_Phi(w) : log_Phi(-w) + log(w) - log(-t) + 0.5 * log_q;
  }
  if (q > 1e-8) {
    real w = (t < 0 ? -1 : 1) * sqrt(nu * log1p(q));
    return t > 0 ? log_Phi(w) : log_Phi(w) + log(w / t) + 0.5 * log1p(q);
  }
  real w = t * (1 - q * (0.25 - 0.13541666666666666 * q));
  return log_Phi(w) + log1p(-0.25 * w / nu * normal_hazard(w, log_Phi(w)));
}

/* Binomial: n successes of N. */
real binomial_cdf(int n, int N, real theta) {
  require_nonnegative(N);
  require_probability(theta);
  if (n < 0) return 0;
  if (n >= N) return 1;
  if (theta == 1) return n == N - 1 ? N * (1 - theta) : 0;
  return exp(log_inc_beta(N - n, n + 1, 1 - theta, theta));
}

real binomial_lcdf(int n, int N, real theta) {
  require_nonnegative(N);
  require_probability(theta);
  if (n < 0) return negative_infinity();
  if (n >= N) return 0;
  return log_inc_beta(N - n, n + 1, 1 - theta, theta);
}

real binomial_lccdf(int n, int N, real theta) {
  require_nonnegative(N);
  require_probability(theta);
  if (n < 0) return 0;
  if (n >= N) return negative_infinity();
  return log_inc_beta(n + 1, N - n, theta, 1 - theta);
}

/* Poisson with rate lambda. */
real poisson_cdf(int n, real lambda) {
  require_nonnegative(lambda);
  if (n < 0) return 0;
  return gamma_q(n + 1.0, lambda);
}

real poisson_lcdf(int n, real lambda) {
  require_nonnegative(lambda);
  if (n < 0) return negative_infinity();
  return log_gamma_q(n + 1.0, lambda);
}

real poisson_lccdf(int n, real lambda) {
  require_nonnegative(lambda);
  if (n < 0) return 0;
  return log_gamma_p(n + 1.0, lambda);
}

/* Negative binomial with shape alpha and inverse scale beta. */
real neg_binomial_cdf(int n, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return 0;
  return exp(log_inc_beta(alpha, n + 1.0, beta / (1 + beta), 1 / (1 + beta)));
}

real neg_binomial_lcdf(int n, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return negative_infinity();
  return log_inc_beta(alpha, n + 1.0, beta / (1 + beta), 1 / (1 + beta));
}

real neg_binomial_lccdf(int n, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return 0;
  return log_inc_beta(n + 1.0, alpha, 1 / (1 + beta), beta / (1 + beta));
}

/* Negative binomial with mean mu and precision phi. */
real neg_binomial_2_cdf(int n, real mu, real phi) {
  require_positive_finite(mu);
  require_positive_finite(phi);
  if (n < 0) return 0;
  return exp(log_inc_beta(phi, n + 1.0, phi / (phi + mu), mu / (phi + mu)));
}

real neg_binomial_2_lcdf(int n, real mu, real phi) {
  require_positive_finite(mu);
  require_positive_finite(phi);
  if (n < 0) return negative_infinity();
  return log_inc_beta(phi, n + 1.0, phi / (phi + mu), mu / (phi + mu));
}

real neg_binomial_2_lccdf(int n, real mu, real phi) {
  require_positive_finite(mu);
  require_positive_finite(phi);
  if (n < 0) return 0;
  real rest = phi / (phi + mu);
  return log_inc_beta(n + 1.0, phi, rest < 1e-10 ? 1 - rest : mu / (phi + mu), rest); /* the slope by mu is that of the rest */
}

/* Beta-binomial, by summation of the mass function. */
real beta_binomial_cdf(int n, int N, real alpha, real beta) {
  require_nonnegative(N);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return 0;
  if (n >= N) return 1;
  return exp(beta_binomial_log_probability(n, N, alpha, beta));
}

real beta_binomial_lcdf(int n, int N, real alpha, real beta) {
  require_nonnegative(N);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return negative_infinity();
  if (n >= N) return 0;
  return beta_binomial_log_probability(n, N, alpha, beta);
}

real beta_binomial_lccdf(int n, int N, real alpha, real beta) {
  require_nonnegative(N);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return 0;
  if (n >= N) return negative_infinity();
  return beta_binomial_log_probability(N - n - 1, N, beta, alpha);
}

/* log(Pr(Y <= n)); above the mean through the complement. */
real beta_binomial_log_probability(int n, int N, real alpha, real beta) {
  int is_upper = n > N * alpha / (alpha + beta);
  real log_normalizer = lbeta(alpha, beta);
  real total = negative_infinity();
  for (k in (is_upper ? n + 1 : 0):(is_upper ? N : n)) {
    total = log_sum_exp(total, lchoose(N, k) + lbeta(k + alpha, N - k + beta) - log_normalizer);
  }
  return is_upper ? log1m_exp(total) : total;
}

/* Uniform on the integers low..high. */
real discrete_range_cdf(int y, int low, int high) {
  require_at_least(high, low);
  if (y < low) return 0;
  if (y >= high) return 1;
  return (y - low + 1.0) / (high - low + 1.0);
}

real discrete_range_lcdf(int y, int low, int high) {
  require_at_least(high, low);
  if (y < low) return negative_infinity();
  if (y >= high) return 0;
  return log((y - low + 1.0) / (high - low + 1.0));
}

real discrete_range_lccdf(int y, int low, int high) {
  require_at_least(high, low);
  if (y < low) return 0;
  if (y >= high) return negative_infinity();
  return log((high - y) / (high - low + 1.0));
}

/* Exponentially modified normal: the normal's distribution function less the exponential's share. */
real exp_mod_normal_cdf(real y, real mu, real sigma, real lambda) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_positive_finite(lambda);
  if (y == negative_infinity()) return 0;
  if (y == positive_infinity()) return 1;
  return exp_mod_normal_probability(fmin(fmax(scaled_outcome(y - mu, sigma), -50), 1e300), lambda * sigma);
}

real exp_mod_normal_probability(real z, real v) {
  if (is_short_decay(z, v)) return exp(exp_mod_normal_log_probability(z, v));
  return Phi(z) - exp(exp_mod_normal_log_share(z, v));
}

/* Where the share is nearly the normal's all, through the log of their quotient, the integral of the hazard's excess from
 * z - v to z, by the rule of Gauss and Legendre with four points: nothing cancels. */
real exp_mod_normal_log_probability(real z, real v) {
  if (v == 0) return negative_infinity();
  if (!is_short_decay(z, v)) return log_diff_exp(log_Phi(z), exp_mod_normal_log_share(z, v));
  real mean = 0.17392742256872693 * (normal_hazard_excess(z - 0.06943184420297371 * v)
                                     + normal_hazard_excess(z - 0.9305681557970263 * v))
              + 0.32607257743127307 * (normal_hazard_excess(z - 0.33000947820757187 * v)
                                       + normal_hazard_excess(z - 0.6699905217924281 * v));
  return log_Phi(z) + (v * mean < 1e-290 ? log(v) + log(mean) : log1m_exp(-v * mean));
}

int is_short_decay(real z, real v) { return v < 0.05 * fmax(1, -z); }

real exp_mod_normal_lcdf(real y, real mu, real sigma, real lambda) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_positive_finite(lambda);
  if (y == negative_infinity()) return negative_infinity();
  if (y == positive_infinity()) return 0;
  return exp_mod_normal_log_probability(fmin(scaled_outcome(y - mu, sigma), 1e300), lambda * sigma);
}

real exp_mod_normal_lccdf(real y, real mu, real sigma, real lambda) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_positive_finite(lambda);
  if (y == negative_infinity()) return 0;
  if (y == positive_infinity()) return negative_infinity();
  return exp_mod_normal_log_tail(fmax(scaled_outcome(y - mu, sigma), -50), lambda * sigma); /* below, it has long rounded to 0 */
}

/* Where it is near 0, through the lower tail. */
real exp_mod_normal_log_tail(real z, real v) {
  real log_share = exp_mod_normal_log_share(z, v);
  real log_tail = log_sum_exp(log_Phi(-z), log_share);
  return log_tail > -0.1 ? log1m_exp(exp_mod_normal_log_probability(z, v)) : log_tail;
}

/* log(1 - share * exp(-u)) for u >= 0, where rest = 1 - share: nothing cancels where both factors are near 1. */
real log_one_minus_share(real share, real rest, real u) {
  return share * exp(-u) > 0.5 ? log(rest * exp(-u) - expm1(-u)) : log1m(share * exp(-u));
}

/* Skew double exponential with skewness tau. */
real skew_double_exponential_cdf(real y, real mu, real sigma, real tau) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_probability(tau);
  if (tau == 0) return tau * (y < mu ? exp(2 * scaled_outcome(y - mu, sigma)) : 1 + 2 * scaled_outcome(y - mu, sigma));
  return exp(skew_laplace_log_probability(fmax(scaled_outcome(y - mu, sigma), -1e300), tau));
}

real skew_double_exponential_lcdf(real y, real mu, real sigma, real tau) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_probability(tau);
  return skew_laplace_log_probability(scaled_outcome(y - mu, sigma), tau);
}

real skew_double_exponential_lccdf(real y, real mu, real sigma, real tau) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_probability(tau);
  return skew_laplace_log_tail(scaled_outcome(y - mu, sigma), tau);
}

/* Both are 0 long before the bound, beyond which slopes would be infinite. */
real skew_laplace_log_probability(real z, real tau) {
  return z < 0 ? log(tau) + 2 * (1 - tau) * z : log_one_minus_share(1 - tau, tau, 2 * tau * fmin(z, 1e300));
}

real skew_laplace_log_tail(real z, real tau) {
  return z < 0 ? log_one_minus_share(tau, 1 - tau, 2 * (1 - tau) * fmin(-z, 1e300)) : log1m(tau) - 2 * tau * z;
}
