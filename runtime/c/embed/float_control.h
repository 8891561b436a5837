/* Callers' threads may take subnormal numbers for zero, as those of XLA do, or round in other ways: not in our code, whose
 * results are the same everywhere. */
#ifndef ULAM_FLOAT_CONTROL_H
#define ULAM_FLOAT_CONTROL_H

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

typedef uint64_t float_control;

enum { USUAL_MXCSR = 0x1f80, MXCSR_FLAGS = 0x3f };

/* What was set before; from here on it is what C begins with. */
static inline float_control set_usual_float_control(void) {
#if defined(__x86_64__)
  const uint32_t found = _mm_getcsr();
  if (__builtin_expect((found & ~(uint32_t)MXCSR_FLAGS) != USUAL_MXCSR, 0)) _mm_setcsr(USUAL_MXCSR);
  return found;
#elif defined(__aarch64__)
  uint64_t found;
  __asm__ volatile("mrs %0, fpcr" : "=r"(found));
  if (found) __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0));
  return found;
#else
  return 0;
#endif
}

static inline void restore_float_control(float_control found) {
#if defined(__x86_64__)
  if (__builtin_expect(((uint32_t)found & ~(uint32_t)MXCSR_FLAGS) != USUAL_MXCSR, 0)) _mm_setcsr((uint32_t)found);
#elif defined(__aarch64__)
  if (found) __asm__ volatile("msr fpcr, %0" : : "r"(found));
#else
  (void)found;
#endif
}

#endif
