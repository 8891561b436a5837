/* Regularised incomplete gamma and beta functions: series and continued fractions after factors that are computed
 * without cancellation (Didonato and Morris, 1986 and 1992; Temme, 1979, for the gamma function of large shapes).
 */
#include <float.h>
#include <math.h>

#include "special.h"

static const double two_pi = 6.28318530717958647692;
enum { MOST_TERMS = 1000000 };

/* log(ratio) - (ratio - 1), with the difference given as well, as it may be known more accurately. */
static double log_minus_difference(double ratio, double difference) {
  return fabs(difference) > 0.3 ? log(ratio) - difference : special_log1pmx(difference);
}

/* log(x^a exp(-x) / Gamma(a + 1)) */
static double log_gamma_factor(double a, double x) {
  if (a < 10) return a * log(x) - x - special_lgamma(a + 1);
  double exponent = a * log_minus_difference(x / a, (x - a) / a);
  return exponent - special_stirling_rest(a) - 0.5 * log(two_pi * a);
}

static double gamma_factor(double a, double x) { return exp(log_gamma_factor(a, x)); }

/* 1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ..., which times x^a exp(-x) / Gamma(a + 1) is P */
static double gamma_p_sum(double a, double x) {
  double term = 1, sum = 1;
  for (int i = 1; i < MOST_TERMS; ++i) {
    term *= x / (a + i);
    sum += term;
    if (term <= sum * 0.25 * DBL_EPSILON) break;
  }
  return sum;
}

static double gamma_p_series(double a, double x) { return gamma_factor(a, x) * gamma_p_sum(a, x); }

/* Q's continued fraction, which times x^a exp(-x) / Gamma(a) is Q; Lentz's method. */
static double gamma_q_quotient(double a, double x) {
  const double tiny = 1e-300;
  double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
  for (int i = 1; i < MOST_TERMS; ++i) {
    double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    if (fabs(d) < tiny) d = tiny;
    c = b + an / c;
    if (fabs(c) < tiny) c = tiny;
    d = 1 / d;
    double delta = d * c;
    h *= delta;
    if (fabs(delta - 1) <= DBL_EPSILON) break;
  }
  return h;
}

static double gamma_q_fraction(double a, double x) { return gamma_factor(a, x) * a * gamma_q_quotient(a, x); }

/* Q for a small x and shape, where P may be close to 1: 1 - x^a / Gamma(1 + a) * (1 - a x / (a + 1) + ...). */
static double gamma_q_small(double a, double x) {
  double b = 1 + a;
  double log_gamma = special_lgamma(b) + ulam_digamma(b) * (a - (b - 1)); /* at 1 + a, not rounded */
  double term = a, sum = 0;
  for (int n = 1; n < 200; ++n) {
    term *= -x / n;
    double next = term / (a + n);
    sum += next;
    if (fabs(next) <= fabs(sum) * 0.25 * DBL_EPSILON) break;
  }
  double logarithm = a * log(x) - log_gamma;
  return -expm1(logarithm) - exp(logarithm) * sum;
}

/* Temme's uniform expansion for a large shape: coefficients of the part beside the error function, and by 1 / a. */
static const double c0[] = {-0.3333333333333333,    0.08333333333333333,    -0.014814814814814815,
                            0.0011574074074074073,  0.0003527336860670194,  -0.0001787551440329218,
                            3.919263178522438e-05,  -2.185448510679976e-06};
static const double c1[] = {-0.001851851851851852,  -0.003472222222222222,  0.0026455026455026454,
                            -0.0009902263374485596, 0.00020576131687242798, -4.0187757201646026e-07};

/* `upper`: Q, else P. */
static double gamma_uniform(double a, double x, int upper) {
  double mu = (x - a) / a, half_square = -special_log1pmx(mu);
  double eta = copysign(sqrt(2 * half_square), mu), first = 0, second = 0;
  for (int k = 7; k >= 0; --k) first = first * eta + c0[k];
  for (int k = 5; k >= 0; --k) second = second * eta + c1[k];
  double rest = exp(-a * half_square) / sqrt(two_pi * a) * (first + second / a);
  double z = eta * sqrt(0.5 * a);
  return upper ? 0.5 * erfc(z) + rest : 0.5 * erfc(-z) - rest;
}

/* The slope of P by a, of that expansion. */
double special_gamma_uniform_da(double a, double x) {
  double mu = (x - a) / a, half_square = -special_log1pmx(mu);
  double eta = copysign(sqrt(2 * half_square), mu), ratio = eta == 0 ? 1 : mu / eta;
  double first = 0, second = 0, first_slope = 0, second_slope = 0;
  for (int k = 7; k >= 0; --k) first_slope = first_slope * eta + first, first = first * eta + c0[k];
  for (int k = 5; k >= 0; --k) second_slope = second_slope * eta + second, second = second * eta + c1[k];
  double rest = first + second / a, moved = -(first_slope + second_slope / a) * ratio / a; /* eta falls by ratio / a */
  double slope = 0.5 * eta - ratio - (mu - half_square - 0.5 / a) * rest - moved + second / a / a;
  return exp(-a * half_square) / sqrt(two_pi * a) * slope;
}

static int is_uniform(double a, double x) { return a >= 1e6 && fabs(x - a) < 0.05 * a; }

/* Whether the tail of a large shape has left the range of the uniform expansion. */
static int is_uniform_tail(double a, double x) {
  return is_uniform(a, x) && -special_log1pmx((x - a) / a) * a > 50;
}

/* Where series and fractions would have too many terms: about the square root of a. */
int special_is_uniform(double a, double x) { return a >= 1e8 && is_uniform(a, x) && !is_uniform_tail(a, x); }

double ulam_gamma_p(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (x == 0) return 0;
  if (isinf(x)) return 1;
  if (is_uniform(a, x)) return gamma_uniform(a, x, 0);
  if (x < a + 1) return x < 1.1 && a < 0.5 && x > 0.3 ? 1 - gamma_q_small(a, x) : gamma_p_series(a, x);
  return 1 - gamma_q_fraction(a, x);
}

double ulam_gamma_q(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (x == 0) return 1;
  if (isinf(x)) return 0;
  if (is_uniform(a, x)) return gamma_uniform(a, x, 1);
  if (x < 1.1 && a < 1) return gamma_q_small(a, x);
  if (x < a + 1) return 1 - gamma_p_series(a, x);
  return gamma_q_fraction(a, x);
}

/* log(x^a y^b / B(a, b)), with y = 1 - x */
static double log_beta_factor(double a, double b, double x, double y) {
  if (a < 10 || b < 10) {
    double log_x = x < 0.5 ? log(x) : log1p(-y), log_y = x < 0.5 ? log1p(-x) : log(y);
    return a * log_x + b * log_y - ulam_lbeta(a, b);
  }
  /* Both large: relative to the peak at a / (a + b), the linear terms cancel exactly. */
  double n = a + b, larger = a > b ? a : b, n_rest = (a > b ? b : a) - (n - larger);
  /* n times the distance from it, from the smaller of x and y, which is not rounded */
  double from_peak = x < 0.5 ? fma(x, n, -a) + x * n_rest : -(fma(y, n, -b) + y * n_rest);
  double exponent = a * log_minus_difference(x * n / a, from_peak / a) +
                    b * log_minus_difference(y * n / b, -from_peak / b);
  double rest = special_stirling_rest(n) - special_stirling_rest(a) - special_stirling_rest(b);
  return 0.5 * log(a / two_pi * (b / n)) + exponent + rest;
}

static double beta_factor(double a, double b, double x, double y) { return exp(log_beta_factor(a, b, x, y)); }

/* x^a y^b / B(a, b) over I_x(a, b), for x below about a / (a + b): the continued fraction of Didonato and Morris, Lentz's
 * method. Nothing cancels where x is close to 1. */
static double beta_quotient(double a, double b, double x, double y) {
  const double tiny = 1e-300;
  double below = a * y - b * x + 1; /* 1 and more, as x is below the mean */
  double h = a * below / (a + 1), c, d = 0;
  if (isinf(h)) h = below;
  c = h;
  if (fabs(h) < tiny) c = h = tiny;
  for (int m = 1; m < MOST_TERMS; ++m) {
    double odd = a + 2 * m - 1, share = m * (b - m) * x / odd;
    double numerator = (a + m - 1) / odd * (a + b + m - 1) * share * x;
    double term = m + share + (a + m) / (odd + 2) * (below + m * (1 + y));
    d = term + numerator * d;
    if (fabs(d) < tiny) d = tiny;
    c = term + numerator / c;
    if (fabs(c) < tiny) c = tiny;
    d = 1 / d;
    double delta = d * c;
    h *= delta;
    if (fabs(delta - 1) <= DBL_EPSILON) break;
  }
  return h;
}

static double beta_fraction(double a, double b, double x, double y) {
  return beta_factor(a, b, x, y) / beta_quotient(a, b, x, y);
}

double ulam_inc_beta(double a, double b, double x) { return special_inc_beta(a, b, x, 1 - x); }

double special_inc_beta(double a, double b, double x, double y) {
  if (isnan(a) || isnan(b) || isnan(x) || a < 0 || b < 0 || x < 0 || x > 1) return NAN;
  if (a == 0 && b == 0) return NAN;
  if (x == 0 || b == 0) return 0;
  if (y == 0 || a == 0) return 1;
  if (x * (b + 1) <= (a + 1) * y) return beta_fraction(a, b, x, y);
  double upper = beta_fraction(b, a, y, x);
  /* Else the fraction, slower, where nothing cancels; close to 1 its terms fall too slowly to tell when to stop. */
  return upper < 0.75 || y < 1e-3 ? 1 - upper : beta_fraction(a, b, x, y);
}

/* Logs, and their slopes by x: nothing underflows in the tails. Near 1 through the complement. */

double ulam_log_gamma_p(double a, double x) {
  double q = ulam_gamma_q(a, x);
  if (isnan(q) || q < 0.5) return log1p(-q);
  if (x == 0) return -INFINITY;
  if (is_uniform(a, x) && !is_uniform_tail(a, x)) return log(gamma_uniform(a, x, 0));
  return x < a + 1 ? log_gamma_factor(a, x) + log(gamma_p_sum(a, x)) : log1p(-q);
}

double ulam_log_gamma_q(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (isinf(x)) return -INFINITY;
  if (x < 1.1 && a < 1 && x > 0) {
    double q = gamma_q_small(a, x);
    return q < 0.5 ? log(q) : log1p(-gamma_p_series(a, x));
  }
  int is_above = x > a || (x == a && a + 1 == a);
  if (is_uniform(a, x) && !is_uniform_tail(a, x) && is_above) return log(gamma_uniform(a, x, 1));
  if (x < a + 1) return log1p(-ulam_gamma_p(a, x));
  return log_gamma_factor(a, x) + log(a * gamma_q_quotient(a, x));
}

double ulam_log_gamma_p_dx(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (x == 0) return INFINITY;
  if (isinf(x)) return 0;
  if (x < a + 1 && !special_is_uniform(a, x)) return a / (x * gamma_p_sum(a, x));
  double factor = gamma_factor(a, x);
  return factor == 0 ? 0 : factor * (a / x) / ulam_gamma_p(a, x);
}

double ulam_log_gamma_q_dx(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (x == 0) return a < 1 ? -INFINITY : a == 1 ? -1 : 0;
  if (isinf(x)) return -1;
  if (special_is_uniform(a, x)) return -gamma_factor(a, x) * (a / x) / ulam_gamma_q(a, x);
  if (x < 1e-290) return -exp((a - 1) * log(x) - special_lgamma(a)); /* a / x may be infinite */
  if (x < a + 1 || (x < 1.1 && a < 1)) {
    double factor = gamma_factor(a, x);
    return factor == 0 ? 0 : -factor * (a / x) / ulam_gamma_q(a, x);
  }
  return -1 / (x * gamma_q_quotient(a, x));
}

/* log(I_x(a, b)) for a small a and x, where it may be near 0: x^a / (a B(a, b)) (1 + a sum of (1 - b)_n x^n / (n! (a + n))) */
static double log_beta_series(double a, double b, double x) {
  double term = 1, sum = 0;
  for (int n = 1; n < MOST_TERMS; ++n) {
    term *= (n - b) / n * x;
    sum += term / (a + n);
    if (fabs(term) <= DBL_EPSILON * 0.25 * fabs(sum) * (1 - x)) break;
  }
  double above = 1 + a;
  double log_gamma = special_lgamma(above) + ulam_digamma(above) * (a - (above - 1)); /* at 1 + a, not rounded */
  return a * log(x) - (log_gamma - ulam_lgamma_step(b, a)) + log1p(a * sum);
}

/* Whether I_x(a, b) is 1 less something proportional to a small b, which the series of the other tail tells: I_y(b, a) is
 * above 0.75 there. */
int special_is_nearly_one(double a, double b, double x, double y) {
  if (!(b < 1 && a * y <= 0.7 && y <= 0.7 && (y < 1e-3 || b < 1e-6) && x > 0 && y > 0 && b > 0)) return 0;
  return log_beta_series(b, a, y) > -0.28;
}

double ulam_log_inc_beta(double a, double b, double x, double y) {
  if (isnan(a) || isnan(b) || isnan(x) || isnan(y) || a < 0 || b < 0 || x < 0 || y < 0) return NAN;
  if (a == 0 && b == 0) return NAN;
  if (x == 0 || b == 0) return -INFINITY;
  if (y == 0 || a == 0) return 0;
  if (special_is_nearly_one(a, b, x, y)) return log(-expm1(log_beta_series(b, a, y)));
  if (a < 1 && b * x <= 0.7 && x <= 0.7) return log_beta_series(a, b, x);
  int below = x * (b + 1) <= (a + 1) * y;
  if (below && (a >= 1 || x < 1e-4)) return log_beta_factor(a, b, x, y) - log(beta_quotient(a, b, x, y));
  double upper = beta_fraction(b, a, y, x);
  return below || upper < 0.75 || y < 1e-3 ? log1p(-upper)
                                           : log_beta_factor(a, b, x, y) - log(beta_quotient(a, b, x, y));
}

double ulam_log_inc_beta_dx(double a, double b, double x, double y) {
  if (isnan(a) || isnan(b) || isnan(x) || isnan(y) || a <= 0 || b <= 0 || x < 0 || y < 0) return NAN;
  if (x == 0) return INFINITY;
  if (y == 0) return b < 1 ? INFINITY : b == 1 ? a : 0;
  if (x * (b + 1) <= (a + 1) * y) return beta_quotient(a, b, x, y) / x / y;
  return exp(log_beta_factor(a, b, x, y) - ulam_log_inc_beta(a, b, x, y)) / x / y;
}

/* The x at which I_x(a, b) is p, by Newton's method on log(I) against the log odds of x, kept within a bracket; of the two
 * tails the smaller one. */
double ulam_inv_inc_beta(double a, double b, double p) {
  if (!(a > 0 && b > 0 && p >= 0 && p <= 1) || isinf(a) || isinf(b)) return NAN;
  if (p == 0 || p == 1) return p;
  int upper = p > 0.5;
  double log_p = upper ? log1p(-p) : log(p), low = -745, high = 745;
  if (upper) {
    double swapped = a;
    a = b;
    b = swapped;
  }
  double guess = (log_p + log(a) + ulam_lbeta(a, b)) / a, odds = fmin(guess, log(a / b));
  if (guess < low) return upper ? 1 : exp(guess);
  for (int i = 0; i < 200; ++i) {
    double x = 1 / (1 + exp(-odds)), y = 1 / (1 + exp(odds));
    double gap = ulam_log_inc_beta(a, b, x, y) - log_p, slope = ulam_log_inc_beta_dx(a, b, x, y) * x * y;
    if (gap > 0)
      high = odds;
    else
      low = odds;
    double next = odds - gap / slope;
    if (!(next > low && next < high)) next = 0.5 * (low + high);
    double step = fabs(next - odds);
    odds = next;
    if (step <= 2e-16 * fabs(odds) + 1e-300) break;
  }
  return 1 / (1 + exp(upper ? odds : -odds));
}
