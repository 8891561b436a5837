#include "seed_sequence.h"

enum { pool_size = 4 };

/* The constant is another one for each word. */
static uint32_t hashed(uint32_t word, uint32_t *constant, uint32_t multiplier) {
  word ^= *constant;
  *constant *= multiplier;
  word *= *constant;
  return word ^ word >> 16;
}

static uint32_t mixed(uint32_t a, uint32_t b) {
  uint32_t word = 0xca01f9ddu * a - 0x4973f715u * b;
  return word ^ word >> 16;
}

static void fill_pool(const uint32_t *entropy, int64_t count, uint32_t pool[pool_size]) {
  const uint32_t multiplier = 0x931e8875u;
  uint32_t constant = 0x43b0d7e5u;
  for (int64_t k = 0; k < pool_size; ++k) pool[k] = hashed(k < count ? entropy[k] : 0, &constant, multiplier);
  for (int from = 0; from < pool_size; ++from)
    for (int to = 0; to < pool_size; ++to)
      if (from != to) pool[to] = mixed(pool[to], hashed(pool[from], &constant, multiplier));
  for (int64_t k = pool_size; k < count; ++k)
    for (int to = 0; to < pool_size; ++to) pool[to] = mixed(pool[to], hashed(entropy[k], &constant, multiplier));
}

void ulam_seed_words(const uint32_t *entropy, int64_t count, uint64_t words[4]) {
  const ulam_uint128 multiplier = (ulam_uint128)0x2360ed051fc65da4u << 64 | 0x4385df649fccf645u; /* PCG64's */
  uint32_t pool[pool_size], constant = 0x8b51f9ddu;
  uint64_t seeds[4];
  fill_pool(entropy, count, pool);
  for (int k = 0; k < 4; ++k) {
    uint64_t low = hashed(pool[2 * k % pool_size], &constant, 0x58f38dedu);
    seeds[k] = low | (uint64_t)hashed(pool[(2 * k + 1) % pool_size], &constant, 0x58f38dedu) << 32;
  }
  ulam_uint128 first = (ulam_uint128)seeds[0] << 64 | seeds[1];
  ulam_uint128 increment = ((ulam_uint128)seeds[2] << 64 | seeds[3]) << 1 | 1;
  ulam_uint128 state = (increment + first) * multiplier + increment;
  words[0] = (uint64_t)(state >> 64);
  words[1] = (uint64_t)state;
  words[2] = (uint64_t)(increment >> 64);
  words[3] = (uint64_t)increment;
}

void ulam_pcg_seed(ulam_pcg *generator, uint64_t seed, uint64_t stream) {
  const uint64_t numbers[2] = {seed, stream};
  uint32_t entropy[4];
  uint64_t words[4];
  int64_t count = 0;
  for (int k = 0; k < 2; ++k) {
    entropy[count++] = (uint32_t)numbers[k];
    if (numbers[k] >> 32) entropy[count++] = (uint32_t)(numbers[k] >> 32);
  }
  ulam_seed_words(entropy, count, words);
  ulam_pcg_begin(generator, words);
}
