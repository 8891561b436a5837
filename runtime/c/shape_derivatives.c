/* Derivatives of trigamma, and of the regularised incomplete gamma and beta functions with respect to their shapes: the
 * power series and the continued fractions of incomplete.c, differentiated term by term. With dual numbers, the
 * derivatives of these. */
#include <float.h>

#include "number.h"
#include "special.h"

enum { MOST_TERMS = 100000 };
static const double tiny = 1e-100;

#ifdef ULAM_DUAL
static number digamma(number x) { return ulam_digamma(creal(x)) + I * cimag(x) * ulam_trigamma(creal(x)); }
static number log_gamma(number x) { return special_lgamma(creal(x)) + I * cimag(x) * ulam_digamma(creal(x)); }
static number log_beta(number a, number b) {
  double psi = ulam_digamma(creal(a) + creal(b));
  double slope = cimag(a) * (ulam_digamma(creal(a)) - psi) + cimag(b) * (ulam_digamma(creal(b)) - psi);
  return ulam_lbeta(creal(a), creal(b)) + I * slope;
}
static number digamma_step(number x, number d) {
  double p = creal(x), q = creal(d), slope = ulam_trigamma(p + q);
  return ulam_digamma_step(p, q) + I * (cimag(x) * (slope - ulam_trigamma(p)) + cimag(d) * slope);
}
#else
static number digamma_step(number x, number d) { return ulam_digamma_step(x, d); }
static number digamma(number x) { return ulam_digamma(x); }
static number log_gamma(number x) { return special_lgamma(x); }
static number log_beta(number a, number b) { return ulam_lbeta(a, b); }
#endif

/* The second derivative of digamma: by reflection to positive x, by recurrence to x >= 12, there by the asymptotic
 * series -1/x^2 - 1/x^3 - sum of (2k + 1) B_2k / x^(2k + 2). */
static number tetragamma(number x) {
  static const double pi = 3.14159265358979323846;
  static const double coefficients[] = {
      0.5, -0.16666666666666666, 0.16666666666666666, -0.3, 0.8333333333333334, -3.2904761904761903, 17.5};
  if (value_of(x) <= 0) {
    if (value_of(x) == floor(value_of(x))) return NAN;
    number cotangent = 1 / tan(pi * x);
    return tetragamma(1 - x) - 2 * pi * pi * pi * cotangent * (1 + cotangent * cotangent);
  }
  number sum = 0;
  for (; value_of(x) < 12; x += 1) sum -= 2 / (x * x * x);
  number w = 1 / (x * x), series = 0;
  for (int k = 6; k >= 0; --k) series = w * (coefficients[k] + series);
  return sum - w - w / x - w * series;
}

/* dP/da by the series: the sum of t_k (log x - digamma(a + k + 1)), t_k = x^(a + k) exp(-x) / Gamma(a + k + 1). */
static number gamma_p_da_series(number a, double x) {
  double log_x = log(x);
  number psi = digamma(a + 1), sum = 0;
  number term = exp(a * log_x - x - log_gamma(a + 1));
  for (int k = 0; k < MOST_TERMS; ++k) {
    number part = term * (log_x - psi);
    sum += part;
    if (k > x && fabs(value_of(part)) <= fabs(value_of(sum)) * 0.25 * DBL_EPSILON) break;
    psi += 1 / (a + k + 1);
    term *= x / (a + k + 1);
  }
  return sum;
}

/* dQ/da by Lentz's continued fraction; c, d and h carry their derivative. */
static number gamma_q_da_fraction(number a, double x) {
  number b = x + 1 - a, db = -1;
  number c = 1 / tiny, dc = 0, d = 1 / b, dd = -db * d * d, h = d, dh = dd;
  for (int i = 1; i < MOST_TERMS; ++i) {
    number an = -i * (i - a), dan = i;
    b += 2;
    number u = an * d + b, du = dan * d + an * dd + db;
    number next = b + an / c, dnext = db + dan / c - an * dc / (c * c);
    c = next, dc = dnext;
    d = 1 / u, dd = -du * d * d;
    number delta = d * c, ddelta = dd * c + d * dc;
    dh = dh * delta + h * ddelta;
    h *= delta;
    if (fabs(value_of(delta) - 1) <= DBL_EPSILON && fabs(value_of(ddelta * h)) <= DBL_EPSILON * fabs(value_of(dh)))
      break;
  }
  number factor = exp(a * log(x) - x - log_gamma(a));
  return factor * (h * (log(x) - digamma(a)) + dh);
}

static number gamma_p_da(number a, double x) {
  if (isnan(value_of(a)) || isnan(x) || value_of(a) <= 0 || x < 0 || isinf(value_of(a))) return NAN;
  if (x == 0 || isinf(x)) return 0;
  return x < value_of(a) + 1 ? gamma_p_da_series(a, x) : -gamma_q_da_fraction(a, x);
}

/* I_x(a, b) and its derivatives by a and b, for x below about a / (a + b). */
typedef struct {
  number value, da, db;
} Shapes;

static Shapes shapes_multiply(Shapes x, Shapes y) {
  return (Shapes){x.value * y.value, x.da * y.value + x.value * y.da, x.db * y.value + x.value * y.db};
}

static Shapes shapes_inverse(Shapes x) {
  number inverse = 1 / x.value, slope = -inverse * inverse;
  return (Shapes){inverse, x.da * slope, x.db * slope};
}

/* 1 + x * y */
static Shapes shapes_one_plus(Shapes x, Shapes y) {
  Shapes result = shapes_multiply(x, y);
  result.value += 1;
  if (fabs(value_of(result.value)) < tiny) result.value = tiny;
  return result;
}

static Shapes even_coefficient(number a, number b, double x, int m) {
  number p = a + 2 * m - 1, q = a + 2 * m, value = m * (b - m) * x / (p * q);
  return (Shapes){value, -value * (1 / p + 1 / q), m * x / (p * q)};
}

static Shapes odd_coefficient(number a, number b, double x, int m) {
  number p = a + 2 * m, q = a + 2 * m + 1, r = a + m, s = a + b + m;
  number value = -r * s * x / (p * q);
  return (Shapes){value, -(r + s) * x / (p * q) - value * (1 / p + 1 / q), -r * x / (p * q)};
}

static Shapes beta_fraction(number a, number b, double x, double y) {
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
    double small = DBL_EPSILON * fabs(value_of(h.value));
    if (fabs(value_of(delta.value) - 1) <= DBL_EPSILON &&
        fabs(value_of(delta.da * h.value)) <= DBL_EPSILON * (fabs(value_of(h.da)) + small) &&
        fabs(value_of(delta.db * h.value)) <= DBL_EPSILON * (fabs(value_of(h.db)) + small))
      break;
  }
  number factor = exp(a * log(x) + b * (x < 0.5 ? log1p(-x) : log(y)) - log_beta(a, b)) / a;
  /* digamma(a + b) - digamma(a + 1) */
  number slope = value_of(a) < 1 ? digamma_step(a + 1, b) - 1 / (a + b) : digamma_step(a, b) - 1 / a;
  Shapes scale = {factor, factor * (log(x) + slope), factor * (log(y) + digamma_step(b, a))};
  return shapes_multiply(scale, h);
}

static Shapes beta_shapes(number a, number b, double x) {
  double p = value_of(a), q = value_of(b);
  if (isnan(p) || isnan(q) || isnan(x) || p <= 0 || q <= 0 || x < 0 || x > 1) return (Shapes){NAN, NAN, NAN};
  if (x == 0 || x == 1) return (Shapes){x, 0, 0};
  if (x <= (p + 1) / (p + q + 2)) return beta_fraction(a, b, x, 1 - x);
  Shapes upper = beta_fraction(b, a, 1 - x, x);
  return (Shapes){1 - upper.value, -upper.db, -upper.da};
}

#ifndef ULAM_DUAL
double ulam_tetragamma(double x) { return tetragamma(x); }
double ulam_gamma_p_da(double a, double x) { return gamma_p_da(a, x); }
double ulam_inc_beta_da(double a, double b, double x) { return beta_shapes(a, b, x).da; }
double ulam_inc_beta_db(double a, double b, double x) { return beta_shapes(a, b, x).db; }
#else
static const double step = 0x1p-332;
static double derivative(number x) { return cimag(x) / step; }

double ulam_pentagamma(double x) { return derivative(tetragamma(x + step * I)); }
double ulam_gamma_p_daa(double a, double x) { return derivative(gamma_p_da(a + step * I, x)); }
double ulam_inc_beta_daa(double a, double b, double x) { return derivative(beta_shapes(a + step * I, b, x).da); }
double ulam_inc_beta_dab(double a, double b, double x) { return derivative(beta_shapes(a, b + step * I, x).da); }
double ulam_inc_beta_dbb(double a, double b, double x) { return derivative(beta_shapes(a, b + step * I, x).db); }
#endif
