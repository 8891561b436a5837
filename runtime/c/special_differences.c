/* Special functions whose parts nearly cancel, in forms that lose no digits: differences of lgamma and digamma at two
 * points, and the normal distribution's hazard in its tail. */
#include <math.h>

#include "special.h"

/* Bernoulli's numbers over 2k (2k - 1), and over 2k: the series of lgamma and digamma. */
static const double stirling[] = {1.0 / 12,   -1.0 / 360,        1.0 / 1260, -1.0 / 1680,
                                  1.0 / 1188, -691.0 / 360360.0, 1.0 / 156,  -3617.0 / 122400};
static const double digamma_series[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                        1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
enum { TERMS = 8 };

/* sum of c_k (p^n - q^n) / (p - q), n = first + 2 k: with powers of q and the quotients built up together. */
static double difference_quotient(const double *c, int first, double p, double q) {
  double quotient = 1, power = q, sum = 0; /* for n = 1: 1 and q^1 */
  for (int n = 1; n < first; ++n) quotient = quotient * p + power, power *= q;
  for (int k = 0; k < TERMS; ++k) {
    sum += c[k] * quotient;
    for (int i = 0; i < 2; ++i) quotient = quotient * p + power, power *= q;
  }
  return sum;
}

/* digamma(x + d) - digamma(x) */
double ulam_digamma_step(double x, double d) {
  if (d < 0 && x + d > 0 && isfinite(x)) return -ulam_digamma_step(x + d, -d);
  if (!(x > 0 && d >= 0 && isfinite(x) && isfinite(d))) return ulam_digamma(x + d) - ulam_digamma(x);
  double direct = 0;
  if (x < 10) {
    direct = d / (x + d) / x;
    x += 1;
    /* The sum of d / (x (x + d)) as one fraction; both divided by 1 + d, so that no product runs over. */
    double numerator = 0, denominator = 1, share = 1 / (1 + d);
    for (; x < 10; x += 1) {
      double q = x * ((x + d) * share);
      numerator = numerator * q + denominator;
      denominator *= q;
    }
    direct += d * share * (numerator / denominator);
  }
  double y = x + d, p = 1 / x, q = 1 / y, gap = d * p * q; /* p - q */
  return direct + log1p(d * p) + gap * (0.5 + difference_quotient(digamma_series, 2, p, q));
}

/* lgamma(x + d) - lgamma(x) */
double ulam_lgamma_step(double x, double d) {
  if (d < 0 && x + d > 0 && isfinite(x)) return -ulam_lgamma_step(x + d, -d);
  if (!(x > 0 && d >= 0 && isfinite(x) && isfinite(d))) return special_lgamma(x + d) - special_lgamma(x);
  double logarithms = 0, start = x;
  if (x < 10) {
    double below = d / x, product = below; /* product of 1 + d / (x + i), less 1 */
    for (x += 1; x < 10; x += 1) {
      below = d / x;
      product += below + product * below;
    }
    if (isinf(product)) return special_lgamma(start + d) - special_lgamma(start); /* nothing cancels */
    logarithms = log1p(product);
  }
  double y = x + d, p = 1 / x, q = 1 / y, t = d * p;
  double main_part = d * log(y) + x * special_log1pmx(t) - 0.5 * log1p(t);
  return main_part - d * p * q * difference_quotient(stirling, 1, p, q) - logarithms;
}

/* x + phi(x) / Phi(x). Down the tail by the continued fraction of Mills' ratio, of which x is the first part. */
double ulam_normal_hazard_excess(double x) {
  if (!(x < -3)) return x + 0.39894228040143267794 * exp(-0.5 * x * x) / ulam_Phi(x);
  double t = -x, rest = t;
  if (t > 1e8) return 1 / t;
  for (int n = 25 + (int)(400 / (t * t)); n >= 2; --n) rest = t + n / rest;
  return 1 / rest;
}

/* phi(x) / Phi(x), where log(Phi(x)) is known. */
double ulam_normal_hazard(double x, double log_Phi) {
  return x < -10 ? ulam_normal_hazard_excess(x) - x : 0.39894228040143267794 * exp(-0.5 * x * x - log_Phi);
}

/* log(Phi(x)) + x^2 / 2 */
double ulam_log_scaled_Phi(double x) {
  if (!(x < -10)) return ulam_log_Phi(x) + 0.5 * x * x;
  return -0.91893853320467274178 - log(ulam_normal_hazard_excess(x) - x);
}
