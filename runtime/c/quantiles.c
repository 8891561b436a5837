/* Quantiles. Where there is no formula, the distribution function is inverted by bisection over the doubles (64 steps at
 * most), so that the error is that of the function alone; each side of the median by the tail that is small there.
 * Distributions that have no such function are summed from their mode on.
 */
#include "quantiles.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "special.h"

static const double pi = 3.14159265358979323846;

/* Whether a distribution function reaches `at` in x. */
typedef int (*reaches)(double x, probability at, const double *shape);

static int64_t order_of(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits < 0 ? INT64_MIN - bits : bits;
}

static double in_order(int64_t number) {
  int64_t bits = number < 0 ? INT64_MIN - number : number;
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The smallest double above `low`, up to `high`, that reaches it; `low` for a probability of 0. */
static double bisect(reaches reached, probability at, const double *shape, double low, double high) {
  if (!(at.below > 0)) return low;
  int64_t below = order_of(low), above = order_of(high);
  while ((uint64_t)above - (uint64_t)below > 1) {
    int64_t middle = (int64_t)((uint64_t)below + ((uint64_t)above - (uint64_t)below) / 2);
    if (reached(in_order(middle), at, shape))
      above = middle;
    else
      below = middle;
  }
  return in_order(above);
}

/* The same for the integers from `low` up to `high`. */
static int64_t bisect_integers(reaches reached, probability at, const double *shape, int64_t low, int64_t high) {
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (reached((double)middle, at, shape))
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static int is_below(probability at) { return at.below <= at.above; }

/* ---------------------------------------------------------------- continuous */

double quantile_cauchy(probability at) {
  if (at.below < 0.25) return -1 / tan(pi * at.below);
  return at.above < 0.25 ? 1 / tan(pi * at.above) : tan(pi * (at.below - 0.5));
}

double quantile_laplace(probability at) { return is_below(at) ? log(2 * at.below) : -log(2 * at.above); }

double quantile_exponential(probability at) { return is_below(at) ? -log1p(-at.below) : -log(at.above); }

static int gamma_reaches(double x, probability at, const double *shape) {
  return is_below(at) ? ulam_gamma_p(shape[0], x) >= at.below : ulam_gamma_q(shape[0], x) <= at.above;
}

double quantile_gamma(probability at, double shape) {
  return bisect(gamma_reaches, at, &shape, 0, at.above > 0 ? DBL_MAX : INFINITY);
}

static int beta_reaches(double x, probability at, const double *shape) {
  if (is_below(at)) return ulam_inc_beta(shape[0], shape[1], x) >= at.below;
  return special_inc_beta(shape[1], shape[0], 1 - x, x) <= at.above;
}

double quantile_beta(probability at, double a, double b) {
  double shape[2] = {a, b};
  return bisect(beta_reaches, at, shape, 0, 1);
}

/* For t > 0: how much is between 0 and t, and how much above t. */
static int student_t_is_within(double t, probability at, const double *nu) {
  return 0.5 * special_inc_beta(0.5, 0.5 * *nu, 1 / (1 + *nu / (t * t)), 1 / (1 + t * t / *nu)) >= at.below;
}

static int student_t_is_beyond(double t, probability at, const double *nu) {
  return 0.5 * special_inc_beta(0.5 * *nu, 0.5, 1 / (1 + t * t / *nu), 1 / (1 + *nu / (t * t))) <= at.above;
}

double quantile_student_t(probability at, double nu) {
  double tail = fmin(at.below, at.above), size;
  if (tail == 0)
    size = INFINITY;
  else if (tail < 0.25)
    size = bisect(student_t_is_beyond, (probability){1 - tail, tail}, &nu, 0, DBL_MAX);
  else
    size = bisect(student_t_is_within, (probability){0.5 - tail, tail}, &nu, 0, DBL_MAX);
  return is_below(at) ? -size : size;
}

/* Owen's function: 1 / (2 pi) times the integral of exp(-h^2 (1 + x^2) / 2) / (1 + x^2) from 0 to a, for a >= 0. */
static double owens_t(double h, double a) {
  /* Gauss and Legendre's rule with 32 points; all of them are symmetric around the middle. */
  static const double nodes[] = {
      0.0483076656877383162, 0.1444719615827964934, 0.2392873622521370745, 0.3318686022821276497,
      0.4213512761306353453, 0.5068999089322293900, 0.5877157572407623290, 0.6630442669302152009,
      0.7321821187402896803, 0.7944837959679424069, 0.8493676137325699701, 0.8963211557660521239,
      0.9349060759377396891, 0.9647622555875064307, 0.9856115115452683354, 0.9972638618494815635};
  static const double weights[] = {
      0.0965400885147278005, 0.0956387200792748594, 0.0938443990808045654, 0.0911738786957638847,
      0.0876520930044038111, 0.0833119242269467552, 0.0781938957870703064, 0.0723457941088485062,
      0.0658222227763618468, 0.0586840934785355471, 0.0509980592623761761, 0.0428358980222266806,
      0.0342738629130214331, 0.0253920653092620594, 0.0162743947309056706, 0.0070186100094700966};
  h = fabs(h);
  if (a > 1) {
    double far = ulam_Phi(-h), farther = ulam_Phi(-a * h);
    return 0.5 * far + 0.5 * farther - far * farther - owens_t(a * h, 1 / a);
  }
  double sum = 0;
  for (int i = 0; i < 16; ++i)
    for (int side = -1; side <= 1; side += 2) {
      double x = 0.5 * a * (1 + side * nodes[i]), square = 1 + x * x;
      sum += weights[i] * exp(-0.5 * h * h * square) / square;
    }
  return sum * 0.5 * a / (2 * pi);
}

static int skew_normal_reaches(double x, probability at, const double *shape) {
  double between = 2 * copysign(owens_t(x, fabs(shape[0])), shape[0]);
  return is_below(at) ? ulam_Phi(x) - between >= at.below : ulam_Phi(-x) + between <= at.above;
}

double quantile_skew_normal(probability at, double shape) {
  if (at.below == 0) return -INFINITY;
  return bisect(skew_normal_reaches, at, &shape, -40, 40);
}

/* exp(v (v / 2 - z)) Phi(z - v): what the exponential takes from the normal's distribution function. */
static double exp_mod_normal_share(double z, double v) {
  double x = v - z;
  if (x < 3) return exp(v * (0.5 * v - z)) * ulam_Phi(-x);
  double ratio = x; /* of Mills, by its continued fraction */
  for (int i = 120; i > 0; --i) ratio = x + i / ratio;
  return exp(-0.5 * z * z) * 0.39894228040143267794 / ratio;
}

static int exp_mod_normal_reaches(double z, probability at, const double *rate) {
  double share = exp_mod_normal_share(z, *rate);
  return is_below(at) ? ulam_Phi(z) - share >= at.below : ulam_Phi(-z) + share <= at.above;
}

double quantile_exp_mod_normal(probability at, double rate) {
  if (at.below == 0) return -INFINITY;
  return bisect(exp_mod_normal_reaches, at, &rate, -40, DBL_MAX);
}

/* By its Fourier series, with the ratios of Bessel functions from the last one down (Hill, 1977). */
static int von_mises_reaches(double x, probability at, const double *kappa) {
  double ratio = 0, sum = 0;
  for (int k = (int)(30 + 12 * sqrt(*kappa)); k > 0; --k) {
    ratio = 1 / (2 * k / *kappa + ratio);
    sum = ratio * (sin(k * x) / k + sum);
  }
  return x / (2 * pi) + sum / pi >= (is_below(at) ? at.below - 0.5 : 0.5 - at.above);
}

double quantile_von_mises(probability at, double kappa) {
  if (kappa < 1e-8) return pi * (at.below - at.above);
  /* As NumPy does: so narrow a distribution is a normal one. */
  if (kappa > 1e6) return fmax(-pi, fmin(pi, ulam_inv_Phi(at.below) / sqrt(kappa)));
  return bisect(von_mises_reaches, at, &kappa, -pi, pi);
}

/* ---------------------------------------------------------------- discrete, by their distribution functions */

static int binomial_reaches(double k, probability at, const double *shape) {
  double count = shape[0], theta = shape[1];
  if (k >= count) return 1;
  return is_below(at) ? special_inc_beta(count - k, k + 1, 1 - theta, theta) >= at.below
                      : special_inc_beta(k + 1, count - k, theta, 1 - theta) <= at.above;
}

int64_t quantile_binomial(probability at, int64_t count, double theta) {
  double shape[2] = {(double)count, theta};
  return bisect_integers(binomial_reaches, at, shape, 0, count);
}

static int poisson_reaches(double k, probability at, const double *rate) {
  return is_below(at) ? ulam_gamma_q(k + 1, *rate) >= at.below : ulam_gamma_p(k + 1, *rate) <= at.above;
}

int64_t quantile_poisson(probability at, double rate) {
  return bisect_integers(poisson_reaches, at, &rate, 0, QUANTILE_LARGEST);
}

static int neg_binomial_reaches(double k, probability at, const double *shape) {
  return is_below(at) ? special_inc_beta(shape[0], k + 1, shape[1], shape[2]) >= at.below
                      : special_inc_beta(k + 1, shape[0], shape[2], shape[1]) <= at.above;
}

int64_t quantile_neg_binomial(probability at, double shape, double success, double failure) {
  double parameters[3] = {shape, success, failure};
  return bisect_integers(neg_binomial_reaches, at, parameters, 0, QUANTILE_LARGEST);
}

static int yule_simon_reaches(double k, probability at, const double *alpha) {
  double log_above = log(k) + ulam_lbeta(k, *alpha + 1);
  return is_below(at) ? -expm1(log_above) >= at.below : exp(log_above) <= at.above;
}

int64_t quantile_yule_simon(probability at, double alpha) {
  return bisect_integers(yule_simon_reaches, at, &alpha, 1, QUANTILE_LARGEST);
}

/* ---------------------------------------------------------------- discrete, by sums from the mode */

/* The probability of k + 1 as a multiple of that of k. */
typedef double (*successor)(double k, const double *shape);

/* The sum of probabilities beside `start`, whose own is 1, on one side up to `end`; if they fall from there on, until
 * what is left is nothing. */
static double sum_beside(successor next, const double *shape, int64_t start, int64_t end, int falling) {
  int64_t step = end > start ? 1 : -1;
  double sum = 0, term = 1;
  for (int64_t k = start; k != end; k += step) {
    term = step > 0 ? term * next((double)k, shape) : term / next((double)(k - 1), shape);
    sum += term;
    if (falling && term * (double)((end - k) * step) < 1e-18 * (1 + sum)) break;
  }
  return sum;
}

/* From `start` to where the sum reaches `at`. `under`, `over`: the sums of what is below and above the start, whose own
 * probability is 1. */
static int64_t walk(successor next, probability at, const double *shape, int64_t low, int64_t high, int64_t start,
                    double under, double over) {
  double total = under + 1 + over, term = 1;
  int64_t k = start; /* `term` is its own, `under` what is below, `over` above */
  double least = at.below * total, most = at.above * total;
  int from_below = is_below(at);
  while (k > low && (from_below ? under >= least : over + term <= most)) {
    over += term;
    term /= next((double)(k - 1), shape);
    under -= term;
    --k;
  }
  while (k < high && (from_below ? under + term < least : over > most)) {
    under += term;
    term *= next((double)k, shape);
    over -= term;
    ++k;
  }
  return k;
}

/* Of a distribution whose probabilities rise up to one place and fall from there on. */
static int64_t mode_of(successor next, const double *shape, int64_t low, int64_t high) {
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (next((double)middle, shape) <= 1)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}

static double next_of_beta_binomial(double k, const double *shape) {
  double left = shape[0] - k;
  return left / (k + 1) * ((k + shape[1]) / (left - 1 + shape[2]));
}

int64_t quantile_beta_binomial(probability at, int64_t count, double alpha, double beta) {
  double shape[3] = {(double)count, alpha, beta};
  int falling = alpha >= 1 || beta >= 1; /* on both sides of the mode; else both ends are modes */
  int64_t start = falling ? mode_of(next_of_beta_binomial, shape, 0, count) : 0;
  double under = sum_beside(next_of_beta_binomial, shape, start, 0, falling);
  double over = sum_beside(next_of_beta_binomial, shape, start, count, falling);
  return walk(next_of_beta_binomial, at, shape, 0, count, start, under, over);
}

static double next_of_hypergeometric(double k, const double *shape) {
  double successes = shape[0], failures = shape[1], draws = shape[2];
  return (successes - k) / (k + 1) * ((draws - k) / (failures - draws + k + 1));
}

int64_t quantile_hypergeometric(probability at, int64_t successes, int64_t failures, int64_t draws) {
  double shape[3] = {(double)successes, (double)failures, (double)draws};
  int64_t low = draws > failures ? draws - failures : 0, high = draws < successes ? draws : successes;
  int64_t start = mode_of(next_of_hypergeometric, shape, low, high);
  double under = sum_beside(next_of_hypergeometric, shape, start, low, 1);
  double over = sum_beside(next_of_hypergeometric, shape, start, high, 1);
  return walk(next_of_hypergeometric, at, shape, low, high, start, under, over);
}

static double next_of_beta_neg_binomial(double k, const double *shape) {
  double r = shape[0], alpha = shape[1], beta = shape[2];
  return (r + k) / (k + 1) * ((beta + k) / (alpha + r + beta + k));
}

/* The tail is long: it is not summed, but known from the probability of the mode. */
int64_t quantile_beta_neg_binomial(probability at, double r, double alpha, double beta) {
  double shape[3] = {r, alpha, beta};
  int64_t start = mode_of(next_of_beta_neg_binomial, shape, 0, QUANTILE_LARGEST);
  double k = (double)start;
  double choose = k > 0 ? -log(k) - ulam_lbeta(r, k) : 0;
  double log_start = choose + ulam_lbeta(alpha + r, beta + k) - ulam_lbeta(alpha, beta);
  double under = sum_beside(next_of_beta_neg_binomial, shape, start, 0, 1), over = exp(-log_start) - under - 1;
  return walk(next_of_beta_neg_binomial, at, shape, 0, QUANTILE_LARGEST, start, under, over);
}
