/* Densities on the whole real line. Stan Functions Reference, "Unbounded continuous distributions".
 *
 * Conventions of all density files. Arguments are scalars; the compiler vectorises. First come locals and the checks of
 * the arguments in the order of Stan's manual, then guards `if (...) return ...;` for points outside of the support,
 * then one sum. `~` drops the summands in which no argument is a parameter: constants stand apart. */

/* Normal. y not NaN, mu finite, sigma > 0. */
real normal_lpdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(sigma);
  return -0.5 * square((y - mu) * inv(sigma)) - log(sigma) - log_sqrt_two_pi();
}

/* Standard normal. y not NaN. */
real std_normal_lpdf(real y) {
  require_not_nan(y);
  return -0.5 * square(y) - log_sqrt_two_pi();
}

/* Cauchy. y not NaN, mu finite, sigma > 0 and finite. */
real cauchy_lpdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return -log1p(square((y - mu) * inv(sigma))) - log(sigma) - log_pi();
}

/* Student's t. y not NaN; nu, sigma > 0 and finite; mu finite. */
real student_t_lpdf(real y, real nu, real mu, real sigma) {
  require_not_nan(y);
  require_positive_finite(nu);
  require_finite(mu);
  require_positive_finite(sigma);
  return -(0.5 * nu + 0.5) * log1p(square((y - mu) * inv(sigma)) / nu) - log(sigma)
         + log_gamma_half_step(0.5 * nu) - 0.5 * log(nu) - log_sqrt_pi();
}

/* lgamma(x + 0.5) - lgamma(x), without cancellation for large x. */
real log_gamma_half_step(real x) { return log_sqrt_pi() - lbeta(0.5, x); }

/* Double exponential (Laplace). All finite, sigma > 0. */
real double_exponential_lpdf(real y, real mu, real sigma) {
  require_finite(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return -abs(y - mu) * inv(sigma) - log(sigma) - log_two();
}

/* Logistic. All finite, sigma > 0. Symmetric in y - mu: exp of a negative number only. */
real logistic_lpdf(real y, real mu, real sigma) {
  require_finite(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return logistic_log_kernel((y - mu) * inv(sigma)) - log(sigma);
}

real logistic_log_kernel(real z) { return -z - 2 * log1p_exp(-z); }

/* Gumbel. y not NaN, mu finite, beta > 0. */
real gumbel_lpdf(real y, real mu, real beta) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(beta);
  return gumbel_log_kernel((y - mu) * inv(beta)) - log(beta);
}

real gumbel_log_kernel(real z) { return -z - exp(-z); }

/* Skew normal. y not NaN; xi, alpha finite; omega > 0. */
real skew_normal_lpdf(real y, real xi, real omega, real alpha) {
  require_not_nan(y);
  require_finite(xi);
  require_finite(alpha);
  require_positive(omega);
  return -0.5 * square((y - xi) / omega) - log(omega) + log_two_Phi(alpha * ((y - xi) / omega)) - log_sqrt_two_pi();
}

/* Exponentially modified normal. y not NaN, mu finite; sigma, lambda > 0 and finite. */
real exp_mod_normal_lpdf(real y, real mu, real sigma, real lambda) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_positive_finite(lambda);
  return exp_mod_normal_log_kernel((y - mu) / sigma, lambda * sigma) + log(lambda) - log_two();
}

real exp_mod_normal_log_kernel(real z, real v) { return exp_mod_normal_log_share(z, v) + log_two(); }

/* log of exp(v (v / 2 - z)) Phi(z - v); down the normal's tail its square and the first factor cancel. */
real exp_mod_normal_log_share(real z, real v) {
  return z < v ? log_scaled_Phi(z - v) - 0.5 * square(z) : v * (0.5 * v - z) + log_Phi(z - v);
}

/* Skew double exponential. y not NaN, mu finite, sigma > 0 and finite, tau in [0, 1]. */
real skew_double_exponential_lpdf(real y, real mu, real sigma, real tau) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  require_probability(tau);
  return -2 * ((y < mu ? 1 - tau : tau) * abs(y - mu)) / sigma - log(sigma) + log_tau_one_minus_tau(tau) + log_two();
}

real log_tau_one_minus_tau(real tau) { return log(tau) + log1m(tau); }

/* Von Mises. All finite, kappa >= 0. The Bessel function's scale exp(kappa) is joined with the cosine. */
real von_mises_lpdf(real y, real mu, real kappa) {
  require_finite(y);
  require_finite(mu);
  require_nonnegative(kappa);
  require_finite(kappa);
  return kappa * cos(mu - y) - log_modified_bessel_first_kind(0, kappa) - log_two() - log_pi();
}

real std_normal_log_density(real z) { return -0.5 * square(z) - log_sqrt_two_pi(); }

/* log(2 Phi(z)): the log of 1 + erf(z / sqrt(2)). */
real log_two_Phi(real z) { return log_Phi(z) + log_two(); }

real normal_lcdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(sigma);
  return log_Phi(scaled_outcome(y - mu, sigma));
}

real normal_lccdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(sigma);
  return log_Phi(scaled_outcome(mu - y, sigma));
}

real normal_cdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(sigma);
  return Phi(scaled_outcome(y - mu, sigma));
}

real std_normal_lcdf(real y) {
  require_not_nan(y);
  return log_Phi(y);
}

real std_normal_lccdf(real y) {
  require_not_nan(y);
  return log_Phi(-y);
}

real std_normal_cdf(real y) {
  require_not_nan(y);
  return Phi(y);
}

real cauchy_lcdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return cauchy_log_tail(scaled_outcome(mu - y, sigma));
}

real cauchy_lccdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return cauchy_log_tail(scaled_outcome(y - mu, sigma));
}

real cauchy_cdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return cauchy_tail(scaled_outcome(mu - y, sigma));
}

/* Pr(Z > z) for a standard Cauchy Z, without cancellation in the tail. */
real cauchy_tail(real z) { return atan2(1, z) / pi(); }

real cauchy_log_tail(real z) {
  return z < 0 ? log1m(cauchy_tail(-z)) : z < 1e10 ? log(cauchy_tail(z)) : -log(z) - log_pi();
}

real double_exponential_lcdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return laplace_log_probability(scaled_outcome(y - mu, sigma));
}

real double_exponential_lccdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return laplace_log_probability(scaled_outcome(mu - y, sigma));
}

real double_exponential_cdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return exp(laplace_log_probability(scaled_outcome(y - mu, sigma)));
}

real laplace_log_probability(real z) { return z < 0 ? z - log_two() : log1p(-0.5 * exp(-z)); }

real logistic_lcdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return -log1p_exp(scaled_outcome(mu - y, sigma));
}

real logistic_lccdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return -log1p_exp(scaled_outcome(y - mu, sigma));
}

real logistic_cdf(real y, real mu, real sigma) {
  require_not_nan(y);
  require_finite(mu);
  require_positive_finite(sigma);
  return logistic_probability(scaled_outcome(y - mu, sigma));
}

/* Its derivative is exact in both tails, which that of inv_logit is in the lower one only. */
real logistic_probability(real z) { return z < 0 ? inv_logit(z) : 1 / (1 + exp(-z)); }

real gumbel_lcdf(real y, real mu, real beta) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(beta);
  return -exp(scaled_outcome(mu - y, beta));
}

real gumbel_lccdf(real y, real mu, real beta) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(beta);
  return gumbel_log_upper_tail(scaled_outcome(mu - y, beta));
}

/* 0 where it has long rounded to that: exp(z) would run over; far up the tail exp(z) would run under. */
real gumbel_log_upper_tail(real z) { return z > 40 ? 0 : z < -40 ? z : log1m_exp(-exp(z)); }

real gumbel_cdf(real y, real mu, real beta) {
  require_not_nan(y);
  require_finite(mu);
  require_positive(beta);
  return exp(-exp(fmin(scaled_outcome(mu - y, beta), 700)));
}

/* Skew normal. */
real skew_normal_cdf(real y, real xi, real omega, real alpha) {
  require_not_nan(y);
  require_finite(xi);
  require_positive(omega);
  require_finite(alpha);
  return exp(skew_normal_log_probability(fmax(scaled_outcome(y - xi, omega), -50), alpha));
}

real skew_normal_lcdf(real y, real xi, real omega, real alpha) {
  require_not_nan(y);
  require_finite(xi);
  require_positive(omega);
  require_finite(alpha);
  return skew_normal_log_probability(scaled_outcome(y - xi, omega), alpha);
}

/* Reflected. */
real skew_normal_lccdf(real y, real xi, real omega, real alpha) {
  require_not_nan(y);
  require_finite(xi);
  require_positive(omega);
  require_finite(alpha);
  return skew_normal_log_probability(scaled_outcome(xi - y, omega), -alpha);
}

/* From 50 on it has long rounded to 0: nothing runs over there. */
real skew_normal_log_probability(real z, real alpha) { return log_skew_normal(fmin(z, 50), alpha); }

/* Von Mises, on [-pi, pi] whatever mu is. */
real von_mises_cdf(real y, real mu, real kappa) { return exp(von_mises_lcdf(y | mu, kappa)); }

real von_mises_lcdf(real y, real mu, real kappa) {
  require_in_interval(y, -pi(), pi());
  require_finite(mu);
  require_positive_finite(kappa);
  return log_von_mises(-pi() - within_circle(mu), y - within_circle(mu), kappa);
}

real von_mises_lccdf(real y, real mu, real kappa) {
  require_in_interval(y, -pi(), pi());
  require_finite(mu);
  require_positive_finite(kappa);
  return log_von_mises(y - within_circle(mu), pi() - within_circle(mu), kappa);
}

/* The same angle, less of whole turns where they would take the digits of a difference from it. */
real within_circle(real angle) { return abs(angle) < 100 ? angle : atan2(sin(angle), cos(angle)); }
