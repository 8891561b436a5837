#define _GNU_SOURCE
#include "profile_times.h"

/* How long a thread may run between readings of its clock, and what is too short to be a wait, in nanoseconds. */
enum { SLICE = 50000, SHORTEST_WAIT = 5000 };

static int64_t nanoseconds(clockid_t id) {
  struct timespec now;
  if (clock_gettime(id, &now) != 0) return 0;
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

static int64_t slice_ticks(void) {
#if defined(__x86_64__)
  return 1 << 17; /* 33 to 130 microseconds, at 1 to 4 GHz */
#elif defined(__aarch64__)
  int64_t frequency;
  __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(frequency));
  return frequency / (1000000000 / SLICE);
#else
  return SLICE;
#endif
}

void ulam_thread_clock_watch(ulam_thread_clock *clock, int64_t thread) {
  clock->thread = thread;
  clock->slice = slice_ticks();
  clock->lost = 0;
  clock->processor = nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  clock->wall = nanoseconds(CLOCK_MONOTONIC);
  clock->ticks = ulam_read_ticks();
}

void ulam_thread_clock_read(ulam_thread_clock *clock) {
  int64_t processor = nanoseconds(CLOCK_THREAD_CPUTIME_ID), wall = nanoseconds(CLOCK_MONOTONIC);
  int64_t ticks = ulam_read_ticks();
  int64_t passed = wall - clock->wall, waited = passed - (processor - clock->processor);
  if (waited > SHORTEST_WAIT && passed > 0)
    clock->lost += (int64_t)((double)waited * ((double)(ticks - clock->ticks) / (double)passed));
  clock->wall = wall;
  clock->processor = processor;
  clock->ticks = ticks;
}

void ulam_outliers(const ulam_sweep_times *times, int64_t *passes, int64_t *ticks) {
  int64_t all = 0;
  *passes = *ticks = 0;
  for (int i = 0; i < LENGTH_CLASSES; ++i) all += times->lengths[i].passes;
  if (all < FEWEST_PASSES) return;
  int64_t below = all - (all >= 100 ? all / 100 : 1), seen = 0;
  int class = 0;
  while (seen + times->lengths[class].passes < below) seen += times->lengths[class++].passes;
  int64_t usual = times->lengths[class].ticks / times->lengths[class].passes;
  for (int first = ulam_length_class(OUTLIER_FACTOR * usual) + 1; first < LENGTH_CLASSES; ++first) {
    *passes += times->lengths[first].passes;
    *ticks += times->lengths[first].ticks - times->lengths[first].passes * usual;
  }
}
