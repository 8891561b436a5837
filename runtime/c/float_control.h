#ifndef ULAM_FLOAT_CONTROL_H
#define ULAM_FLOAT_CONTROL_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* Rounding mode and masks of exceptions, as the thread has them. */
static inline uint64_t float_control(void) {
#if defined(__x86_64__)
  uint16_t x87;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return (uint64_t)x87 << 32 | (_mm_getcsr() & ~0x3fu); /* the lowest bits are flags of what has happened */
#elif defined(__aarch64__)
  uint64_t value;
  __asm__ volatile("mrs %0, fpcr" : "=r"(value));
  return value;
#else
  return 0;
#endif
}

#endif
