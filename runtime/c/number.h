/* What numbers are. C code that can be differentiated once more is compiled a second time, with ULAM_DUAL (see dual/), on
 * dual numbers: complex numbers whose imaginary part is the derivative along a direction times a step so small that its
 * square vanishes. Complex arithmetic then is the arithmetic of derivatives, without cancellation (Squire and Trapp,
 * "Using complex variables to estimate derivatives of real functions", 1998). Comparisons are of `value_of`.
 * `KERNEL(name)` is a kernel's C function. */
#ifndef ULAM_NUMBER_H
#define ULAM_NUMBER_H

#ifdef ULAM_DUAL
#include <tgmath.h>
typedef double complex number;
#define KERNEL(name) ulam_##name##_dual
#define value_of(x) creal(x)
#define absolute(x) (creal(x) < 0 ? -(x) : (x))
#else
#include <math.h>
typedef double number;
#ifdef ULAM_FAST
#define KERNEL(name) ulam_##name##_fast
#else
#define KERNEL(name) ulam_##name
#endif
#define value_of(x) (x)
#define absolute(x) fabs(x)
#endif

#endif
