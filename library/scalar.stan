/* Scalar functions that are compositions of primitives (derivatives.txt has the primitives).
 * Stan Functions Reference, "Real-valued basic functions". Applied to containers element by element. */

int is_inf(real x) { return x == positive_infinity() || x == negative_infinity(); }

int is_nan(real x) { return x != x; }

int int_step(real x) { return x > 0; }

int int_step(int x) { return x > 0; }

real logit(real u) { return log(u / (1 - u)); }

/* 1 - exp(-exp(x)), accurate where the result is small. */
real inv_cloglog(real x) { return -expm1(-exp(x)); }

real cloglog(real p) { return log(-log1m(p)); }

/* log of theta * exp(a) + (1 - theta) * exp(b). */
real log_mix(real theta, real a, real b) {
  require_probability(theta);
  return log_sum_exp(log(theta) + a, log1m(theta) + b);
}

real log_inv_logit_diff(real x, real y) { return x - log1p_exp(x) + log1m_exp(y - x) - log1p_exp(y); }

/* A logistic approximation of Phi, within 0.00014. */
real Phi_approx(real x) { return inv_logit(0.07056 * x * x * x + 1.5976 * x); }

real std_normal_qf(real p) { return inv_Phi(p); }

real binary_log_loss(int y, real y_hat) { return y == 1 ? -log(y_hat) : -log1m(y_hat); }

real falling_factorial(real x, int n) { return tgamma(x + 1) / tgamma(x - n + 1); }

real rising_factorial(real x, int n) { return tgamma(x + n) / tgamma(x); }

real log_falling_factorial(real x, real n) { return lgamma(x + 1) - lgamma(x - n + 1); }

real log_rising_factorial(real x, real n) { return lgamma(x + n) - lgamma(x); }

real beta(real a, real b) { return exp(lbeta(a, b)); }

/* log of the multivariate gamma function. */
real lmgamma(int n, real x) {
  real result = n * (n - 1) * 0.25 * log_pi();
  for (j in 1:n) result += lgamma(x + (1 - j) * 0.5);
  return result;
}
