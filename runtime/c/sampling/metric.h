/* Euclidean metrics: the inverse of the mass matrix, diagonal or dense, momenta of it, and its estimates from draws.
 *
 * Betancourt, "A Conceptual Introduction to Hamiltonian Monte Carlo" (2017), section 4.2; Stan Reference Manual,
 * "Automatic parameter tuning": sample variances or covariances by Welford's recurrence, shrunk towards 1e-3.
 */
#ifndef ULAM_SAMPLING_METRIC_H
#define ULAM_SAMPLING_METRIC_H

#include "pcg64dxsm.h"
#include "vectors.h"

enum { METRIC_UNIT = 0, METRIC_DIAGONAL = 1, METRIC_DENSE = 2 };

typedef struct {
  int64_t n;
  int32_t kind;
  int64_t stride;   /* of rows of matrices */
  double *inverse;  /* n numbers; dense: n rows */
  double *scale;    /* momenta are these times normal numbers; dense: the Cholesky factor of the inverse, by rows */
  /* the estimate: */
  double count;
  double *mean, *squares; /* sums of squared differences from the mean; dense: of products, the lower triangle */
  double *difference;     /* dense: scratch */
} metric;

/* `inverse`: n numbers, or n * n; NULL: the identity. 0: out of memory, -1: not positive definite, or not finite. */
int metric_begin(metric *m, vector_store *store, int64_t n, int32_t kind, const double *inverse);

void metric_draw_momentum(const metric *m, ulam_pcg *generator, double *p);
/* v := M^-1 p for a dense metric. */
void metric_multiply(const metric *m, const double *p, double *v);

void metric_learn(metric *m, const double *q);
/* The estimate becomes the metric, and a new one begins. Returns as metric_begin. */
int metric_update(metric *m);

/* Copies the inverse, of n or n * n numbers, out. */
void metric_read(const metric *m, double *inverse);

#endif
