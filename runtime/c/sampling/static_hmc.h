/* Hamiltonian Monte Carlo with trajectories of a fixed length in time, the end accepted by Metropolis' rule.
 *
 * Neal, "MCMC using Hamiltonian dynamics" (2011); Stan Reference Manual, "Hamiltonian Monte Carlo".
 */
#ifndef ULAM_SAMPLING_STATIC_HMC_H
#define ULAM_SAMPLING_STATIC_HMC_H

#include "nuts.h"

typedef struct {
  hamiltonian *system;
  double max_energy_error;
  double *q, *p, *g, *v, *w;
} static_hmc;

int static_hmc_begin(static_hmc *state, hamiltonian *system, vector_store *store, double max_energy_error);

/* One transition of `steps` steps from q, whose log density is `lp` and its gradient g, which the new ones replace. */
transition static_hmc_transition(static_hmc *state, ulam_pcg *generator, double step, int64_t steps, double *q,
                                 double *g, double lp);

#endif
