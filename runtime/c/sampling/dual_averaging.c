#include "dual_averaging.h"

#include <math.h>

void ulam_dual_averaging_restart(dual_averaging *state, double step_size) {
  state->mu = log(10 * step_size);
  state->count = state->error_mean = state->log_mean = 0;
}

double ulam_dual_averaging_learn(dual_averaging *state, double accept_stat) {
  state->count += 1;
  double share = 1 / (state->count + state->t0);
  state->error_mean = (1 - share) * state->error_mean + share * (state->delta - accept_stat);
  double tried = state->mu - state->error_mean * sqrt(state->count) / state->gamma;
  double weight = pow(state->count, -state->kappa);
  state->log_mean = (1 - weight) * state->log_mean + weight * tried;
  return exp(tried);
}

double ulam_dual_averaging_mean(const dual_averaging *state) { return exp(state->log_mean); }
