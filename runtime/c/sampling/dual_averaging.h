/* Adaptation of the step size: Nesterov's dual averaging of its logarithm, so that the acceptance statistic comes to be
 * `delta`. Hoffman and Gelman, "The No-U-Turn Sampler" (JMLR 15, 2014), section 3.2 and algorithm 6; parameters by the
 * names of the Stan Reference Manual, "Automatic parameter tuning".
 */
#ifndef ULAM_DUAL_AVERAGING_H
#define ULAM_DUAL_AVERAGING_H

#include <stdint.h>

#include "context.h"

typedef struct {
  double delta, gamma, kappa, t0;
  double mu;          /* what the logarithm is drawn to */
  double count;       /* of steps learned from */
  double error_mean;  /* of delta - acceptance statistic */
  double log_mean;    /* of the logarithm of the step size */
} dual_averaging;

/* From now on; steps are drawn to ten times `step_size`. */
ULAM_API void ulam_dual_averaging_restart(dual_averaging *state, double step_size);
/* The next step size to try. */
ULAM_API double ulam_dual_averaging_learn(dual_averaging *state, double accept_stat);
/* What it has come to. */
ULAM_API double ulam_dual_averaging_mean(const dual_averaging *state);

#endif
