#include "chain.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "dual_averaging.h"
#include "interrupts.h"
#include "static_hmc.h"
#include "windows.h"

/* Evaluations that failed are kept up to this many, and bytes of their points. A block ends when no more fit. */
enum { MOST_FAILED = 256, FAILED_BYTES = 1 << 20 };
/* Numbers of draws of warmup are counted from here: their random numbers are others than those of the draws. */
static const uint64_t first_of_warmup = (uint64_t)1 << 62;
static const double largest_step = 1e7;

struct ulam_chain {
  ulam_chain_state seen;
  ulam_chain_settings settings;
  int32_t begun;
  vector_store store;
  hamiltonian system;
  ulam_pcg generator;
  nuts nuts;
  static_hmc hmc;
  dual_averaging averaging;
  warmup_windows windows;
  double *q, *g;          /* where the chain is */
  double *p, *v, *w, *trial_q, *trial_g; /* for trying step sizes */
};

/* ------------------------------------------------------------ making and freeing */

static int begin(ulam_chain *chain, const double *point, const double *inverse_metric) {
  const ulam_chain_settings *settings = &chain->settings;
  const int64_t n = settings->n;
  hamiltonian *system = &chain->system;
  double **vectors[] = {&chain->q, &chain->g, &chain->p, &chain->v, &chain->w, &chain->trial_q, &chain->trial_g};
  for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; ++i)
    if ((*vectors[i] = vector_new(&chain->store, n)) == NULL) return 0;
  memcpy(chain->q, point, (size_t)n * sizeof(double));
  int64_t fit = FAILED_BYTES / ((n + 1) * (int64_t)sizeof(double));
  system->failed.capacity = fit < 4 ? 4 : fit < MOST_FAILED ? fit : MOST_FAILED;
  system->failed.statuses = calloc((size_t)system->failed.capacity, sizeof(int32_t));
  system->failed.sites = calloc((size_t)system->failed.capacity, sizeof(int64_t));
  system->failed.points = calloc((size_t)(system->failed.capacity * n + 1), sizeof(double));
  if (!system->failed.statuses || !system->failed.sites || !system->failed.points) return 0;
  int made = metric_begin(&system->metric, &chain->store, n, (int32_t)settings->metric, inverse_metric);
  if (made != 1) return made;
  if (settings->sampler == ULAM_SAMPLER_NUTS)
    return nuts_begin(&chain->nuts, system, &chain->store, (int32_t)settings->max_depth, settings->max_energy_error);
  return static_hmc_begin(&chain->hmc, system, &chain->store, settings->max_energy_error);
}

ulam_chain *ulam_chain_new(const ulam_chain_settings *settings, ulam_context *ctx, void *entry, void *bound,
                           const double *point, const double *inverse_metric, int32_t *status) {
  *status = ULAM_CHAIN_NO_MEMORY;
  ulam_chain *chain = calloc(1, sizeof *chain);
  if (chain == NULL) return NULL;
  chain->settings = *settings;
  chain->system.ctx = ctx;
  chain->system.entry = entry;
  chain->system.bound = bound;
  chain->system.n = settings->n;
  int made = begin(chain, point, inverse_metric);
  if (made != 1) {
    if (made < 0) *status = ULAM_CHAIN_METRIC;
    ulam_chain_free(chain);
    return NULL;
  }
  ulam_pcg_begin(&chain->generator, settings->generator);
  chain->averaging = (dual_averaging){
      .delta = settings->delta, .gamma = settings->gamma, .kappa = settings->kappa, .t0 = settings->t0};
  ulam_windows_begin(&chain->windows, settings->warmup, settings->init_buffer, settings->term_buffer,
                     settings->window);
  chain->seen.phase = settings->warmup > 0 ? ULAM_PHASE_WARMUP : ULAM_PHASE_DRAWS;
  chain->seen.step_size = settings->step_size;
  if (chain->seen.phase == ULAM_PHASE_DRAWS && settings->draws == 0) chain->seen.phase = ULAM_PHASE_DONE;
  *status = ULAM_OK;
  return chain;
}

void ulam_chain_free(ulam_chain *chain) {
  if (chain == NULL) return;
  vectors_free(&chain->store);
  free(chain->system.failed.statuses);
  free(chain->system.failed.sites);
  free(chain->system.failed.points);
  free(chain->nuts.parts);
  free(chain);
}

const char *ulam_chain_problem(int32_t status) {
  switch (status) {
    case ULAM_CHAIN_NO_MEMORY: return "out of memory";
    case ULAM_CHAIN_IMPROPER:
      return "the posterior is improper: steps of any size are accepted. Has every parameter a density, or bounds?";
    case ULAM_CHAIN_NO_STEP:
      return "no step size is small enough to be accepted. Is the log density continuous, and its gradient right?";
    case ULAM_CHAIN_METRIC: return "the metric that warmup has found is not finite and positive definite";
    default: return NULL;
  }
}

const ulam_chain_state *ulam_chain_look(const ulam_chain *chain) { return &chain->seen; }

void ulam_chain_metric(const ulam_chain *chain, double *inverse) { metric_read(&chain->system.metric, inverse); }

/* ------------------------------------------------------------ the step size */

/* The energy that a single step from here gains, with momenta drawn anew; -inf where there is none. */
static double gain_of_step(ulam_chain *chain, double step) {
  hamiltonian *system = &chain->system;
  phase_point z = {
      .q = chain->q, .p = chain->p, .g = chain->g, .v = chain->v, .w = chain->w, .lp = chain->seen.lp};
  metric_draw_momentum(&system->metric, &chain->generator, z.p);
  set_momentum(system, &z);
  double start = z.energy;
  leapfrog(system, &z, chain->trial_q, chain->p, chain->trial_g, chain->v, step);
  double gained = start - z.energy;
  return isnan(gained) ? -INFINITY : gained;
}

/* Doubles or halves the step size until the acceptance of a single step crosses 0.8 (Hoffman and Gelman 2014, algorithm
 * 4, with Stan's bound, and momenta drawn anew each time). */
static int32_t find_step_size(ulam_chain *chain) {
  const double bound = log(0.8);
  double step = chain->seen.step_size;
  int larger = gain_of_step(chain, step) > bound;
  while (chain->system.status == ULAM_OK) {
    double gained = gain_of_step(chain, step);
    if (chain->system.status != ULAM_OK || (gained > bound) != larger) break;
    step = larger ? 2 * step : 0.5 * step;
    if (step > largest_step) return ULAM_CHAIN_IMPROPER;
    if (step == 0) return ULAM_CHAIN_NO_STEP;
  }
  chain->seen.step_size = step;
  return chain->system.status;
}

/* ------------------------------------------------------------ iterations */

static int32_t begin_run(ulam_chain *chain) {
  const ulam_chain_settings *settings = &chain->settings;
  chain->begun = 1;
  if (settings->sampler == ULAM_SAMPLER_FIXED) return ULAM_OK;
  chain->seen.lp = evaluate(&chain->system, chain->q, chain->g);
  if (chain->system.status == ULAM_OK && settings->find_step_size) {
    int32_t status = find_step_size(chain);
    if (status) return status;
  }
  ulam_dual_averaging_restart(&chain->averaging, chain->seen.step_size);
  return chain->system.status;
}

static transition next_point(ulam_chain *chain, double step) {
  const ulam_chain_settings *settings = &chain->settings;
  if (settings->sampler == ULAM_SAMPLER_FIXED) return (transition){0};
  if (settings->sampler == ULAM_SAMPLER_NUTS)
    return nuts_transition(&chain->nuts, &chain->generator, step, chain->q, chain->g, chain->seen.lp);
  double steps = settings->integration_time / chain->seen.step_size;
  int64_t count = steps < 1 ? 1 : steps < 1e9 ? (int64_t)steps : 1000000000;
  return static_hmc_transition(&chain->hmc, &chain->generator, step, count, chain->q, chain->g, chain->seen.lp);
}

/* After an iteration of warmup. */
static int32_t adapt(ulam_chain *chain, double accept_stat) {
  chain->seen.step_size = ulam_dual_averaging_learn(&chain->averaging, accept_stat);
  if (chain->settings.metric == METRIC_UNIT) return ULAM_OK;
  int32_t where = ulam_windows_at(&chain->windows, chain->seen.iteration);
  if (where == WINDOW_OUTSIDE) return ULAM_OK;
  metric_learn(&chain->system.metric, chain->q);
  if (where != WINDOW_ENDS || chain->system.metric.count < 2) return ULAM_OK;
  int updated = metric_update(&chain->system.metric);
  if (updated < 0) return ULAM_CHAIN_METRIC;
  int32_t status = find_step_size(chain);
  if (status) return status;
  ulam_dual_averaging_restart(&chain->averaging, chain->seen.step_size);
  return ULAM_OK;
}

static void keep(const ulam_chain *chain, ulam_chain_block *block, const transition *found, double step,
                 uint64_t number) {
  const int64_t n = chain->settings.n;
  memcpy(block->points + block->count * n, chain->q, (size_t)n * sizeof(double));
  double *row = block->statistics + block->count * ULAM_CHAIN_STATISTICS;
  row[0] = found->lp;
  row[1] = found->accept_stat;
  row[2] = step;
  row[3] = (double)found->depth;
  row[4] = (double)found->leapfrogs;
  row[5] = found->divergent;
  row[6] = found->energy;
  block->numbers[block->count++] = number;
}

static int32_t iterate(ulam_chain *chain, ulam_chain_block *block) {
  const ulam_chain_settings *settings = &chain->settings;
  ulam_chain_state *seen = &chain->seen;
  const int in_warmup = seen->phase == ULAM_PHASE_WARMUP;
  double step = seen->step_size;
  if (settings->step_size_jitter > 0)
    step *= 1 + settings->step_size_jitter * (2 * ulam_pcg_uniform(&chain->generator) - 1);
  transition found = next_point(chain, step);
  if (chain->system.status != ULAM_OK) return chain->system.status;
  seen->lp = found.lp;
  seen->depth = found.depth;
  int32_t status = ULAM_OK;
  uint64_t number = (uint64_t)(in_warmup ? seen->iteration : seen->iteration - settings->warmup);
  if (in_warmup) {
    if (settings->sampler != ULAM_SAMPLER_FIXED && !settings->still) status = adapt(chain, found.accept_stat);
    if (status) return status;
  } else {
    seen->divergences += found.divergent;
    seen->at_max_depth += settings->sampler == ULAM_SAMPLER_NUTS && found.depth == settings->max_depth;
  }
  if (number % (uint64_t)settings->thin == 0 && (!in_warmup || settings->save_warmup))
    keep(chain, block, &found, step, in_warmup ? first_of_warmup + number : number);
  ++seen->iteration;
  return ULAM_OK;
}

static double seconds_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* At the end of warmup: the step size that adaptation has come to. */
static void end_phase(ulam_chain *chain) {
  ulam_chain_state *seen = &chain->seen;
  if (seen->phase == ULAM_PHASE_WARMUP) {
    if (chain->averaging.count > 0) seen->step_size = ulam_dual_averaging_mean(&chain->averaging);
    seen->phase = chain->settings.draws > 0 ? ULAM_PHASE_DRAWS : ULAM_PHASE_DONE;
  } else {
    seen->phase = ULAM_PHASE_DONE;
  }
}

int32_t ulam_chain_run(ulam_chain *chain, ulam_chain_block *block) {
  const ulam_chain_settings *settings = &chain->settings;
  failed_evaluations *failed = &chain->system.failed;
  const double end = seconds_now() + block->seconds;
  int32_t status = ULAM_OK;
  block->count = failed->kept = 0;
  if (!chain->begun) status = begin_run(chain);
  while (status == ULAM_OK && chain->seen.phase != ULAM_PHASE_DONE && block->count < block->capacity &&
         failed->kept < failed->capacity) {
    status = iterate(chain, block);
    if (status != ULAM_OK) break;
    int64_t last = settings->warmup + (chain->seen.phase == ULAM_PHASE_WARMUP ? 0 : settings->draws);
    if (chain->seen.iteration == last) {
      end_phase(chain);
      break;
    }
    if (seconds_now() >= end) break;
  }
  chain->seen.gradients = chain->system.gradients;
  chain->seen.failed = failed->count;
  block->failed_kept = failed->kept;
  block->failed_statuses = failed->statuses;
  block->failed_sites = failed->sites;
  block->failed_points = failed->points;
  return status;
}
