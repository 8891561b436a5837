/* What a library that `ulam build` makes of a Stan program has beside BridgeStan's functions: its log density as a
 * callback for other people's algorithms, and ulam's sampler.
 *
 *     bs_model *model = bs_model_construct("data.json", 1, &error);
 *     ulam_sample_options options = ULAM_SAMPLE_OPTIONS;
 *     ulam_sample_output output = ULAM_SAMPLE_OUTPUT;
 *     options.seed = 7;
 *     output.rows = 1000;
 *     output.values = malloc(4 * 1000 * bs_param_num(model, true, true) * sizeof(double));
 *     if (ulam_sample(model, &options, &output, &error) < 0) puts(error);
 *
 * Errors are told as in bridgestan.h.
 */
#ifndef ULAM_H
#define ULAM_H

#include <stdint.h>

#include "bridgestan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------ the log density as a callback */

/* What the callback returns where it has no gradient. */
enum {
  ULAM_POINT_REJECTED = 1,   /* the log density is not defined there: take another point */
  ULAM_POINT_FATAL = 2,      /* a mistake of the program, at any point: end the run */
  ULAM_POINT_WRONG_SIZE = 5, /* `n` is not the number of unconstrained parameters */
  ULAM_POINT_NO_MEMORY = 6
};

/* The log density at `x`, to `lp`, and its gradient: `n` numbers each. Returns 0, or why not. */
typedef int (*ulam_gradient)(size_t n, const double *x, double *gradient, double *lp, void *user);

/* The log density of a model, up to a constant, as a function, and what that wants as its last argument: both may be
 * used as long as the model lives, by any number of threads at once. `jacobian`: of the unconstrained parameters. */
int ulam_native_handle(bs_model *model, bool jacobian, ulam_gradient *function, void **user, char **error);

/* ------------------------------------------------------------ the sampler */

enum { ULAM_SAMPLE_NUTS = 0, ULAM_SAMPLE_HMC = 1 };                               /* `sampler` */
enum { ULAM_SAMPLE_UNIT = 0, ULAM_SAMPLE_DIAG = 1, ULAM_SAMPLE_DENSE = 2 };       /* `metric` */

/* What chains do. The same options and seed give the same draws, bit for bit, as `StanModel.sample` does in Python, on
 * however many threads. Iterations are counted before thinning: each `thin`-th one is kept, from the first on. */
typedef struct {
  size_t size;             /* sizeof(ulam_sample_options): tells which version of this header is meant */
  int32_t chains;          /* 1 or more */
  int32_t warmup;          /* iterations of each chain that adapt step size and metric */
  int32_t draws;           /* iterations of each chain after those */
  int32_t thin;            /* 1 or more */
  int32_t save_warmup;     /* 1: iterations of warmup are kept, too */
  int32_t threads;         /* chains that run at a time; 0: as many as there are processors. With 1 no thread is made */
  uint64_t seed;           /* of all random numbers */
  int32_t sampler;         /* ULAM_SAMPLE_NUTS, or _HMC with trajectories of one length */
  int32_t max_depth;       /* of a tree of NUTS, 1 to 60 */
  double integration_time; /* length of a trajectory of HMC */
  double target_accept;    /* what the step size is adapted to, between 0 and 1; Stan's delta */
  double step_size;        /* to begin with; 0: 1, or better found */
  double step_size_jitter; /* share by which it varies, 0 to 1 */
  double gamma, kappa, t0; /* of the adaptation of the step size */
  int32_t init_buffer, term_buffer, window; /* of the adaptation of the metric: Stan's windows */
  int32_t metric;           /* ULAM_SAMPLE_UNIT, _DIAG or _DENSE */
  const double *inv_metric; /* to begin with: n numbers, or n x n if dense; NULL: the identity */
  double init_radius;       /* chains begin at random points between -radius and radius, unconstrained, */
  const char *init;         /* with these values for some or all parameters: JSON text or a .json file; NULL: none */
  const double *init_points; /* or here: unconstrained, n numbers for each chain; NULL: at random points */
} ulam_sample_options;

/* The defaults. */
#define ULAM_SAMPLE_OPTIONS                                                                                       \
  {                                                                                                               \
    sizeof(ulam_sample_options), 4, 1000, 1000, 1, 0, 0, 1, ULAM_SAMPLE_NUTS, 10, 6.283185307179586, 0.8, 0, 0,   \
        0.05, 0.75, 10, 75, 50, 25, ULAM_SAMPLE_DIAG, NULL, 2, NULL, NULL                                         \
  }

/* The statistics of an iteration, in this order. */
enum {
  ULAM_SAMPLE_LP,
  ULAM_SAMPLE_ACCEPT_STAT,
  ULAM_SAMPLE_STEP_SIZE,
  ULAM_SAMPLE_TREE_DEPTH,
  ULAM_SAMPLE_LEAPFROGS,
  ULAM_SAMPLE_DIVERGENT, /* 0 or 1 */
  ULAM_SAMPLE_ENERGY,
  ULAM_SAMPLE_STATISTICS /* how many there are */
};

/* A draw, while the callback has it. */
typedef struct {
  int32_t chain;               /* from 1 */
  int32_t is_warmup;
  int64_t row;                 /* of the chain, from 0; those of warmup come first */
  const double *values;        /* bs_param_num(model, true, true) numbers; NaN where generated quantities fail */
  const double *unconstrained; /* bs_param_unc_num(model) numbers */
  const double *statistics;    /* ULAM_SAMPLE_STATISTICS numbers */
} ulam_draw;

/* Where draws go: to the arrays that are not NULL, and to the callback if there is one. Arrays have `rows` rows for
 * each chain, chain by chain; of these (draws + thin - 1) / thin are needed, and for warmup that is saved likewise. */
typedef struct {
  size_t size;           /* sizeof(ulam_sample_output) */
  int64_t rows;
  double *values;        /* chains x rows x bs_param_num(model, true, true) */
  double *unconstrained; /* chains x rows x bs_param_unc_num(model) */
  double *statistics;    /* chains x rows x ULAM_SAMPLE_STATISTICS */
  double *step_sizes;    /* chains: after warmup */
  double *inv_metrics;   /* chains x n, or chains x n x n if dense: after warmup */
  /* Called for each draw, by the threads of the chains, by one at a time; blocks of draws come when they are there.
   * Returns 0, or anything else to end the run. */
  int (*callback)(const ulam_draw *draw, void *user);
  void *user;
} ulam_sample_output;

#define ULAM_SAMPLE_OUTPUT {sizeof(ulam_sample_output), 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL}

/* Draws from the posterior. `options` may be NULL, for the defaults. Returns 0; 1 if the callback ended the run; -1 for
 * an error: of the arguments, of finding a first point, or of the program. Arrays are then written in part. */
int ulam_sample(bs_model *model, const ulam_sample_options *options, const ulam_sample_output *output, char **error);

#ifdef __cplusplus
}
#endif

#endif
