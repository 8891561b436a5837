/* Numbers of twice the digits: sums of two, of which the second is what the first has rounded away.
 *
 * Dekker, "A floating-point technique for extending the available precision" (1971); Hida, Li and Bailey, "Algorithms for
 * quad-double precision floating point arithmetic" (2001). What is not finite, or overflows, is not looked after. */
#ifndef ULAM_TWOFOLD_H
#define ULAM_TWOFOLD_H

#include <math.h>

#include "dense.h"

/* Fused multiply-adds tell what products round away; without them the library's function does. */
#ifdef ULAM_SEVERAL_PROCESSORS
#define TWOFOLD_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TWOFOLD_CLONES
#endif
#if defined(ULAM_DUAL) || defined(ULAM_ONE_PROCESSOR)
#define TWOFOLD_CLONES_OF_NUMBERS
#else
#define TWOFOLD_CLONES_OF_NUMBERS TWOFOLD_CLONES
#endif
#define TWOFOLD static inline __attribute__((always_inline))

typedef struct {
  double high, low;
} twofold;

/* a + b, where a is the larger one, or is 0. */
TWOFOLD twofold joined(double a, double b) {
  double sum = a + b;
  return (twofold){sum, b - (sum - a)};
}

TWOFOLD twofold sum_of(double a, double b) {
  double sum = a + b, kept = sum - a;
  return (twofold){sum, (a - (sum - kept)) + (b - kept)};
}

TWOFOLD twofold product_of(double a, double b) {
  double product = a * b;
  return (twofold){product, __builtin_fma(a, b, -product)};
}

/* total + by: what that rounds away is added to `rest`. */
TWOFOLD void increase(double *total, double *rest, double by) {
  twofold sum = sum_of(*total, by);
  *rest += sum.low;
  *total = sum.high;
}

/* total + a b for data a, likewise. */
TWOFOLD void increase_by_product(number *total, number *rest, twofold a, number b) {
  number product = a.high * b, sum = *total + product, kept = sum - *total;
#ifdef ULAM_DUAL
  double x = a.high;
  number low = CMPLX(__builtin_fma(x, creal(b), -creal(product)), __builtin_fma(x, cimag(b), -cimag(product)));
#else
  number low = __builtin_fma(a.high, b, -product);
#endif
  *rest += ((*total - (sum - kept)) + (product - kept)) + (low + a.low * b);
  *total = sum;
}

TWOFOLD twofold plus_twofold(twofold a, twofold b) {
  twofold sum = sum_of(a.high, b.high);
  return joined(sum.high, sum.low + (a.low + b.low));
}

TWOFOLD twofold minus_twofold(twofold a, twofold b) { return plus_twofold(a, (twofold){-b.high, -b.low}); }

TWOFOLD twofold times_twofold(twofold a, twofold b) {
  twofold product = product_of(a.high, b.high);
  return joined(product.high, product.low + (a.high * b.low + a.low * b.high));
}

TWOFOLD twofold over_twofold(twofold a, twofold b) {
  double first = a.high / b.high;
  twofold rest = minus_twofold(a, times_twofold((twofold){first, 0}, b));
  return joined(first, rest.high / b.high);
}

TWOFOLD twofold root_of_twofold(twofold a) {
  if (!(a.high > 0)) return (twofold){0, 0};
  double first = sqrt(a.high);
  twofold rest = minus_twofold(a, product_of(first, first));
  return joined(first, rest.high / (2 * first));
}

#endif
