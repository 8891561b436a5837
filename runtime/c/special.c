/* Gamma and beta functions, the normal distribution function and its inverse, Lambert's W. */
#include <math.h>

#include "special.h"

#if defined(__APPLE__)
double lgamma_r(double x, int *sign); /* there, but not declared for this version of C */
#endif

static const double pi = 3.14159265358979323846;
static const double half_log_two_pi = 0.91893853320467274178;

double special_lgamma(double x) {
  int sign;
  return lgamma_r(x, &sign);
}

double special_stirling_rest(double x) {
  /* B_2k / (2k (2k - 1) x^(2k - 1)); the first term left out is below 1e-17 relative for x >= 10 */
  double r = 1 / (x * x);
  double sum = 1.0 / 12 +
               r * (-1.0 / 360 +
                    r * (1.0 / 1260 +
                         r * (-1.0 / 1680 +
                              r * (1.0 / 1188 + r * (-691.0 / 360360 + r * (1.0 / 156 - r * 3617.0 / 122400))))));
  return sum / x;
}

double special_digamma_rest(double x) {
  double r = 1 / (x * x);
  double series =
      r * (1.0 / 12 +
           r * (-1.0 / 120 +
                r * (1.0 / 252 +
                     r * (-1.0 / 240 + r * (1.0 / 132 + r * (-691.0 / 32760 + r * (1.0 / 12 - r * 3617.0 / 8160)))))));
  return -0.5 / x - series;
}

double special_log1pmx(double x) {
  if (fabs(x) > 0.3) return log1p(x) - x;
  /* With t = x / (2 + x): log(1 + x) = 2 atanh(t) = 2 t + 2 t^3 (1/3 + t^2/5 + ...), and 2 t - x = -t x. */
  double t = x / (2 + x), t2 = t * t, sum = 0;
  for (int k = 19; k >= 3; k -= 2) sum = sum * t2 + 1.0 / k;
  return -t * x + 2 * t * t2 * sum;
}

/* Taylor coefficients of digamma at its positive zero, from the linear one on. */
static const double digamma_at_zero[] = {
    0.9676722454476212,     -0.4427631689835921,    0.258499760955651,      -0.16394270544240652,
    0.10782405069126237,    -0.07219956125645471,   0.04880428816414311,    -0.03316112647484736,
    0.022597648232218104,   -0.01542476590494896,   0.010538791616612175,   -0.007204534386356869,
    0.004926781395729853,   -0.003369801655439328,  0.002305126326734928,   -0.0015769367714301972,
    0.0010788252019162967,  -0.0007380709389960052, 0.000504953265834602,   -0.0003454680251063077,
    0.00023635601564027053, -0.00016170622091974803, 0.0001106337276874741, -7.569179582195066e-05,
};
static const double digamma_zero = 1.4616321449683622, digamma_zero_rest = 9.549995429965697e-17;

double ulam_digamma(double x) {
  if (!(x > 0)) {
    if (isnan(x) || x == floor(x)) return NAN; /* also a pole, or -inf */
    return ulam_digamma(1 - x) - pi / tan(pi * (x - round(x)));
  }
  double h = (x - digamma_zero) - digamma_zero_rest;
  if (fabs(h) < 0.3) { /* full relative accuracy where it changes sign */
    double sum = 0;
    for (int k = (int)(sizeof digamma_at_zero / sizeof *digamma_at_zero) - 1; k >= 0; --k)
      sum = (sum + digamma_at_zero[k]) * h;
    return sum;
  }
  /* digamma(x) = digamma(x + n) - sum of 1 / (x + i): the sum as one quotient */
  double numerator = 0, denominator = 1;
  for (; x < 10; x += 1) {
    numerator = numerator * x + denominator;
    denominator *= x;
  }
  return log(x) + special_digamma_rest(x) - numerator / denominator;
}

double ulam_trigamma(double x) {
  if (!(x > 0)) {
    if (isnan(x)) return NAN;
    if (x == floor(x)) return INFINITY;
    double s = sin(pi * (x - round(x)));
    return pi * pi / (s * s) - ulam_trigamma(1 - x);
  }
  double sum = 0;
  for (; x < 10; x += 1) sum += 1 / (x * x);
  double r = 1 / (x * x);
  double series =
      r * (1.0 / 6 +
           r * (-1.0 / 30 +
                r * (1.0 / 42 +
                     r * (-1.0 / 30 + r * (5.0 / 66 + r * (-691.0 / 2730 + r * (7.0 / 6 - r * 3617.0 / 510)))))));
  return sum + 1 / x + 0.5 * r + series / x;
}

double ulam_lbeta(double a, double b) {
  if (isnan(a) || isnan(b)) return NAN;
  double x = a < b ? a : b, y = a < b ? b : a;
  if (x < 0) return NAN;
  if (x == 0) return INFINITY;
  if (isinf(y)) return -INFINITY;
  if (y < 10) return special_lgamma(x) + special_lgamma(y) - special_lgamma(x + y);
  /* No differences of large logarithms: Stirling's formula with its rest, for the arguments that are large. */
  double rest = special_stirling_rest(y) - special_stirling_rest(x + y);
  double common = (y - 0.5) * log1p(-x / (x + y));
  if (x < 10) return special_lgamma(x) + rest + common + x * (1 - log(x + y));
  return half_log_two_pi - 0.5 * log(x + y) + special_stirling_rest(x) + rest + common +
         (x - 0.5) * log(x / (x + y));
}

double ulam_lchoose(double n, double k) {
  if (isnan(n) || isnan(k)) return NAN;
  if (n > -1 && k > n / 2 + 1e-8) k = n - k;
  if (k == 0) return 0;
  if (isinf(n)) return NAN;
  if (k == -1) return -INFINITY;
  if (fabs(k) < 0.5) { /* nearly none are chosen */
    double b = 1 + k;
    return ulam_lgamma_step(n - k + 1, k) - special_lgamma(b) - ulam_digamma(b) * (k - (b - 1)); /* at 1 + k, not rounded */
  }
  if (n + 1 < 10) return special_lgamma(n + 1) - special_lgamma(k + 1) - special_lgamma(n - k + 1);
  return -ulam_lbeta(n - k + 1, k + 1) - log1p(n);
}

double ulam_Phi(double x) {
  const double inv_sqrt_two = 0.7071067811865476, inv_sqrt_two_rest = -4.833646656726457e-17;
  double u = -x * inv_sqrt_two, value = 0.5 * erfc(u);
  if (!(u > 1 && u < 40)) return value;
  /* In the lower tail the rounding of u is felt: times the derivative, -exp(-u^2) / sqrt(pi). */
  double error = fma(-x, inv_sqrt_two, -u) - x * inv_sqrt_two_rest;
  return value - 0.56418958354775628695 * exp(-u * u) * error;
}

double ulam_inv_Phi(double p) {
  if (!(p >= 0 && p <= 1)) return NAN;
  if (p == 0) return -INFINITY;
  if (p == 1) return INFINITY;
  double q = p - 0.5; /* exact for p in [0.25, 1] */
  if (fabs(q) <= 0.25) {
    double x = 2.5066282746310002 * q;
    for (int i = 0; i < 4; ++i) { /* Halley's method on Phi(x) - 1/2 = erf(x / sqrt(2)) / 2 */
      double u = (0.5 * erf(x * 0.70710678118654752440) - q) * 2.50662827463100050242 * exp(0.5 * x * x);
      x -= u / (1 + 0.5 * x * u);
    }
    return x;
  }
  double tail = q < 0 ? p : 1 - p; /* 1 - p is exact here */
  double t = sqrt(-2 * log(tail));
  /* Abramowitz and Stegun 26.2.23 to start from, then Halley's method; x is the negative quantile. */
  double x = (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))) - t;
  for (int i = 0; i < 3; ++i) {
    double u = (ulam_Phi(x) - tail) * 2.50662827463100050242 * exp(0.5 * x * x);
    double next = x - u / (1 + 0.5 * x * u);
    if (!isfinite(next)) break; /* a tail below the normal numbers: the start is all we have */
    x = next;
  }
  return q < 0 ? x : -x;
}

double ulam_inv_erfc(double x) {
  if (!(x >= 0 && x <= 2)) return NAN;
  return -ulam_inv_Phi(0.5 * x) * 0.70710678118654752440;
}

/* Halley's method on w exp(w) = x. */
static double refine_lambert(double w, double x) {
  for (int i = 0; i < 40; ++i) {
    double e = exp(w), f = w * e - x, w1 = w + 1;
    if (w1 == 0) break;
    double step = f / (e * w1 - 0.5 * (w + 2) * f / w1);
    w -= step;
    if (fabs(step) <= 4e-16 * fabs(w)) break;
  }
  return w;
}

/* Near the branch point, in powers of p = sqrt(2 (e x + 1)); the other branch has -p. */
static double lambert_near_branch(double p) {
  return -1 + p * (1 + p * (-1.0 / 3 + p * (11.0 / 72 + p * (-43.0 / 540 + p * (769.0 / 17280 - p * 221.0 / 8505)))));
}

static double branch_distance(double x) {
  const double e = 2.7182818284590452, e_rest = 1.4456468917292502e-16; /* e x + 1 in twice the precision */
  double square = 2 * (fma(e, x, 1) + e_rest * x);
  return square > 0 ? sqrt(square) : 0;
}

double ulam_lambert_w0(double x) {
  if (isnan(x) || x < -0.36787944117144233402) return NAN;
  if (x == 0 || isinf(x)) return x;
  double p = x < 0 ? branch_distance(x) : 0;
  if (x < 0 && p < 0.02) return lambert_near_branch(p);
  if (x < 0.5) return refine_lambert(x < -0.1 ? lambert_near_branch(p) : x * (1 - x), x);
  double l = log1p(x);
  double w = l * (1 - log1p(l) / (2 + l));
  /* On w + log(w) = log(x), which does not overflow. */
  double log_x = log(x);
  for (int i = 0; i < 20; ++i) {
    double step = (w + log(w) - log_x) * w / (1 + w);
    w -= step;
    if (fabs(step) <= 2e-16 * w) break;
  }
  return w;
}

double ulam_lambert_wm1(double x) {
  if (!(x >= -0.36787944117144233402 && x <= 0)) return NAN;
  if (x == 0) return -INFINITY;
  double p = branch_distance(x);
  if (p < 0.02) return lambert_near_branch(-p);
  /* With u = -w > 1: u - log(u) = -log(-x). */
  double l = -log(-x), u = x < -0.25 ? -lambert_near_branch(-p) : l + log(l);
  for (int i = 0; i < 50; ++i) {
    double step = (u - log(u) - l) * u / (u - 1);
    u -= step;
    if (fabs(step) <= 2e-16 * u) break;
  }
  return -u;
}

/* log of the standard normal's distribution function. Above 1 through the other tail, which is small there; below -20
 * by the asymptotic series of Mills' ratio, since erfc underflows. */
double ulam_log_Phi(double x) {
  static const double sqrt_half = 0.70710678118654752440, log_sqrt_two_pi = 0.91893853320467274178;
  if (x > 1) return log1p(-0.5 * erfc(x * sqrt_half));
  if (!(x < -20)) return log(0.5 * erfc(-x * sqrt_half));
  double w = 1 / (x * x), series = 0;
  for (int k = 15; k >= 1; k -= 2) series = -w * k * (1 + series);
  return -0.5 * x * x - log(-x) - log_sqrt_two_pi + log1p(series);
}

double ulam_ldexp(double x, double n) { return ldexp(x, (int)fmax(-1e4, fmin(n, 1e4))); }
