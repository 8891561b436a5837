/* The No-U-Turn sampler with multinomial sampling of a trajectory's points.
 *
 * Hoffman and Gelman, "The No-U-Turn Sampler" (JMLR 15, 2014): doubling. Betancourt, "A Conceptual Introduction to
 * Hamiltonian Monte Carlo" (2017), appendix A: the generalised criterion, multinomial sampling within subtrees and
 * progressive sampling, biased towards the new half, between them. The criterion is also demanded across the two halves
 * of each tree, as in Stan (Stan Reference Manual, "MCMC sampling").
 */
#ifndef ULAM_SAMPLING_NUTS_H
#define ULAM_SAMPLING_NUTS_H

#include "hamiltonian.h"

/* A part of a trajectory: both of its ends, the sum of its momenta, a point that was sampled from it. Of a single point
 * `p_begin` and `v_begin` are also those of the end, and `p_begin` is the sum. `begin` is where its growth began: when it
 * grew backwards, that is the later end. Each vector belongs to one tree; trees exchange them. */
typedef struct {
  double *p_begin, *v_begin, *p_end, *v_end, *momenta;
  double *q, *g;       /* the sampled point */
  double lp, energy;   /* its log density and energy */
  double weight;       /* sum of exp(-energy) of all points, relative to `nuts.scale` */
} tree;

/* An end of the whole trajectory, from which it may grow. */
typedef struct {
  double *q, *g, *w;
} trajectory_end;

typedef struct {
  hamiltonian *system;
  vector_store *store;
  tree whole;
  trajectory_end ends[2]; /* where `whole` begins, and where it ends */
  tree **parts;           /* by depth; the last one is at work */
  int64_t parts_made;
  int32_t max_depth;
  double max_energy_error;
  double scale;           /* logarithm of what weights are multiples of */
  phase_point at;         /* the last point of the part that is growing */
} nuts;

typedef struct {
  double accept_stat, energy, lp;
  int64_t depth, leapfrogs;
  int32_t divergent;
} transition;

int nuts_begin(nuts *state, hamiltonian *system, vector_store *store, int32_t max_depth, double max_energy_error);

/* One transition from q, whose log density is `lp` and its gradient g; the new point is written there. */
transition nuts_transition(nuts *state, ulam_pcg *generator, double step, double *q, double *g, double lp);

/* The criterion between two trees that lie side by side, b behind a, and whether their momenta's sum, written to `sum`,
 * points away from both ends. For `single` points. */
int32_t turns(const tree *a, const tree *b, int32_t single, int64_t groups, double *sum);

#endif
