/* The Hamiltonian system: minus the log density is the potential energy. Leapfrog steps.
 *
 * Betancourt, "A Conceptual Introduction to Hamiltonian Monte Carlo" (2017), sections 3 and 5; Stan Reference Manual,
 * "Hamiltonian Monte Carlo".
 */
#ifndef ULAM_SAMPLING_HAMILTONIAN_H
#define ULAM_SAMPLING_HAMILTONIAN_H

#include "metric.h"

/* Log densities that could not be evaluated: kept until they are read, their statuses, sites and points. */
typedef struct {
  int64_t count, kept, capacity;
  int32_t *statuses;
  int64_t *sites; /* of the unit's table */
  double *points; /* n numbers each */
} failed_evaluations;

typedef struct {
  ulam_context *ctx;
  void *entry, *bound;
  int64_t n;
  metric metric;
  int32_t status; /* why the run is to end: ULAM_OK, ULAM_FATAL, ULAM_STOPPED */
  int64_t gradients;
  failed_evaluations failed;
} hamiltonian;

/* The log density at q, and its gradient g; not finite where there is none. */
double evaluate(hamiltonian *h, const double *q, double *g);

/* A state: vectors may be those of several owners. `w` = M^-1 g, for a dense metric only. */
typedef struct {
  double *q, *p, *g, *v, *w;
  double lp, energy;
} phase_point;

/* v and the energy, from p; the log density and its gradient are known. */
void set_momentum(const hamiltonian *h, phase_point *z);

/* One step of size `step` from z: q, p, g and v of `to` are written, w in place; then z is there. The two may share
 * q, p and v. */
void leapfrog(hamiltonian *h, phase_point *z, double *q, double *p, double *g, double *v, double step);

#endif
