/* What this processor says of itself, in numbers that are the same whenever it is asked, on each of its cores.
 *
 * LLVM derives the name and the features that code is made for from the same numbers. To load LLVM only to ask would
 * be a third of a start from the cache, so what it answered is kept there, under these numbers.
 */
#include "context.h"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>

static int64_t add_leaf(uint32_t *words, int64_t count, int64_t room, uint32_t leaf, uint32_t part) {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  __get_cpuid_count(leaf, part, &a, &b, &c, &d); /* zeros where there is no such leaf */
  if (leaf == 1) b = 0; /* which core it is */
  const uint32_t found[4] = {a, b, c, d};
  for (int k = 0; k < 4; ++k)
    if (count + k < room) words[count + k] = found[k];
  return count + 4;
}

int64_t ulam_processor(uint32_t *words, int64_t room) {
  static const uint32_t leaves[][2] = {
      {0, 0},    {1, 0},    {7, 0},          {7, 1},          {0xd, 1},
      {0x14, 0}, {0x19, 0}, {0x1e, 1},       {0x24, 0},       {0x80000001u, 0},
      {0x80000008u, 0},
  };
  int64_t count = 0;
  for (size_t k = 0; k < sizeof leaves / sizeof *leaves; ++k)
    count = add_leaf(words, count, room, leaves[k][0], leaves[k][1]);
  uint32_t a, b, c, d, low = 0, high = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1)) /* which registers the system keeps */
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  if (count < room) words[count] = low;
  if (count + 1 < room) words[count + 1] = high;
  return count + 2;
}
#else
int64_t ulam_processor(uint32_t *words, int64_t room) {
  (void)words, (void)room;
  return 0;
}
#endif
