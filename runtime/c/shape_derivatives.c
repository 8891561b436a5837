/* Derivatives of trigamma, and of the logs of the regularised incomplete gamma and beta functions with respect to their
 * shapes: the power series and the continued fractions of incomplete.c, differentiated term by term. With dual numbers,
 * the derivatives of these. */
#include <float.h>

#include "number.h"
#include "special.h"

enum { MOST_TERMS = 100000 };
static const double tiny = 1e-100;

/* digamma(x + d) - digamma(x) */
static number digamma_step(number x, number d) {
#ifdef ULAM_DUAL
  double p = creal(x), q = creal(d), slope = ulam_trigamma(p + q);
  return ulam_digamma_step(p, q) + I * (cimag(x) * (slope - ulam_trigamma(p)) + cimag(d) * slope);
#else
  return ulam_digamma_step(x, d);
#endif
}

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

/* log(x) - digamma(a) */
static number log_less_digamma(double x, number a) {
  double shape = value_of(a);
  number at_shape = shape < 10 ? log(x) - ulam_digamma(shape) : log(x / shape) - special_digamma_rest(shape);
  if (shape >= 10 && fabs(x - shape) < 0.3 * shape) at_shape = log1p((x - shape) / shape) - special_digamma_rest(shape);
#ifdef ULAM_DUAL
  at_shape -= I * cimag(a) * ulam_trigamma(shape);
#endif
  return at_shape;
}

/* The slope of log P by the series: the mean of log(x) - digamma(a + k + 1), weighted by P's terms
 * x^(a + k) exp(-x) / Gamma(a + k + 1). */
static number log_gamma_p_da_series(number a, double x) {
  number slope = value_of(a) < 10 ? log_less_digamma(x, a + 1) : log_less_digamma(x, a) - 1 / a;
  number term = 1, total = 0, sum = 0;
  for (int k = 0; k < MOST_TERMS; ++k) {
    number part = term * slope;
    total += term;
    sum += part;
    double small = 0.25 * DBL_EPSILON;
    if (value_of(term) <= value_of(total) * small && fabs(value_of(part)) <= fabs(value_of(sum)) * small) break;
    slope -= 1 / (a + k + 1);
    term *= x / (a + k + 1);
  }
  return sum / total;
}

/* The slope of log Q by Lentz's continued fraction; c, d and h carry their derivative. */
static number log_gamma_q_da_fraction(number a, double x) {
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
  return log_less_digamma(x, a) + dh / h;
}

/* p / q for p + q = 1; `along` is the slope of log(p) in the direction of dual numbers. */
static number odds(double p, double q, number along) {
#ifdef ULAM_DUAL
  return p / q * (1 + I * creal(along) / q);
#else
  (void)along;
  return p / q;
#endif
}

static double direction(number x) {
#ifdef ULAM_DUAL
  return cimag(x);
#else
  (void)x;
  return 0;
#endif
}

static int gamma_has_slope(number a, double x) {
  return !(isnan(value_of(a)) || isnan(x) || value_of(a) <= 0 || x < 0 || isinf(value_of(a)));
}

static number log_gamma_p_da(number a, double x) {
  if (!gamma_has_slope(a, x)) return NAN;
  if (x == 0) return -INFINITY;
  if (isinf(x)) return 0;
#ifndef ULAM_DUAL
  if (special_is_uniform(a, x)) return special_gamma_uniform_da(a, x) / ulam_gamma_p(a, x);
#endif
  if (x < value_of(a) + 1) return log_gamma_p_da_series(a, x);
  double above = ulam_gamma_q(value_of(a), x);
  if (above == 0) return 0;
  number slope = log_gamma_q_da_fraction(a, x);
  return -odds(above, ulam_gamma_p(value_of(a), x), direction(a) * slope) * slope;
}

static number log_gamma_q_da(number a, double x) {
  if (!gamma_has_slope(a, x)) return NAN;
  if (x == 0) return 0;
  if (isinf(x)) return INFINITY;
#ifndef ULAM_DUAL
  if (special_is_uniform(a, x)) return -special_gamma_uniform_da(a, x) / ulam_gamma_q(a, x);
#endif
  if (x >= value_of(a) + 1) return log_gamma_q_da_fraction(a, x);
  double below = ulam_gamma_p(value_of(a), x);
  if (below == 0) return 0;
  number slope = log_gamma_p_da_series(a, x);
  return -odds(below, ulam_gamma_q(value_of(a), x), direction(a) * slope) * slope;
}

/* A number and its derivatives by a and b. */
typedef struct {
  number value, da, db;
} Shapes;

static Shapes shapes_multiply(Shapes x, Shapes y) {
  return (Shapes){x.value * y.value, x.da * y.value + x.value * y.da, x.db * y.value + x.value * y.db};
}

static Shapes shapes_inverse(Shapes x) {
  if (fabs(value_of(x.value)) < tiny) x.value = tiny;
  number inverse = 1 / x.value, slope = -inverse * inverse;
  return (Shapes){inverse, x.da * slope, x.db * slope};
}

static Shapes shapes_add(Shapes x, Shapes y) { return (Shapes){x.value + y.value, x.da + y.da, x.db + y.db}; }

/* x^a y^b / (a B(a, b)) over I_x(a, b): the continued fraction of incomplete.c over a. */
static Shapes beta_quotient(number a, number b, double x, double y) {
  number below = a * y - b * x + 1, start = 1 / (a + 1);
  Shapes h = shapes_multiply((Shapes){below, y, -x}, (Shapes){start, -start * start, 0});
  Shapes c = h, d = {0, 0, 0};
  for (int m = 1; m < MOST_TERMS; ++m) {
    number odd = 1 / (a + 2 * m - 1), even = 1 / (a + 2 * m + 1), share = m * (b - m) * x * odd;
    Shapes shares = {share, -share * odd, m * x * odd};
    Shapes first = m == 1 ? (Shapes){odd, -odd * odd, 0} : (Shapes){(a + m - 1) * odd, m * odd * odd, 0};
    Shapes second = {(a + b + m - 1) * x, x, x};
    Shapes numerator = shapes_multiply(shapes_multiply(first, second), shares);
    Shapes mean = {(a + m) * even, (m + 1) * even * even, 0};
    Shapes term = shapes_multiply(mean, (Shapes){below + m * (1 + y), y, -x});
    term = shapes_add(term, (Shapes){m + shares.value, shares.da, shares.db});
    d = shapes_inverse(shapes_add(term, shapes_multiply(numerator, d)));
    c = shapes_add(term, shapes_multiply(numerator, shapes_inverse(c)));
    Shapes delta = shapes_multiply(c, d);
    h = shapes_multiply(h, delta);
    double small = DBL_EPSILON * fabs(value_of(h.value));
    if (fabs(value_of(delta.value) - 1) <= DBL_EPSILON &&
        fabs(value_of(delta.da * h.value)) <= DBL_EPSILON * fabs(value_of(h.da)) + small * DBL_EPSILON &&
        fabs(value_of(delta.db * h.value)) <= DBL_EPSILON * fabs(value_of(h.db)) + small * DBL_EPSILON)
      break;
  }
  return h;
}

/* The slopes of log(I_x(a, b)) by that fraction. */
static Shapes log_beta_fraction(number a, number b, double x, double y) {
  Shapes h = beta_quotient(a, b, x, y);
  /* digamma(a + b) - digamma(a + 1) */
  number slope = value_of(a) < 1 ? digamma_step(a + 1, b) - 1 / (a + b) : digamma_step(a, b) - 1 / a;
  double log_x = x < 0.5 ? log(x) : log1p(-y), log_y = x < 0.5 ? log1p(-x) : log(y);
  return (Shapes){0, log_x + slope - h.da / h.value, log_y + digamma_step(b, a) - h.db / h.value};
}

/* The same by the series of incomplete.c, where log(I_x(a, b)) is proportional to a small a: so is its slope by b. */
static Shapes log_beta_series(number a, number b, double x) {
  number term = 1, moved = 0, sum = 0, by_a = 0, by_b = 0;
  for (int n = 1; n < MOST_TERMS; ++n) {
    moved = (moved * (n - b) - term) * (x / n); /* the slope of the term by b */
    term *= (n - b) * (x / n);
    number part = 1 / (a + n);
    sum += term * part;
    by_a -= term * part * part;
    by_b += moved * part;
    double small = 0.25 * DBL_EPSILON * (1 - x), last = fabs(value_of(term)), last_moved = fabs(value_of(moved));
    if (last <= small * fabs(value_of(sum)) && last_moved <= small * fabs(value_of(by_b))) break;
  }
  number scale = 1 / (1 + a * sum);
  return (Shapes){0, log(x) + digamma_step(a + 1, b - 1) + (sum + a * by_a) * scale,
                  digamma_step(b, a) + a * by_b * scale};
}

static Shapes log_inc_beta(number a, number b, double x, double y) {
  double p = value_of(a), q = value_of(b);
  if (isnan(p) || isnan(q) || isnan(x) || isnan(y) || p <= 0 || q <= 0 || x < 0 || y < 0)
    return (Shapes){NAN, NAN, NAN};
  if (x == 0) return (Shapes){0, -INFINITY, 0};
  if (y == 0) return (Shapes){0, 0, 0};
  double log_value = ulam_log_inc_beta(p, q, x, y);
  if (special_is_nearly_one(p, q, x, y)) {
    Shapes other = log_beta_series(b, a, y);
    number along = direction(a) * other.db + direction(b) * other.da;
    number factor = -odds(-expm1(log_value), exp(log_value), along);
    return (Shapes){0, factor * other.db, factor * other.da};
  }
  /* The smaller one may be proportional to a small shape: it tells the slopes of the other. */
  int is_below = x * (q + 1) <= (p + 1) * y;
  if (is_below ? p >= 1 || x < 1e-4 || log_value < -0.5 : q < 1 && y >= 1e-3 && log_value < -1.4)
    return log_beta_fraction(a, b, x, y);
  Shapes upper = log_beta_fraction(b, a, y, x);
  number along = direction(a) * upper.db + direction(b) * upper.da;
  number factor = -odds(-expm1(log_value), exp(log_value), along);
  return (Shapes){0, factor * upper.db, factor * upper.da};
}

#ifndef ULAM_DUAL
double ulam_tetragamma(double x) { return tetragamma(x); }
double ulam_log_gamma_p_da(double a, double x) { return log_gamma_p_da(a, x); }
double ulam_log_gamma_q_da(double a, double x) { return log_gamma_q_da(a, x); }
double ulam_log_inc_beta_da(double a, double b, double x, double y) { return log_inc_beta(a, b, x, y).da; }
double ulam_log_inc_beta_db(double a, double b, double x, double y) { return log_inc_beta(a, b, x, y).db; }
#else
static const double step = 0x1p-332;
static double derivative(number x) { return cimag(x) / step; }

double ulam_pentagamma(double x) { return derivative(tetragamma(x + step * I)); }
double ulam_log_gamma_p_daa(double a, double x) { return derivative(log_gamma_p_da(a + step * I, x)); }
double ulam_log_gamma_q_daa(double a, double x) { return derivative(log_gamma_q_da(a + step * I, x)); }
double ulam_log_inc_beta_daa(double a, double b, double x, double y) {
  return derivative(log_inc_beta(a + step * I, b, x, y).da);
}
double ulam_log_inc_beta_dab(double a, double b, double x, double y) {
  return derivative(log_inc_beta(a, b + step * I, x, y).da);
}
double ulam_log_inc_beta_dbb(double a, double b, double x, double y) {
  return derivative(log_inc_beta(a, b + step * I, x, y).db);
}
#endif
