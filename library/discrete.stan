/* Mass functions of integers. Stan Functions Reference, "Binary distributions", "Bounded discrete distributions" and
 * "Unbounded discrete distributions". Conventions: continuous.stan. Summands of integer data only stand apart, so that
 * they are computed once, when data are bound. */

/* Bernoulli. y 0 or 1, theta in [0, 1]. */
real bernoulli_lpmf(int y, real theta) {
  require_in_interval(y, 0, 1);
  require_probability(theta);
  return y == 1 ? log(theta) : log1m(theta);
}

/* Bernoulli of the log odds. One term for both outcomes: the sign goes into the argument. */
real bernoulli_logit_lpmf(int y, real alpha) {
  require_in_interval(y, 0, 1);
  require_not_nan(alpha);
  return -log1p_exp((1 - 2 * y) * alpha);
}

/* Binomial: n successes of N. theta in [0, 1]; at theta 0 and 1 the terms with count 0 are 0, not NaN. */
real binomial_lpmf(int n, int N, real theta) {
  require_in_interval(n, 0, N);
  require_nonnegative(N);
  require_probability(theta);
  return lmultiply(n, theta) + (n == N ? 0 : (N - n) * log1m(theta)) + lchoose(N, n);
}

/* Binomial of the log odds alpha, finite. */
real binomial_logit_lpmf(int n, int N, real alpha) {
  require_in_interval(n, 0, N);
  require_nonnegative(N);
  require_finite(alpha);
  return -n * log1p_exp(-alpha) - (N - n) * log1p_exp(alpha) + lchoose(N, n);
}

/* Beta-binomial. N >= 0; alpha, beta > 0 and finite; mass 0 for n outside of 0..N. */
real beta_binomial_lpmf(int n, int N, real alpha, real beta) {
  require_nonnegative(N);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0 || n > N) return negative_infinity();
  return lbeta(n + alpha, N - n + beta) - lbeta(alpha, beta) + lchoose(N, n);
}

/* Hypergeometric: n of N drawn are among a, the rest among b. */
real hypergeometric_lpmf(int n, int N, int a, int b) {
  require_in_interval(n, 0, a);
  require_at_least(N, n);
  require_in_interval(N - n, 0, b);
  require_in_interval(N, 0, a + b);
  return lchoose(a, n) + lchoose(b, N - n) - lchoose(a + b, N);
}

/* Uniform on the integers low..high; mass 0 outside. */
real discrete_range_lpmf(int y, int low, int high) {
  require_at_least(high, low);
  if (y < low || y > high) return negative_infinity();
  return -log(high - low + 1.0);
}

/* Poisson. n >= 0, lambda >= 0; 0 at an infinite rate. */
real poisson_lpmf(int n, real lambda) {
  require_nonnegative(n);
  require_nonnegative(lambda);
  if (is_inf(lambda)) return negative_infinity();
  return lmultiply(n, lambda) - lambda - lgamma(n + 1.0);
}

/* Poisson of the log rate. n >= 0, alpha not NaN; 0 at an infinite rate. */
real poisson_log_lpmf(int n, real alpha) {
  require_nonnegative(n);
  require_not_nan(alpha);
  if (alpha == positive_infinity()) return negative_infinity();
  return (n == 0 ? 0 : n * alpha) - exp(alpha) - lgamma(n + 1.0);
}

/* Negative binomial with shape alpha and inverse scale beta, > 0 and finite. */
real neg_binomial_lpmf(int n, real alpha, real beta) {
  require_nonnegative(n);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  return neg_binomial_log_coefficient(n, alpha) - neg_binomial_log_powers(n, alpha, beta);
}

real neg_binomial_log_powers(int n, real alpha, real beta) { return alpha * log1p(1 / beta) + n * log1p(beta); }

/* Negative binomial with mean mu and precision phi, > 0 and finite. */
real neg_binomial_2_lpmf(int n, real mu, real phi) {
  require_nonnegative(n);
  require_positive_finite(mu);
  require_positive_finite(phi);
  return neg_binomial_log_coefficient(n, phi) + n * log(mu) - (phi * log1p(mu / phi) + n * log(mu + phi));
}

/* Negative binomial with log mean eta, finite, and precision phi > 0 and finite. */
real neg_binomial_2_log_lpmf(int n, real eta, real phi) {
  require_nonnegative(n);
  require_finite(eta);
  require_positive_finite(phi);
  return neg_binomial_log_coefficient(n, phi) + n * eta - neg_binomial_2_log_mass(n, eta, phi);
}

real neg_binomial_2_log_mass(int n, real eta, real phi) {
  real log_phi = log(phi);
  real log1p_ratio = log1p_exp(eta - log_phi);
  return phi * log1p_ratio + n * (log_phi + log1p_ratio);
}

/* log of choose(n + phi - 1, n): one summand of phi, its factorial included. For large phi the gammas would cancel. */
real neg_binomial_log_coefficient(int n, real phi) {
  return phi < 1e4 ? lgamma(n + phi) - lgamma(phi) - lgamma(n + 1.0) : lchoose(n + phi - 1, n);
}

real bernoulli_cdf(int y, real theta) {
  require_probability(theta);
  if (y < 0) return 0;
  if (y >= 1) return 1;
  return 1 - theta;
}

real bernoulli_lcdf(int y, real theta) {
  require_probability(theta);
  if (y < 0) return negative_infinity();
  if (y >= 1) return 0;
  return log1m(theta);
}

real bernoulli_lccdf(int y, real theta) {
  require_probability(theta);
  if (y < 0) return 0;
  if (y >= 1) return negative_infinity();
  return log(theta);
}

/* Beta negative binomial: a negative binomial of r successes whose probability is beta-distributed. */
real beta_neg_binomial_lpmf(int n, real r, real alpha, real beta) {
  require_nonnegative(n);
  require_positive_finite(r);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  return r < beta ? beta_neg_binomial_log_mass(n, r, alpha, beta) : beta_neg_binomial_log_mass(n, beta, alpha, r);
}

/* r and beta may be exchanged: s is the smaller one, so that no large numbers cancel. */
real beta_neg_binomial_log_mass(int n, real s, real alpha, real t) {
  real shapes = lbeta(n + s, alpha + t) - lbeta(s, alpha);
  return n == 0 ? shapes : shapes - lbeta(t, n) - log(n);
}

/* Yule-Simon. n >= 1, alpha > 0 and finite. */
real yule_simon_lpmf(int n, real alpha) {
  require_at_least(n, 1);
  require_positive_finite(alpha);
  return log(alpha) + lgamma(alpha + 1) + lgamma(n) - lgamma(n + alpha + 1);
}

/* Pr(Y > n) = n B(n, alpha + 1). */
real yule_simon_cdf(int n, real alpha) {
  require_positive_finite(alpha);
  if (n < 1) return 0;
  return -expm1(yule_simon_log_tail(n, alpha));
}

real yule_simon_lcdf(int n, real alpha) {
  require_positive_finite(alpha);
  if (n < 1) return negative_infinity();
  return log1m_exp(yule_simon_log_tail(n, alpha));
}

real yule_simon_lccdf(int n, real alpha) {
  require_positive_finite(alpha);
  if (n < 1) return 0;
  return yule_simon_log_tail(n, alpha);
}

real yule_simon_log_tail(int n, real alpha) { return -lgamma_step(n + 1.0, alpha) + lgamma(alpha + 1); }

/* Beta negative binomial, by summation: of the masses up to n, or above about the mean of the tail's, which is heavy. */
real beta_neg_binomial_cdf(int n, real r, real alpha, real beta) {
  return exp(beta_neg_binomial_lcdf(n | r, alpha, beta));
}

real beta_neg_binomial_lcdf(int n, real r, real alpha, real beta) {
  require_positive_finite(r);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return negative_infinity();
  return n * alpha > r * beta ? log1m_exp(beta_neg_binomial_log_tail_of_both(n + 1, r, alpha, beta))
         : beta_neg_binomial_log_sum(n, r, alpha, beta);
}

real beta_neg_binomial_lccdf(int n, real r, real alpha, real beta) {
  require_positive_finite(r);
  require_positive_finite(alpha);
  require_positive_finite(beta);
  if (n < 0) return 0;
  return n * alpha > r * beta ? beta_neg_binomial_log_tail_of_both(n + 1, r, alpha, beta)
         : log1m_exp(beta_neg_binomial_log_sum(n, r, alpha, beta));
}

real beta_neg_binomial_log_tail_of_both(int n, real r, real alpha, real beta) {
  real s = r < beta ? r : beta;
  real t = r < beta ? beta : r;
  return beta_neg_binomial_log_tail(n, s, alpha, t);
}

/* From n down to where masses no longer count. */
real beta_neg_binomial_log_sum(int n, real r, real alpha, real beta) {
  real s = r < beta ? r : beta;
  real t = r < beta ? beta : r;
  real total = 1;
  real term = 1;
  int k = n;
  while (k > 0 && term > 0) {
    if (n - k == 10000000) reject("beta_neg_binomial: too many outcomes would have to be added up");
    term *= k / (k - 1 + s) * ((k - 1 + s + alpha + t) / (k - 1 + t));
    total += term;
    k -= 1;
    if (term < 1e-20 * total && k * (alpha + 1) < (r - 1) * (beta - 1)) term = 0;
  }
  return beta_neg_binomial_log_mass(n, s, alpha, t) + log(total);
}

/* The first masses one by one; the rest is a hypergeometric series 3F2 at 1, which converges slowly, made by Thomae's
 * transformation one whose terms fall fast once n exceeds s (alpha + t), s being the smaller of the two shapes, and the
 * square root of alpha + t. Masses fall from k on if s t < k (1 + alpha) + s + alpha + t. With c = 2 (s t / (1 + alpha) + s
 * + alpha + t) and m > c all masses from that of m on are at most that times (m + c) / alpha: the difference of
 * neighbours of mass (m + c) / alpha is at least the mass. So where the masses are small enough there is no rest. */
real beta_neg_binomial_log_tail(int n, real s, real alpha, real t) {
  real total = 0;
  real term = 1;
  int k = n;
  real shapes = s + alpha + t;
  real c = 2 * (s * t / (1 + alpha) + shapes);
  real end = fmax(2 * s * (alpha + t), sqrt(41 * (alpha + t)) + 41);
  while (k < end) {
    if (k - n == 2000000) reject("beta_neg_binomial: the sum of the tail converges too slowly");
    if (term * (k + c + 1) * (1 + 2 / alpha) < 1e-18 * total && s * t < k * (1 + alpha) + shapes)
      return beta_neg_binomial_log_mass(n, s, alpha, t) + log(total);
    total += term;
    term *= (k + s) / (k + 1) * ((k + t) / (k + shapes));
    k += 1;
  }
  real rest = 1;
  real part = 1;
  real magnitude = 1; /* of a part and of its slopes, which go on where s is an integer and parts are 0 */
  int j = 0;
  while (magnitude * (j + 1) > 1e-18 * rest || j < 2) {
    if (j == 2000000) reject("beta_neg_binomial: the series of the tail converges too slowly");
    real falls = (alpha + t + j) / ((j + 1) * (alpha + k + t + j));
    part *= (j + 1 - s) * falls;
    magnitude *= fmax(abs(j + 1 - s), 1) * falls;
    j += 1;
    rest += part * alpha / (alpha + j);
  }
  return beta_neg_binomial_log_mass(n, s, alpha, t)
         + log(total + term * rest * beta_neg_binomial_tail_factor(k, s, alpha, t));
}

/* Gamma(k + 1) Gamma(k + s + alpha + t) / (Gamma(k + s) Gamma(alpha + k + t) alpha) */
real beta_neg_binomial_tail_factor(int k, real s, real alpha, real t) {
  return exp(lgamma_step(alpha + k + t, s) - lgamma_step(k, s) + log(k) - log(alpha));
}
