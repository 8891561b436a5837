/* log(Phi(x)), the derivative of trigamma, and derivatives of the regularised incomplete gamma and beta functions with respect to their shapes:
 * the power series and the continued fractions of incomplete.c, differentiated term by term. */
#include <float.h>
#include <math.h>

#include "special.h"

enum { MOST_TERMS = 100000 };
static const double tiny = 1e-300;

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

/* The second derivative of digamma: by reflection to positive x, by recurrence to x >= 12, there by the asymptotic
 * series -1/x^2 - 1/x^3 - sum of (2k + 1) B_2k / x^(2k + 2). */
double ulam_tetragamma(double x) {
  static const double pi = 3.14159265358979323846;
  static const double coefficients[] = {0.5, -0.16666666666666666, 0.16666666666666666, -0.3,
                                        0.8333333333333334, -3.2904761904761903, 17.5};
  if (x <= 0) {
    if (x == floor(x)) return NAN;
    double tangent = tan(pi * x), cotangent = 1 / tangent;
    return ulam_tetragamma(1 - x) - 2 * pi * pi * pi * cotangent * (1 + cotangent * cotangent);
  }
  double sum = 0;
  for (; x < 12; ++x) sum -= 2 / (x * x * x);
  double w = 1 / (x * x), series = 0;
  for (int k = 6; k >= 0; --k) series = w * (coefficients[k] + series);
  return sum - w - w / x - w * series;
}

/* dP/da by the series: the sum of t_k (log x - digamma(a + k + 1)), t_k = x^(a + k) exp(-x) / Gamma(a + k + 1). */
static double gamma_p_da_series(double a, double x) {
  double log_x = log(x), psi = ulam_digamma(a + 1), sum = 0;
  double term = exp(a * log_x - x - special_lgamma(a + 1));
  for (int k = 0; k < MOST_TERMS; ++k) {
    double part = term * (log_x - psi);
    sum += part;
    if (k > x && fabs(part) <= fabs(sum) * 0.25 * DBL_EPSILON) break;
    psi += 1 / (a + k + 1);
    term *= x / (a + k + 1);
  }
  return sum;
}

/* dQ/da by Lentz's continued fraction; c, d and h carry their derivative. */
static double gamma_q_da_fraction(double a, double x) {
  double b = x + 1 - a, db = -1;
  double c = 1 / tiny, dc = 0, d = 1 / b, dd = -db * d * d, h = d, dh = dd;
  for (int i = 1; i < MOST_TERMS; ++i) {
    double an = -i * (i - a), dan = i;
    b += 2;
    double u = an * d + b, du = dan * d + an * dd + db;
    double next = b + an / c, dnext = db + dan / c - an * dc / (c * c);
    c = next, dc = dnext;
    d = 1 / u, dd = -du * d * d;
    double delta = d * c, ddelta = dd * c + d * dc;
    dh = dh * delta + h * ddelta;
    h *= delta;
    if (fabs(delta - 1) <= DBL_EPSILON && fabs(ddelta * h) <= DBL_EPSILON * fabs(dh)) break;
  }
  double factor = exp(a * log(x) - x - special_lgamma(a));
  return factor * (h * (log(x) - ulam_digamma(a)) + dh);
}

double ulam_gamma_p_da(double a, double x) {
  if (isnan(a) || isnan(x) || a <= 0 || x < 0 || isinf(a)) return NAN;
  if (x == 0 || isinf(x)) return 0;
  return x < a + 1 ? gamma_p_da_series(a, x) : -gamma_q_da_fraction(a, x);
}

/* I_x(a, b) and its derivatives by a and b, for x below about a / (a + b). */
typedef struct {
  double value, da, db;
} Shapes;

static Shapes shapes_multiply(Shapes x, Shapes y) {
  return (Shapes){x.value * y.value, x.da * y.value + x.value * y.da, x.db * y.value + x.value * y.db};
}

static Shapes shapes_inverse(Shapes x) {
  double inverse = 1 / x.value, slope = -inverse * inverse;
  return (Shapes){inverse, x.da * slope, x.db * slope};
}

/* 1 + x * y */
static Shapes shapes_one_plus(Shapes x, Shapes y) {
  Shapes result = shapes_multiply(x, y);
  result.value += 1;
  if (fabs(result.value) < tiny) result.value = tiny;
  return result;
}

static Shapes even_coefficient(double a, double b, double x, int m) {
  double p = a + 2 * m - 1, q = a + 2 * m, value = m * (b - m) * x / (p * q);
  return (Shapes){value, -value * (1 / p + 1 / q), m * x / (p * q)};
}

static Shapes odd_coefficient(double a, double b, double x, int m) {
  double p = a + 2 * m, q = a + 2 * m + 1, r = a + m, s = a + b + m;
  double value = -r * s * x / (p * q);
  return (Shapes){value, -(r + s) * x / (p * q) - value * (1 / p + 1 / q), -r * x / (p * q)};
}

static Shapes beta_fraction(double a, double b, double x, double y) {
  Shapes c = {1, 0, 0}, d = shapes_one_plus(odd_coefficient(a, b, x, 0), (Shapes){1, 0, 0});
  d = shapes_inverse(d);
  Shapes h = d;
  for (int m = 1; m < MOST_TERMS; ++m) {
    Shapes delta = {0, 0, 0};
    for (int odd = 0; odd < 2; ++odd) {
      Shapes coefficient = odd ? odd_coefficient(a, b, x, m) : even_coefficient(a, b, x, m);
      d = shapes_inverse(shapes_one_plus(coefficient, d));
      c = shapes_one_plus(coefficient, shapes_inverse(c));
      delta = shapes_multiply(c, d);
      h = shapes_multiply(h, delta);
    }
    double small = DBL_EPSILON * fabs(h.value);
    if (fabs(delta.value - 1) <= DBL_EPSILON && fabs(delta.da * h.value) <= DBL_EPSILON * fabs(h.da) + small * DBL_EPSILON &&
        fabs(delta.db * h.value) <= DBL_EPSILON * fabs(h.db) + small * DBL_EPSILON)
      break;
  }
  double psi = ulam_digamma(a + b);
  double factor = exp(a * log(x) + b * (x < 0.5 ? log1p(-x) : log(y)) - ulam_lbeta(a, b)) / a;
  Shapes scale = {factor, factor * (log(x) - ulam_digamma(a) + psi - 1 / a), factor * (log(y) - ulam_digamma(b) + psi)};
  return shapes_multiply(scale, h);
}

static Shapes beta_shapes(double a, double b, double x) {
  if (isnan(a) || isnan(b) || isnan(x) || a <= 0 || b <= 0 || x < 0 || x > 1) return (Shapes){NAN, NAN, NAN};
  if (x == 0 || x == 1) return (Shapes){x, 0, 0};
  if (x <= (a + 1) / (a + b + 2)) return beta_fraction(a, b, x, 1 - x);
  Shapes upper = beta_fraction(b, a, 1 - x, x);
  return (Shapes){1 - upper.value, -upper.db, -upper.da};
}

double ulam_inc_beta_da(double a, double b, double x) { return beta_shapes(a, b, x).da; }

double ulam_inc_beta_db(double a, double b, double x) { return beta_shapes(a, b, x).db; }
