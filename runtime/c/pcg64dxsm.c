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

/* One step is x -> a x + c; `count` of them are x -> A x + C, by squaring (Brown, "Random number generation with
 * arbitrary strides", 1994). */
void ulam_pcg_jump(ulam_pcg *generator, uint64_t count) {
  ulam_uint128 multiplier = 0xda942042e4dd58b5u, increment = generator->increment;
  for (int i = 0; i < 64; ++i) {
    increment *= multiplier + 1;
    multiplier *= multiplier;
  }
  ulam_uint128 all_multiplier = 1, all_increment = 0;
  for (; count > 0; count >>= 1) {
    if (count & 1) {
      all_multiplier *= multiplier;
      all_increment = all_increment * multiplier + increment;
    }
    increment *= multiplier + 1;
    multiplier *= multiplier;
  }
  generator->state = all_multiplier * generator->state + all_increment;
  generator->has_kept = 0;
}
