/* Scalar functions that are compositions of primitives (derivatives.txt has the primitives).
 * Stan Functions Reference, "Real-valued basic functions". Applied to containers element by element. */

int is_inf(real x) { return x == positive_infinity() || x == negative_infinity(); }

int is_nan(real x) { return x != x; }

int int_step(real x) { return x > 0; }

int int_step(int x) { return x > 0; }

real logit(real u) { return log(u / (1 - u)); }

/* 1 - exp(-exp(x)), accurate where the result is small. Where it has long rounded to 1, exp(x) would run over. */
real inv_cloglog(real x) { return x > 40 ? 1 : -expm1(-exp(x)); }

real cloglog(real p) { return log(-log1m(p)); }

/* log of theta * exp(a) + (1 - theta) * exp(b); NaN if a or b is. */
real log_mix(real theta, real a, real b) {
  require_probability(theta);
  real top = a > b ? a : b;
  real gap = is_inf(top) && !is_nan(a) ? 0 : a > b ? b - a : a - b;
  real others = a > b ? 1 - theta : theta;
  return top + log((a > b ? theta : 1 - theta) + others * exp(gap));
}

real log_inv_logit_diff(real x, real y) { return log_inv_logit(x) + log1m_exp(y - x) - log1p_exp(y); }

/* A logistic approximation of Phi, within 0.00014. */
real Phi_approx(real x) { return inv_logit(0.07056 * x * x * x + 1.5976 * x); }

real std_normal_qf(real p) {
  require_probability(p);
  return inv_Phi(p);
}

/* Any y but 0 is an event. */
real binary_log_loss(int y, real y_hat) {
  if (y == 0 && y_hat > 1) require_at_most(y_hat, 1.0);
  return y != 0 ? -log(y_hat) : -log1m(y_hat);
}

/* The product of x, x - 1, ...: as it is while it has few factors; with more it has long run over, or is 0. */
int falling_factorial(int x, int n) {
  require_nonnegative(n);
  int result = 1;
  int i = 0;
  while (i < n && result != 0) {
    result *= x - i;
    i += 1;
  }
  return result;
}

real falling_factorial(real x, int n) {
  require_not_nan(x);
  require_nonnegative(n);
  if (n > 400) return tgamma(x + 1) / tgamma(x - n + 1);
  real result = 1;
  for (i in 1:n) result *= x - (i - 1);
  return result;
}

int rising_factorial(int x, int n) {
  require_nonnegative(n);
  int result = 1;
  int i = 0;
  while (i < n && result != 0) {
    result *= x + i;
    i += 1;
  }
  return result;
}

real rising_factorial(real x, int n) {
  require_not_nan(x);
  require_nonnegative(n);
  if (n > 400) return tgamma(x + n) / tgamma(x);
  real result = 1;
  for (i in 1:n) result *= x + (i - 1);
  return result;
}

real log_falling_factorial(real x, real n) {
  if (x <= 0) require_positive(x);
  if (is_inf(n)) return negative_infinity();
  return lgamma_step(x - n + 1, n);
}

real log_rising_factorial(real x, real n) {
  if (x <= 0) require_positive(x);
  return lgamma_step(x, n);
}

/* Outside of its domain what Stan has there: the logarithms of the absolute values. */
real beta(real a, real b) {
  return a > 0 && b > 0 && a + b < positive_infinity() ? exp(lbeta(a, b)) : exp(lgamma(a) + lgamma(b) - lgamma(a + b));
}

/* log of the multivariate gamma function: by its terms, or if they are many by their integral, where all arguments of
 * gamma are positive, and by the reflection formula where they are not. */
real lmgamma(int n, real x) {
  return n <= 1000 ? lmgamma_by_terms(n, x) : x > 0.5 * (n - 1.0) ? lmgamma_of_many(n, x) : lmgamma_reflected(n, x);
}

real lmgamma_of_positive(int n, real x) { return n > 1000 ? lmgamma_of_many(n, x) : lmgamma_by_terms(n, x); }

/* The last `below` arguments y of gamma are not positive: Gamma(y) Gamma(1 - y) = pi / sin(pi y). Their sines have, but
 * for signs, two values. */
real lmgamma_reflected(int n, real x) {
  int above = 0;
  if (x > 0) above = to_int(ceil(2 * value_of(x)));
  int below = n - above;
  real y = x - 0.5 * above;
  real last = 1 - y + 0.5 * (below - 1.0);
  real turn = y - floor(value_of(y));
  real sines = ((below + 1) %/% 2) * log(abs(sin(pi() * turn)));
  if (below > 1) sines += (below %/% 2) * log(abs(cos(pi() * turn)));
  real pis = 0.25 * (n * (n - 1.0) - above * (above - 1.0) + below * (below - 1.0)) + below;
  return pis * log_pi() - sines + lmgamma_of_positive(above, x) - lmgamma_of_positive(below, last);
}

real lmgamma_by_terms(int n, real x) {
  real result = 0.25 * log_pi() * n * (n - 1.0);
  for (j in 1:n) result += lgamma(x + (1 - j) * 0.5);
  return result;
}

/* The sum over lgamma by the formula of Euler and Maclaurin for midpoints, from 20 on, where Stirling's series has all
 * digits; its integral from a to b as one expression, which loses none where b is close to a. For x > (n - 1) / 2. */
real lmgamma_of_many(int n, real x) {
  real low = x - 0.5 * (n - 1.0);
  real result = 0.25 * log_pi() * n * (n - 1.0);
  int few = 0;
  for (j in 0:39) {
    if (low + 0.5 * j < 20) {
      result += lgamma(low + 0.5 * j);
      few = j + 1;
    }
  }
  real a = low + 0.5 * few - 0.25;
  real width = 0.5 * (n - few);
  real b = a + width;
  real log_ratio = log1p(width / a);
  real integral = 0.5 * (width * (a + b - 1) * log(a) + b * (b - 1) * log_ratio) - 0.75 * width * (a + b)
                  + width * (0.5 + log_sqrt_two_pi()) + log_ratio / 12 + (inv_square(b) - inv_square(a)) / 720
                  - (inv_square(square(b)) - inv_square(square(a))) / 5040;
  return result + 2 * integral - (digamma(b) - digamma(a)) / 48
         - 7.0 / 46080 * (inv_square(b) * (1 + inv(b)) - inv_square(a) * (1 + inv(a)));
}

/* The normal quantile of exp(log_p). Far down the tail by Newton's method on log_Phi. */
real std_normal_log_qf(real log_p) {
  require_at_most(log_p, 0.0);
  return log_p > -0.7 ? -inv_Phi(-expm1(log_p))
         : log_p > -300 || is_inf(log_p) ? inv_Phi(exp(log_p))
         : std_normal_log_qf_tail(log_p);
}

real std_normal_log_qf_tail(real log_p) {
  real x = -sqrt(-2 * log_p - log(-4 * pi() * log_p));
  for (i in 1:4) x -= (log_Phi(x) - log_p) * exp(log_Phi(x) + 0.5 * square(x) + log_sqrt_two_pi());
  return x;
}

/* How many ways there are to choose k of n: C(a, i) = C(a - 1, i - 1) a / i, without products beyond the result. Few steps
 * are taken: the result doubles with each. */
int choose(int n, int k) {
  require_nonnegative(n);
  require_nonnegative(k);
  int m = min(k, n - k);
  int ways = m < 0 ? 0 : 1;
  real choices = 1;
  int i = 0;
  while (i < m && choices < 2147483647.5) {
    i += 1;
    int a = n - m + i;
    choices *= a * 1.0 / i;
    ways = (ways %/% i) * a + (ways % i) * (a %/% i) + ((ways % i) * (a % i)) %/% i;
  }
  require_at_most(choices, 2147483647.5);
  return ways;
}

int modulus(int a, int b) { return a % b; }

int divide(int a, int b) { return a %/% b; }

int elt_divide(int a, int b) { return a %/% b; }

int logical_and(real a, real b) { return a != 0 && b != 0; }

int logical_or(real a, real b) { return a != 0 || b != 0; }

int logical_negation(real a) { return a == 0; }

int logical_eq(real a, real b) { return a == b; }

int logical_neq(real a, real b) { return a != b; }

int logical_lt(real a, real b) { return a < b; }

int logical_lte(real a, real b) { return a <= b; }

int logical_gt(real a, real b) { return a > b; }

int logical_gte(real a, real b) { return a >= b; }

/* The quantile of Student's t. */
real student_t_qf(real p, real nu, real mu, real sigma) {
  require_probability(p);
  require_positive_finite(nu);
  require_finite(mu);
  require_positive_finite(sigma);
  return mu + sigma * (p < 0.5 ? -student_t_upper_quantile(p, nu) : student_t_upper_quantile(1 - p, nu));
}

/* Of an upper tail q of at most a half, by the incomplete beta function of the share of t^2 in nu + t^2, or of the rest. In
 * the middle by the slope there, as a root has none. */
real student_t_upper_quantile(real q, real nu) {
  return q == 0.5 ? (0.5 - q) * exp(log_sqrt_pi() + 0.5 * log(nu) - log_gamma_half_step(0.5 * nu))
         : q > 0.25 ? student_t_of_share(inv_inc_beta(0.5, 0.5 * nu, 1 - 2 * q), nu)
         : student_t_of_rest(inv_inc_beta(0.5 * nu, 0.5, 2 * q), nu);
}

real student_t_of_share(real z, real nu) { return sqrt(nu * z / (1 - z)); }

real student_t_of_rest(real z, real nu) { return sqrt(nu * (1 - z) / z); }
