#include "static_hmc.h"

#include <math.h>

int static_hmc_begin(static_hmc *state, hamiltonian *system, vector_store *store, double max_energy_error) {
  state->system = system;
  state->max_energy_error = max_energy_error;
  double **vectors[] = {&state->q, &state->p, &state->g, &state->v, &state->w};
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; ++i)
    if ((*vectors[i] = vector_new(store, system->n)) == NULL) return 0;
  return 1;
}

transition static_hmc_transition(static_hmc *state, ulam_pcg *generator, double step, int64_t steps, double *q,
                                 double *g, double lp) {
  hamiltonian *system = state->system;
  phase_point z = {.q = q, .p = state->p, .g = g, .v = state->v, .w = state->w, .lp = lp};
  transition found = {0};
  metric_draw_momentum(&system->metric, generator, z.p);
  set_momentum(system, &z);
  const double start = z.energy;
  found.lp = lp;
  found.energy = start;
  for (; found.leapfrogs < steps && !found.divergent; ++found.leapfrogs) {
    leapfrog(system, &z, state->q, state->p, state->g, state->v, step);
    found.divergent = !(start - z.energy >= -state->max_energy_error && start - z.energy < INFINITY);
  }
  double ratio = found.divergent ? 0 : exp(start - z.energy);
  found.accept_stat = ratio < 1 ? ratio : 1;
  if (ulam_pcg_uniform(generator) >= ratio) return found;
  vector_copy(q, state->q, system->n);
  vector_copy(g, state->g, system->n);
  found.lp = z.lp;
  found.energy = z.energy;
  return found;
}
