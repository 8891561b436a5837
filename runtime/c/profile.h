/* The profiler: what `profile("name") { ... }` measures. A profile belongs to a context; in it, each thread has a tree of
 * regions for each phase. A region's time is counted in ticks of the cycle counter (profile_times.h). */
#ifndef ULAM_PROFILE_H
#define ULAM_PROFILE_H

#include "context.h"

typedef struct ulam_profile ulam_profile;

enum { ULAM_PROFILE_GRADIENT = 1, ULAM_PROFILE_REVERSE = 2 }; /* `kind` below, as bits */

/* What emitted code calls. `named` is the number of the first region of the same name. `begin` returns 0, with a message
 * in the context, if the name is active from another region. */
ULAM_API int32_t ulam_profile_begin(ulam_context *ctx, int32_t region, int32_t named, int32_t kind);
ULAM_API void ulam_profile_end(ulam_context *ctx, int32_t region, int32_t named, int32_t kind);
ULAM_API void ulam_profile_entries(ulam_context *ctx, int64_t kept, int64_t others);
ULAM_API void ulam_profile_step(ulam_context *ctx, int32_t failed); /* of a solver */

/* A profile for a context, which owns it. `events`: how many of the last passes are kept one by one. */
ULAM_API int32_t ulam_profile_attach(ulam_context *ctx, int64_t events);
ULAM_API void ulam_profile_set_phase(ulam_context *ctx, int32_t phase);
ULAM_API void ulam_profile_reset(ulam_context *ctx);

/* One node of a tree, in an order in which parents come first. The root of each (region -1, no parent) has the time of
 * whole evaluations, and their number as passes. Ticks of sweeps are the processor's, and outliers count in them as usual
 * passes do: `outlier_ticks` were taken off. */
typedef struct {
  int64_t thread, phase, parent; /* parent: index of a row, or -1 */
  int64_t region;
  int64_t passes, gradient_passes;
  int64_t forward_ticks, reverse_ticks;
  int64_t wall_ticks; /* of both sweeps, on the clock */
  int64_t outlier_passes, outlier_ticks;
  int64_t kept, others;
  int64_t steps, failed_steps;
} ulam_profile_row;

/* One pass through a region. */
typedef struct {
  int64_t thread, phase, region, reverse, start, ticks;
} ulam_profile_event;

ULAM_API int64_t ulam_profile_rows(const ulam_context *ctx, ulam_profile_row *rows, int64_t capacity);
ULAM_API int64_t ulam_profile_events(const ulam_context *ctx, ulam_profile_event *events, int64_t capacity);

ULAM_API int64_t ulam_ticks(void);
ULAM_API double ulam_seconds_per_tick(void); /* against the monotonic clock; takes some milliseconds once */
/* Ticks that a pair of begin and end takes: of those, `inside` are counted as time of the region. */
ULAM_API void ulam_profile_overhead(ulam_context *ctx, double *inside, double *outside);

/* Around an evaluation. */
void ulam_profile_enter(ulam_profile *profile);
void ulam_profile_leave(ulam_profile *profile, int32_t status);
void ulam_profile_free(ulam_profile *profile);

#endif
