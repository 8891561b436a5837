/* The generator PCG64DXSM, with the numbers of NumPy's class of that name.
 *
 * O'Neill, "PCG: A family of simple fast space-efficient statistically good algorithms for random number generation"
 * (2014): a linear congruential generator of 128 bits; the output function DXSM and the multiplier of 64 bits are those
 * of PCG's later version.
 */
#ifndef ULAM_PCG64DXSM_H
#define ULAM_PCG64DXSM_H

#include <stdint.h>

#include "context.h"
#include "numpy/random/bitgen.h"

__extension__ typedef unsigned __int128 ulam_uint128;

typedef struct {
  ulam_uint128 state, increment;
  uint64_t kept; /* the upper half of a number of which the lower one was given out */
  int32_t has_kept;
  bitgen_t interface; /* what NumPy's distributions draw from: `ulam_pcg_begin` ties it to this place in memory */
} ulam_pcg;

/* `words`: the state and the increment, the upper half of each first: what NumPy makes of a seed. */
void ulam_pcg_begin(ulam_pcg *generator, const uint64_t words[4]);

/* Goes on by `count` times J numbers, as NumPy's `jumped` does: J is 2^128 over the golden ratio, so that the places
 * reached lie far apart, and odd, so that their lower halves have nothing in common. */
void ulam_pcg_jump(ulam_pcg *generator, uint64_t count);

static inline uint64_t ulam_pcg_next(ulam_pcg *generator) {
  const uint64_t multiplier = 0xda942042e4dd58b5u;
  uint64_t high = (uint64_t)(generator->state >> 64), low = (uint64_t)generator->state | 1;
  generator->state = generator->state * multiplier + generator->increment;
  high ^= high >> 32;
  high *= multiplier;
  high ^= high >> 48;
  return high * low;
}

/* In [0, 1). */
static inline double ulam_pcg_uniform(ulam_pcg *generator) {
  return (double)(ulam_pcg_next(generator) >> 11) * 0x1p-53;
}

/* The next `count` numbers between two bounds, as NumPy's `uniform` makes them, of the generator that has the state and
 * the increment `words`, which goes on. */
ULAM_API void ulam_uniform_numbers(uint64_t words[4], double low, double high, int64_t count, double *numbers);

#endif
