#include "hamiltonian.h"

#include <math.h>

double evaluate(hamiltonian *h, const double *q, double *g) {
  ++h->gradients;
  int32_t status = ulam_run_gradient(h->ctx, h->entry, h->bound, q, g, 1);
  if (__builtin_expect(status == ULAM_OK, 1)) return h->ctx->value;
  if (status == ULAM_STOPPED) {
    h->status = ULAM_STOPPED;
    return -INFINITY;
  }
  failed_evaluations *failed = &h->failed;
  if (status == ULAM_FATAL) {
    h->status = ULAM_FATAL;
    if (failed->kept > 0 && failed->kept == failed->capacity) --failed->kept; /* this one says why the run ends */
  }
  ++failed->count;
  if (failed->kept < failed->capacity) {
    failed->statuses[failed->kept] = status;
    failed->sites[failed->kept] = h->ctx->error_site;
    memcpy(failed->points + failed->kept * h->n, q, (size_t)h->n * sizeof(double));
    ++failed->kept;
  }
  return -INFINITY;
}

/* The two parts of a step around the gradient. The first: half of the momentum's, and the position's. */
ULAM_CLONES static void begin_diagonal(const phase_point *z, const double *inverse, int64_t groups, double step,
                                       double *q, double *p) {
  const double half = 0.5 * step;
  for (int64_t k = 0; k < groups; ++k) {
    const lanes momentum = in_lanes(z->p)[k] + half * in_lanes(z->g)[k];
    to_lanes(p)[k] = momentum;
    to_lanes(q)[k] = in_lanes(z->q)[k] + step * (in_lanes(inverse)[k] * momentum);
  }
}

/* The second: the other half, the velocity; returns twice the kinetic energy. */
ULAM_CLONES static double end_diagonal(const double *g, const double *inverse, int64_t groups, double step, double *p,
                                       double *v) {
  const double half = 0.5 * step;
  lanes sum = {0};
  for (int64_t k = 0; k < groups; ++k) {
    const lanes momentum = in_lanes(p)[k] + half * in_lanes(g)[k], velocity = in_lanes(inverse)[k] * momentum;
    to_lanes(p)[k] = momentum;
    to_lanes(v)[k] = velocity;
    sum += momentum * velocity;
  }
  return SUM_OF_LANES(sum);
}

/* The same with w = M^-1 g at hand: one product with the matrix for each step. */
ULAM_CLONES static void begin_dense(const phase_point *z, int64_t groups, double step, double *q, double *p,
                                    double *v) {
  const double half = 0.5 * step;
  for (int64_t k = 0; k < groups; ++k) {
    const lanes velocity = in_lanes(z->v)[k] + half * in_lanes(z->w)[k];
    to_lanes(p)[k] = in_lanes(z->p)[k] + half * in_lanes(z->g)[k];
    to_lanes(v)[k] = velocity;
    to_lanes(q)[k] = in_lanes(z->q)[k] + step * velocity;
  }
}

ULAM_CLONES static double end_dense(const double *g, const double *w, int64_t groups, double step, double *p,
                                    double *v) {
  const double half = 0.5 * step;
  lanes sum = {0};
  for (int64_t k = 0; k < groups; ++k) {
    const lanes momentum = in_lanes(p)[k] + half * in_lanes(g)[k], velocity = in_lanes(v)[k] + half * in_lanes(w)[k];
    to_lanes(p)[k] = momentum;
    to_lanes(v)[k] = velocity;
    sum += momentum * velocity;
  }
  return SUM_OF_LANES(sum);
}

void set_momentum(const hamiltonian *h, phase_point *z) {
  const metric *m = &h->metric;
  if (m->kind == METRIC_DENSE) {
    metric_multiply(m, z->p, z->v);
    metric_multiply(m, z->g, z->w);
  } else {
    for (int64_t i = 0; i < h->n; ++i) z->v[i] = m->inverse[i] * z->p[i];
  }
  z->energy = 0.5 * lanes_dot(z->p, z->v, groups_of(h->n)) - z->lp;
}

void leapfrog(hamiltonian *h, phase_point *z, double *q, double *p, double *g, double *v, double step) {
  const metric *m = &h->metric;
  const int64_t groups = groups_of(h->n);
  double squares;
  if (m->kind == METRIC_DENSE)
    begin_dense(z, groups, step, q, p, v);
  else
    begin_diagonal(z, m->inverse, groups, step, q, p);
  z->lp = evaluate(h, q, g);
  if (m->kind == METRIC_DENSE) {
    metric_multiply(m, g, z->w);
    squares = end_dense(g, z->w, groups, step, p, v);
  } else {
    squares = end_diagonal(g, m->inverse, groups, step, p, v);
  }
  z->q = q;
  z->p = p;
  z->g = g;
  z->v = v;
  z->energy = 0.5 * squares - z->lp;
}
