/* Densities on an interval. Stan Functions Reference, "Continuous distributions on [0, 1]" and "Bounded continuous
 * distributions". Conventions: continuous.stan. */

/* Beta. alpha, beta > 0 and finite; y in [0, 1]. */
real beta_lpdf(real y, real alpha, real beta) {
  require_positive_finite(alpha);
  require_positive_finite(beta);
  require_probability(y);
  return (alpha - 1) * log(y) + (beta - 1) * log1m(y) - lgamma(alpha) - lgamma(beta) + lgamma(alpha + beta);
}

/* Beta with mean mu in (0, 1) and precision kappa > 0. */
real beta_proportion_lpdf(real y, real mu, real kappa) {
  require_positive(mu);
  require_less(mu, 1.0);
  require_positive_finite(kappa);
  require_probability(y);
  return lgamma(kappa) - beta_proportion_log_gammas(mu, kappa)
         + ((mu * kappa - 1) * log(y) + ((1 - mu) * kappa - 1) * log1m(y));
}

real beta_proportion_log_gammas(real mu, real kappa) { return lgamma(mu * kappa) + lgamma(kappa - mu * kappa); }

/* Uniform on [alpha, beta]; density 0 outside. */
real uniform_lpdf(real y, real alpha, real beta) {
  require_not_nan(y);
  require_finite(alpha);
  require_finite(beta);
  require_greater(beta, alpha);
  if (y < alpha || y > beta) return negative_infinity();
  return -log(beta - alpha);
}

real uniform_lcdf(real y, real alpha, real beta) {
  require_not_nan(y);
  require_finite(alpha);
  require_finite(beta);
  require_greater(beta, alpha);
  if (y < alpha) return negative_infinity();
  if (y > beta) return 0;
  return log((y - alpha) / (beta - alpha));
}

real uniform_lccdf(real y, real alpha, real beta) {
  require_not_nan(y);
  require_finite(alpha);
  require_finite(beta);
  require_greater(beta, alpha);
  if (y < alpha) return 0;
  if (y > beta) return negative_infinity();
  return log((beta - y) / (beta - alpha));
}

real uniform_cdf(real y, real alpha, real beta) {
  require_not_nan(y);
  require_finite(alpha);
  require_finite(beta);
  require_greater(beta, alpha);
  if (y < alpha) return 0;
  if (y > beta) return 1;
  return (y - alpha) / (beta - alpha);
}
