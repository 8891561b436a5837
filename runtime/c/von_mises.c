/* The distribution function of the von Mises distribution: the mass between two angles, by the rule of Gauss and Legendre
 * on each half of a period, where exp(kappa cos(t)) only falls or only rises. */
#include <math.h>

#include "gauss_legendre.h"
#include "special.h"

static const double pi = 3.14159265358979323846, half_log_two = 0.34657359027997265471;

enum { MOST_EXPONENT = 40 }; /* what is below exp(-40) of the largest part is left out */

/* log of an integral of exp(kappa (cos(t) - 1)); mean and mean square of 1 - cos(t) under it */
typedef struct {
  double log_integral, mean, square;
} mass;

/* From `near` to `far` in [0, pi], in order of the distance from the peak. */
static mass half_period(double kappa, double near, double far) {
  double width = far - near, sine = sin(0.5 * near);
  double end = sine * sine + 0.5 * MOST_EXPONENT / kappa;
  if (end < 1) {
    double high = 2 * asin(sqrt(end));
    width = fmin(width, 2 * asin(fmin(1, 0.5 * MOST_EXPONENT / kappa / sin(0.5 * (high + near)))));
  }
  double sums[3] = {0, 0, 0};
  for (int i = 0; i < 40; ++i) {
    double node = i < 20 ? gauss_legendre_nodes[i] : -gauss_legendre_nodes[i - 20];
    double step = 0.5 * width * (1 + node), fall = 2 * sin(0.5 * step) * sin(near + 0.5 * step);
    double part = gauss_legendre_weights[i % 20] * exp(-kappa * fall), distance = 2 * sine * sine + fall;
    sums[0] += part;
    sums[1] += part * distance;
    sums[2] += part * distance * distance;
  }
  mass found = {log(0.5 * width * sums[0]) - 2 * kappa * sine * sine, sums[1] / sums[0], sums[2] / sums[0]};
  return found;
}

static mass joined(mass a, mass b) {
  if (!(b.log_integral > -INFINITY)) return a;
  if (!(a.log_integral > -INFINITY)) return b;
  double high = fmax(a.log_integral, b.log_integral);
  double x = exp(a.log_integral - high), y = exp(b.log_integral - high), sum = x + y;
  mass found = {high + log(sum), (x * a.mean + y * b.mean) / sum, (x * a.square + y * b.square) / sum};
  return found;
}

/* Between two angles, at most one turn apart. */
static mass between(double low, double high, double kappa) {
  mass found = {-INFINITY, 0, 0};
  double turn = floor(low / pi);
  for (int piece = 0; piece < 4; ++piece, ++turn) {
    double from = fmax(low, turn * pi) - turn * pi, to = fmin(high, (turn + 1) * pi) - turn * pi;
    from = fmax(0, from), to = fmin(pi, to);
    if (to > from) {
      int rises = fmod(turn, 2) != 0;
      found = joined(found, rises ? half_period(kappa, pi - to, pi - from) : half_period(kappa, from, to));
    }
  }
  return found;
}

static mass whole(double kappa) {
  mass found = half_period(kappa, 0, pi);
  found.log_integral += 2 * half_log_two;
  return found;
}

static int is_outside(double low, double high, double kappa) {
  return !(isfinite(low) && isfinite(high) && isfinite(kappa) && kappa >= 0);
}

/* log of the integral of exp(kappa (cos(t) - 1)) over a period, and its slopes */
double ulam_von_mises_normalizer(double kappa) { return kappa >= 0 ? whole(kappa).log_integral : NAN; }

double ulam_von_mises_normalizer_dk(double kappa) { return kappa >= 0 ? -whole(kappa).mean : NAN; }

double ulam_von_mises_normalizer_dkk(double kappa) {
  mass all = whole(kappa);
  return kappa >= 0 ? all.square - all.mean * all.mean : NAN;
}

/* log of the mass between two angles, and its slopes by kappa; where it is near 0, through the complement */
static double slopes(double low, double high, double kappa, double *first, double *second) {
  *first = *second = NAN;
  if (is_outside(low, high, kappa)) return NAN;
  mass all = whole(kappa), part = between(low, high, kappa);
  double value = part.log_integral - all.log_integral;
  int is_large = value > -2 * half_log_two;
  if (is_large) {
    part = between(high, low + 2 * pi, kappa);
    value = part.log_integral - all.log_integral;
  }
  if (value == -INFINITY) {
    *first = *second = 0;
    return is_large ? 0 : value;
  }
  double slope = all.mean - part.mean;
  double curve = part.square - part.mean * part.mean - (all.square - all.mean * all.mean);
  if (is_large) {
    double odds = exp(value) / -expm1(value);
    curve = -odds * (slope * slope + curve) - odds * odds * slope * slope;
    slope *= -odds;
    value = log1p(-exp(value));
  }
  *first = slope;
  *second = curve;
  return value;
}

double ulam_log_von_mises(double low, double high, double kappa) {
  double first, second;
  return slopes(low, high, kappa, &first, &second);
}

double ulam_log_von_mises_dk(double low, double high, double kappa) {
  double first, second;
  slopes(low, high, kappa, &first, &second);
  return first;
}

double ulam_log_von_mises_dkk(double low, double high, double kappa) {
  double first, second;
  slopes(low, high, kappa, &first, &second);
  return second;
}
