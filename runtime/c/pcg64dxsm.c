#include "pcg64dxsm.h"

static uint64_t next_uint64(void *state) { return ulam_pcg_next(state); }

static double next_double(void *state) { return ulam_pcg_uniform(state); }

static uint32_t next_uint32(void *state) {
  ulam_pcg *generator = state;
  if (generator->has_kept) {
    generator->has_kept = 0;
    return (uint32_t)generator->kept;
  }
  uint64_t number = ulam_pcg_next(generator);
  generator->has_kept = 1;
  generator->kept = number >> 32;
  return (uint32_t)number;
}

void ulam_pcg_begin(ulam_pcg *generator, const uint64_t words[4]) {
  generator->state = (ulam_uint128)words[0] << 64 | words[1];
  generator->increment = (ulam_uint128)words[2] << 64 | words[3];
  generator->kept = 0;
  generator->has_kept = 0;
  generator->interface.state = generator;
  generator->interface.next_uint64 = next_uint64;
  generator->interface.next_uint32 = next_uint32;
  generator->interface.next_double = next_double;
  generator->interface.next_raw = next_uint64;
}

/* One step is x -> a x + c; J of them are x -> a^J x + c (1 + a + a^2 + ...), of which the two factors are constant;
 * then `count` of those, by squaring (Brown, "Random number generation with arbitrary strides", 1994). */
void ulam_pcg_jump(ulam_pcg *generator, uint64_t count) {
  const ulam_uint128 powers = (ulam_uint128)0x393f1824ee36cceu << 64 | 0x4dafdefa8c2d67du;
  ulam_uint128 multiplier = (ulam_uint128)0x6445a8b93f375e9u << 64 | 0xaac611fa20a2c7e5u;
  ulam_uint128 increment = generator->increment * powers;
  for (; count > 0; count >>= 1) {
    if (count & 1) generator->state = generator->state * multiplier + increment;
    increment *= multiplier + 1;
    multiplier *= multiplier;
  }
  generator->has_kept = 0;
}

void ulam_uniform_numbers(uint64_t words[4], double low, double high, int64_t count, double *numbers) {
  ulam_pcg generator;
  ulam_pcg_begin(&generator, words);
  for (int64_t k = 0; k < count; ++k) numbers[k] = low + (high - low) * ulam_pcg_uniform(&generator);
  words[0] = (uint64_t)(generator.state >> 64);
  words[1] = (uint64_t)generator.state;
}
