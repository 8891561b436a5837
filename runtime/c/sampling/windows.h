/* When the metric is adapted: the windows of warmup, Stan Reference Manual, "Automatic parameter tuning".
 *
 * `init_buffer` iterations in the beginning and `term_buffer` in the end adapt the step size alone. Between them are
 * windows, the first one `window` long, each twice as long as the one before; the last one takes what would be too short
 * for another one. If the warmup is too short for all three they are 15%, 75% and 10% of it, and if it is shorter than
 * 20 the metric is not adapted.
 */
#ifndef ULAM_SAMPLING_WINDOWS_H
#define ULAM_SAMPLING_WINDOWS_H

#include <stdint.h>

#include "context.h"

typedef struct {
  int64_t begin, end; /* of all windows: iterations of warmup, from 0 */
  int64_t size, last; /* of the current window: its length, and its last iteration */
} warmup_windows;

enum { WINDOW_OUTSIDE = 0, WINDOW_INSIDE = 1, WINDOW_ENDS = 2 };

ULAM_API void ulam_windows_begin(warmup_windows *windows, int64_t warmup, int64_t init_buffer, int64_t term_buffer,
                                 int64_t window);
/* Where the iteration stands; they are asked for one after the other. */
ULAM_API int32_t ulam_windows_at(warmup_windows *windows, int64_t iteration);

#endif
