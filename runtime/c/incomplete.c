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

/* x^a exp(-x) / Gamma(a + 1) */
static double gamma_factor(double a, double x) {
  if (a < 10) {
    double logarithm = a * log(x) - x - special_lgamma(a + 1);
    return exp(logarithm);
  }
  double exponent = a * log_minus_difference(x / a, (x - a) / a);
  return exp(exponent - special_stirling_rest(a)) / sqrt(two_pi * a);
}

/* P by its power series: x^a exp(-x) / Gamma(a + 1) * (1 + x / (a + 1) + x^2 / ((a + 1) (a + 2)) + ...) */
static double gamma_p_series(double a, double x) {
  double term = 1, sum = 1;
  for (int i = 1; i < MOST_TERMS; ++i) {
    term *= x / (a + i);
    sum += term;
    if (term <= sum * 0.25 * DBL_EPSILON) break;
  }
  return gamma_factor(a, x) * sum;
}

/* Q by its continued fraction, Lentz's method. */
static double gamma_q_fraction(double a, double x) {
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
  return gamma_factor(a, x) * a * h;
}

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

/* Temme's uniform expansion for a large shape; `upper`: Q, else P. */
static double gamma_uniform(double a, double x, int upper) {
  static const double c0[] = {-0.3333333333333333,    0.08333333333333333,    -0.014814814814814815,
                              0.0011574074074074073,  0.0003527336860670194,  -0.0001787551440329218,
                              3.919263178522438e-05,  -2.185448510679976e-06};
  static const double c1[] = {-0.001851851851851852,  -0.003472222222222222,  0.0026455026455026454,
                              -0.0009902263374485596, 0.00020576131687242798, -4.0187757201646026e-07};
  double mu = (x - a) / a, half_square = -special_log1pmx(mu);
  double eta = copysign(sqrt(2 * half_square), mu), first = 0, second = 0;
  for (int k = 7; k >= 0; --k) first = first * eta + c0[k];
  for (int k = 5; k >= 0; --k) second = second * eta + c1[k];
  double rest = exp(-a * half_square) / sqrt(two_pi * a) * (first + second / a);
  double z = eta * sqrt(0.5 * a);
  return upper ? 0.5 * erfc(z) + rest : 0.5 * erfc(-z) - rest;
}

static int is_uniform(double a, double x) { return a >= 1e6 && fabs(x - a) < 0.05 * a; }

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

/* x^a y^b / B(a, b), with y = 1 - x */
static double beta_factor(double a, double b, double x, double y) {
  if (a < 10 || b < 10) {
    double log_x = x < 0.5 ? log(x) : log1p(-y), log_y = x < 0.5 ? log1p(-x) : log(y);
    return exp(a * log_x + b * log_y - ulam_lbeta(a, b));
  }
  /* Both large: relative to the peak at a / (a + b), the linear terms cancel exactly. */
  double n = a + b, larger = a > b ? a : b, n_rest = (a > b ? b : a) - (n - larger);
  /* n times the distance from it, from the smaller of x and y, which is not rounded */
  double from_peak = x < 0.5 ? fma(x, n, -a) + x * n_rest : -(fma(y, n, -b) + y * n_rest);
  double exponent = a * log_minus_difference(x * n / a, from_peak / a) +
                    b * log_minus_difference(y * n / b, -from_peak / b);
  double rest = special_stirling_rest(n) - special_stirling_rest(a) - special_stirling_rest(b);
  return sqrt(a / two_pi * (b / n)) * exp(exponent + rest);
}

/* I_x(a, b) for x below about a / (a + b), by the continued fraction of Didonato and Morris, Lentz's method: nothing
 * cancels where x is close to 1. */
static double beta_fraction(double a, double b, double x, double y) {
  const double tiny = 1e-300;
  double below = a * y - b * x + 1; /* 1 and more, as x is below the mean */
  double h = a * below / (a + 1), c = h, d = 0;
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
  return beta_factor(a, b, x, y) / h;
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
