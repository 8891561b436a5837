/* Parts of the sampler one by one, for tests and measurements. */
#ifndef ULAM_SAMPLING_TRIAL_H
#define ULAM_SAMPLING_TRIAL_H

#include "context.h"

/* `steps` leapfrog steps from q with momentum p (n numbers each), which the last ones replace; `energies` has room for
 * one more than that. `metric` and `inverse` are as of a chain. */
ULAM_API int32_t ulam_try_leapfrog(ulam_context *ctx, void *entry, void *bound, int64_t n, int64_t metric,
                                   const double *inverse, double step, int64_t steps, double *q, double *p,
                                   double *energies);

/* The depth of the first part of a trajectory that turns, or 0: of 2^depth points, with rows of momenta and velocities. */
ULAM_API int64_t ulam_try_turns(int64_t n, int64_t depth, const double *momenta, const double *velocities);

/* The inverse metric, of n or n * n numbers, that is learned of `count` rows of draws. Returns 1, or -1 if it is not
 * finite and positive definite. */
ULAM_API int32_t ulam_try_metric(int64_t n, int64_t metric, int64_t count, const double *draws, double *inverse);

/* `count` numbers of the generator, after a jump: as 64 bits, and as uniform ones. */
ULAM_API void ulam_try_generator(const uint64_t words[4], uint64_t jumps, int64_t count, uint64_t *bits,
                                 double *uniform);

#endif
