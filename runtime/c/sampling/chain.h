/* A Markov chain: warmup, in which the step size and the metric are adapted, and draws, which leave in blocks.
 *
 * Nothing here is shared between chains, and nothing depends on how the draws are cut into blocks: a chain's numbers
 * follow from its settings and its first point. A stop (interrupts.h) ends a run at the last iteration that was whole.
 */
#ifndef ULAM_SAMPLING_CHAIN_H
#define ULAM_SAMPLING_CHAIN_H

#include "context.h"

enum { ULAM_SAMPLER_NUTS = 0, ULAM_SAMPLER_STATIC = 1, ULAM_SAMPLER_FIXED = 2 };
enum { ULAM_PHASE_WARMUP = 0, ULAM_PHASE_DRAWS = 1, ULAM_PHASE_DONE = 2 };

/* Why a chain cannot go on, beside the statuses of context.h. */
enum {
  ULAM_CHAIN_NO_MEMORY = 6,
  ULAM_CHAIN_IMPROPER = 8, /* steps of any size are accepted */
  ULAM_CHAIN_NO_STEP = 9,  /* none is */
  ULAM_CHAIN_METRIC = 10   /* the estimate of the metric is not finite, or not positive definite */
};

/* What such a status says; NULL: it is none. */
ULAM_API const char *ulam_chain_problem(int32_t status);

/* What a chain is to do. Iterations are counted before thinning: each `thin`-th one is kept, from the first on. */
typedef struct {
  int64_t n, sampler, metric; /* METRIC_UNIT, ... */
  int64_t warmup, draws, thin, save_warmup, max_depth;
  int64_t init_buffer, term_buffer, window;
  int64_t find_step_size; /* begin with one that is accepted about as often as not */
  int64_t still; /* warmup adapts nothing */
  double delta, gamma, kappa, t0;
  double step_size, step_size_jitter, integration_time, max_energy_error;
  uint64_t generator[4]; /* see ulam_pcg_begin */
} ulam_chain_settings;

/* What can be read of a chain between runs. */
typedef struct {
  int64_t phase, iteration; /* of all, warmup included */
  int64_t depth, divergences, at_max_depth; /* the last two are of draws, not of warmup */
  int64_t gradients, failed; /* evaluations, and those that failed */
  double step_size, lp;
} ulam_chain_state;

/* The numbers that describe an iteration, one row for each draw. */
enum { ULAM_CHAIN_STATISTICS = 7 }; /* lp, accept_stat, stepsize, treedepth, n_leapfrog, divergent, energy */

typedef struct {
  int64_t capacity;  /* draws at most */
  double seconds;    /* wall time after which no further iteration begins */
  double *points;    /* out: rows of n */
  double *statistics; /* out: rows of ULAM_CHAIN_STATISTICS */
  uint64_t *numbers; /* out: of each draw, for ulam_draw_quantities */
  int64_t count;     /* out: draws */
  int64_t failed_kept; /* out: of the evaluations that failed, those with status, site and point */
  const int32_t *failed_statuses;
  const int64_t *failed_sites;
  const double *failed_points;
} ulam_chain_block;

typedef struct ulam_chain ulam_chain;

/* A chain from `point`. `entry` and `bound` are those of a unit with gradients, `ctx` is its own. `inverse_metric`: NULL
 * for the identity. NULL: out of memory, or the metric is not positive definite (*status says which). */
ULAM_API ulam_chain *ulam_chain_new(const ulam_chain_settings *settings, ulam_context *ctx, void *entry, void *bound,
                                    const double *point, const double *inverse_metric, int32_t *status);
ULAM_API void ulam_chain_free(ulam_chain *chain);
ULAM_API const ulam_chain_state *ulam_chain_look(const ulam_chain *chain);
/* The next iterations: up to the end of the block or of the phase. Draws of a block are of one phase. */
ULAM_API int32_t ulam_chain_run(ulam_chain *chain, ulam_chain_block *block);
ULAM_API void ulam_chain_metric(const ulam_chain *chain, double *inverse);

/* Parameters, transformed parameters and generated quantities of `count` points (rows of n), to rows of `width`. The
 * random numbers of a draw follow from `generator` and its number alone. What fails is NaN: generated quantities, and
 * where they fail transformed parameters, too; `statuses` says of which draws. Returns ULAM_OK or ULAM_STOPPED. */
ULAM_API int32_t ulam_draw_quantities(ulam_context *ctx, void *entry, void *bound, const uint64_t generator[4],
                                      int64_t n, int64_t width, int64_t count, const double *points,
                                      const uint64_t *numbers, double *values, int32_t *statuses);

#endif
