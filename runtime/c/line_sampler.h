/* Sampling by program counter: which instructions of compiled programs take a thread's time. See sampler.c. */
#ifndef ULAM_SAMPLER_H
#define ULAM_SAMPLER_H

#include "context.h"

/* Code of a compiled program that is sampled. */
typedef struct {
  uint64_t start, end;
} ulam_code_range;

/* What was counted at one place; `place` as the sampler keeps it, see below. */
typedef struct {
  uint64_t place;
  int64_t count;
} ulam_sample;

/* A place is an address within a range. ULAM_SAMPLE_CALLED is added where that is not the instruction itself, but the
 * call of a C function that was running. Two places are no address: the thread evaluated, but its place is not known;
 * it did not evaluate. */
#define ULAM_SAMPLE_CALLED ((uint64_t)1 << 63)
#define ULAM_SAMPLE_UNKNOWN ((uint64_t)1)
#define ULAM_SAMPLE_OUTSIDE ((uint64_t)2)

/* 0, or an errno; ENOSYS where there is no sampler. */
ULAM_API int32_t ulam_sampler_add(uint64_t start, uint64_t end);
ULAM_API void ulam_sampler_remove(uint64_t start);
ULAM_API int32_t ulam_sampler_ranges(void); /* how many there are */
/* Samples every thread that evaluates from now on, every `interval` nanoseconds of its running time. */
ULAM_API int32_t ulam_sampler_start(int64_t interval);
ULAM_API void ulam_sampler_stop(void);
/* Writes at most `capacity` samples; returns how many there are. `lost`: for which there was no room. */
ULAM_API int64_t ulam_sampler_read(ulam_sample *samples, int64_t capacity, int64_t *lost);

/* For RUN in context.c: evaluations begin and end, at an address of their frame. Of nested ones the outermost counts,
 * for which `enter` returns 1. */
extern int32_t ulam_sampling;
int ulam_sampler_enter(const void *frame);
void ulam_sampler_leave(void);

#endif
