/* Bessel functions of integer order and a real argument. Of the modified ones that of the second kind comes from orders
 * 0 and 1 (N. M. Temme, 1975), upwards, as it grows with the order. */
#include <float.h>
#include <math.h>

#include "special.h"

static const double pi = 3.14159265358979323846, euler = 0.57721566490153286061;

/* Beyond, the functions of the first kind underflow, and those of the second overflow, for all arguments that have a
 * digit left. */
static const double largest_order = 1e9;

double ulam_bessel_j(double v, double x) {
  if (isnan(v) || isnan(x)) return NAN;
  if (fabs(v) > largest_order) return 0;
  return jn((int)v, x);
}

double ulam_bessel_y(double v, double x) {
  if (isnan(v) || isnan(x) || x < 0) return NAN;
  if (fabs(v) > largest_order) return -INFINITY;
  return yn((int)v, x);
}

/* exp(exponent) (x/2)^v / v! (1 + (x/2)^2 / (v + 1) + ...): all terms are positive; scaled as soon as they are large */
static double bessel_i_series(double v, double x) {
  double quarter = 0.25 * x * x, term = 1, sum = 1, exponent = 0;
  for (int k = 1; term > 0.1 * DBL_EPSILON * sum; ++k) {
    term *= quarter / (k * (k + v));
    sum += term;
    if (sum > 1e250) {
      exponent += 500;
      double scale = exp(-500);
      sum *= scale;
      term *= scale;
    }
  }
  if (v > 150 || exponent > 0) return exp(exponent + log(sum) + v * log(0.5 * x) - special_lgamma(v + 1));
  double factor = 1;
  for (int k = 1; k <= (int)v; ++k) factor *= 0.5 * x / k;
  return sum * factor;
}

static double bessel_i_asymptotic(double v, double x) {
  double mu = 4 * v * v, term = 1, sum = 1;
  for (int k = 1; k < 100; ++k) {
    double next = -term * (mu - (2 * k - 1) * (2.0 * k - 1)) / (k * 8 * x);
    if (fabs(next) < 0.1 * DBL_EPSILON * fabs(sum) || fabs(next) > fabs(term)) break;
    sum += term = next;
  }
  double root = exp(0.5 * x);
  return root * (sum / sqrt(2 * pi * x)) * root;
}

double ulam_bessel_i(double v, double x) {
  if (isnan(v) || isnan(x)) return NAN;
  v = fabs(v);
  if (x < 0) return fmod(v, 2) == 0 ? ulam_bessel_i(v, -x) : -ulam_bessel_i(v, -x);
  if (x == 0) return v == 0;
  if (isinf(x)) return x;
  return x > 30 + v * v ? bessel_i_asymptotic(v, x) : bessel_i_series(v, x);
}

/* Orders 0 and 1, for x <= 2 */
static void bessel_k_series(double x, double *k0, double *k1) {
  double quarter = 0.25 * x * x, f = -log(0.5 * x) - euler, p = 0.5, q = 0.5, c = 1, sum = f, sum1 = p;
  for (int k = 1; k < 60; ++k) {
    f = (k * f + p + q) / ((double)k * k);
    c *= quarter / k;
    p /= k;
    q /= k;
    double term = c * f;
    sum += term;
    sum1 += c * (p - k * f);
    if (fabs(term) < 0.01 * DBL_EPSILON * fabs(sum)) break;
  }
  *k0 = sum;
  *k1 = 2 * sum1 / x;
}

/* Orders 0 and 1 times exp(x), for x >= 2: Steed's method for the second continued fraction */
static void bessel_k_fraction(double x, double *k0, double *k1) {
  double b = 2 * (1 + x), d = 1 / b, h = d, delta = d, q1 = 0, q2 = 1, a = -0.25, q = 0.25, c = 0.25;
  double s = 1 + q * delta;
  for (int i = 2; i < 10000; ++i) {
    a -= 2 * (i - 1);
    c = -a * c / i;
    double next = (q1 - b * q2) / a;
    q1 = q2;
    q2 = next;
    q += c * next;
    b += 2;
    d = 1 / (b + a * d);
    delta = (b * d - 1) * delta;
    h += delta;
    double step = q * delta;
    s += step;
    if (fabs(step) < 0.1 * DBL_EPSILON * fabs(s)) break;
  }
  *k0 = sqrt(pi / (2 * x)) / s;
  *k1 = *k0 * (x + 0.5 - 0.25 * h) / x;
}

double ulam_bessel_k(double v, double x) {
  if (isnan(v) || isnan(x) || x < 0) return NAN;
  if (x == 0) return INFINITY;
  if (isinf(x)) return 0;
  v = fabs(v);
  double k0, k1, shift = x > 2 ? x : 0;
  if (x > 2)
    bessel_k_fraction(x, &k0, &k1);
  else
    bessel_k_series(x, &k0, &k1);
  if (v == 0) return k0 * exp(-shift);
  for (double order = 1; order < v; ++order) {
    double next = k0 + 2 * order / x * k1;
    k0 = k1;
    k1 = next;
    if (isinf(k1)) return INFINITY;
    if (shift > 0 && k1 > 1e200) { /* what is taken out of exp(-x) is not a power of its own */
      double most = fmin(shift, 400);
      k0 *= exp(-most);
      k1 *= exp(-most);
      shift -= most;
    }
  }
  return k1 * exp(-shift);
}
