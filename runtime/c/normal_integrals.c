/* Owen's T and the distribution function of the skew normal: integrals over a normal density, by the rule of Gauss and
 * Legendre, of integrands that are positive. */
#include <math.h>

#include "gauss_legendre.h"
#include "special.h"

static const double two_pi = 6.28318530717958647692, pi = 3.14159265358979323846;
static const double sqrt_half = 0.70710678118654752440;

enum { MOST_EXPONENT = 40 }; /* what is below exp(-40) of the largest part is left out */

static double upper_tail(double z) { return ulam_Phi(-z); }

static double owens_integrand(double x, const double *half_square) {
  return exp(-*half_square * x * x) / (1 + x * x);
}

/* exp(h^2 / 2) T(h, a), for h >= 0 and a in [0, 1] */
static double owens_t_scaled(double h, double a) {
  double half_square = 0.5 * h * h, high = a;
  if (half_square * a * a > MOST_EXPONENT) high = sqrt(2.0 * MOST_EXPONENT) / h;
  return gauss_legendre(owens_integrand, &half_square, 0, high) / two_pi;
}

double ulam_owens_t(double h, double a) {
  if (isnan(h) || isnan(a)) return NAN;
  h = fabs(h);
  if (a < 0) return -ulam_owens_t(h, -a);
  if (isinf(h) || a == 0) return 0;
  if (isinf(a)) return 0.5 * upper_tail(h);
  if (a <= 1) return exp(-0.5 * h * h) * owens_t_scaled(h, a);
  double far = upper_tail(h), farther = upper_tail(a * h), k = a * h;
  return 0.5 * (far + farther) - far * farther - (isinf(k) ? 0 : exp(-0.5 * k * k) * owens_t_scaled(k, 1 / a));
}

/* at x = sinh(asinh(a) + d), of exp(-h^2 (x^2 - a^2) / 2) / (1 + x^2), in terms of the distance d alone */
static double skew_tail_integrand(double d, const double *h_and_a) {
  double h = h_and_a[0], a = h_and_a[1], root = sqrt(1 + a * a), sine = sinh(d), cosine = cosh(d);
  double excess = sine * (2 * a * root * cosine + (1 + 2 * a * a) * sine);
  return exp(-0.5 * h * h * excess) / (root * cosine + a * sine);
}

/* log Pr(Z <= z) for z <= 0 and a shape a >= 0: what is beyond a of Owen's integral. Where nothing cancels, T itself. */
static double log_thin_tail(double z, double a) {
  double h = -z, k = a * h;
  if (k * h > 1e100) return -0.5 * h * h - 0.5 * k * k; /* nothing else has a digit */
  if (h * fmax(1, a) < 1) {
    if (a <= 1) return log(upper_tail(h) - 2 * exp(-0.5 * h * h) * owens_t_scaled(h, a));
    return log(2 * exp(-0.5 * k * k) * owens_t_scaled(k, 1 / a) - upper_tail(k) * erf(h * sqrt_half));
  }
  double parameters[] = {h, a}, excess = 2.0 * MOST_EXPONENT / (h * h), high = sqrt(a * a + excess);
  double width = asinh(excess / (high * sqrt(1 + a * a) + a * sqrt(1 + high * high)));
  double integral = gauss_legendre(skew_tail_integrand, parameters, 0, width);
  return log(integral / pi) - 0.5 * h * h - 0.5 * k * k;
}

/* The same for any shape: of opposite shapes the tails sum up to twice the normal's. */
static double log_lower_tail(double z, double a) {
  if (z < -1e154) return -INFINITY; /* its square is */
  if (a >= 0) return log_thin_tail(z, a);
  double normal = ulam_log_Phi(z);
  return normal + log(2 - exp(log_thin_tail(z, -a) - normal));
}

/* log of the distribution function of the skew normal with location 0, scale 1 and shape a */
double ulam_log_skew_normal(double z, double a) {
  if (isnan(z) || isnan(a)) return NAN;
  if (z <= 0) return log_lower_tail(z, a);
  double log_upper = log_lower_tail(-z, -a);
  return log_upper > -0.6931471805599453 ? log(-expm1(log_upper)) : log1p(-exp(log_upper));
}
