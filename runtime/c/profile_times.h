/* Times of passes through profile regions: of the processor, not on the clock; and without outliers.
 *
 * Ticks are read at each begin and end, which is cheap and counts the time of other programs, too. The kernel's count of
 * the thread's own time is dear (a system call), so it is read only where more than `PROFILE_SLICE` has gone by since it
 * was read last: then a thread may have waited for a processor. What it waited is `lost`, and is taken off the pass that
 * ends there.
 *
 * What the kernel does not see (a host that runs other machines, a page that is mapped for the first time) still makes
 * single passes long. So passes are counted in classes of their length, and those that took `OUTLIER_FACTOR` times as
 * long as 99 of 100 (at least as all but one) count as such a one. */
#ifndef ULAM_PROFILE_TIMES_H
#define ULAM_PROFILE_TIMES_H

#include <stdint.h>
#include <time.h>

enum { LENGTH_CLASSES = 160, OUTLIER_FACTOR = 10, FEWEST_PASSES = 10 };

static inline int64_t ulam_read_ticks(void) {
#if defined(__x86_64__)
  return (int64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  int64_t value;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
#endif
}

/* The passes of a region in one sweep. */
typedef struct {
  int64_t wall, ticks; /* on the clock; of the processor */
  struct {
    int64_t passes, ticks;
  } lengths[LENGTH_CLASSES]; /* four classes for each doubling */
} ulam_sweep_times;

/* Where a thread's two clocks were read last. */
typedef struct {
  int64_t thread;
  int64_t ticks, wall, processor; /* the latter two in nanoseconds */
  int64_t lost;                   /* ticks on the clock without a processor, since the thread began to be watched */
  int64_t slice;                  /* how many ticks may go by between readings */
} ulam_thread_clock;

void ulam_thread_clock_watch(ulam_thread_clock *clock, int64_t thread);
void ulam_thread_clock_read(ulam_thread_clock *clock);

/* The time, and what was lost by then. A thread that waits often begins to as it asks for its clock; so the time is that
 * after the answer, and the wait is in both. */
static inline int64_t ulam_moment(ulam_thread_clock *clock, int64_t *lost) {
  int64_t now = ulam_read_ticks();
  if (now - clock->ticks > clock->slice) {
    ulam_thread_clock_read(clock);
    now = clock->ticks;
  }
  *lost = clock->lost;
  return now;
}

static inline int ulam_length_class(int64_t ticks) {
  if (ticks < 8) return ticks < 0 ? 0 : (int)ticks / 2;
  int exponent = 63 - __builtin_clzll((unsigned long long)ticks);
  int class = 4 * (exponent - 2) + (int)((ticks >> (exponent - 2)) & 3);
  return class < LENGTH_CLASSES ? class : LENGTH_CLASSES - 1;
}

static inline void ulam_count_pass(ulam_sweep_times *times, int64_t wall, int64_t lost) {
  int64_t ticks = lost <= 0 ? wall : lost < wall ? wall - lost : 0;
  int class = ulam_length_class(ticks);
  times->wall += wall;
  times->ticks += ticks;
  times->lengths[class].passes += 1;
  times->lengths[class].ticks += ticks;
}

/* How many passes are outliers, and by how much they were longer than they count. */
void ulam_outliers(const ulam_sweep_times *times, int64_t *passes, int64_t *ticks);

#endif
