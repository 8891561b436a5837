/* The functions of include/ulam.h: the log density of a model as a callback, and chains of the sampler on threads. The
 * numbers are those of runtime/sampling/chain.py, which does the same in Python. */
#include "../include/ulam.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../sampling/chain.h"
#include "../sampling/metric.h"
#include "../seed_sequence.h"
#include "bridgestan.h"
#include "model.h"

_Static_assert(ULAM_POINT_REJECTED == ULAM_REJECT && ULAM_POINT_FATAL == ULAM_FATAL, "told as they are");
_Static_assert(ULAM_POINT_WRONG_SIZE == ULAM_WRONG_SIZE && ULAM_POINT_NO_MEMORY == ULAM_NO_MEMORY, "told as they are");
_Static_assert((int)ULAM_SAMPLE_NUTS == (int)ULAM_SAMPLER_NUTS && (int)ULAM_SAMPLE_HMC == (int)ULAM_SAMPLER_STATIC,
               "samplers");
_Static_assert((int)ULAM_SAMPLE_UNIT == (int)METRIC_UNIT && (int)ULAM_SAMPLE_DIAG == (int)METRIC_DIAGONAL &&
                   (int)ULAM_SAMPLE_DENSE == (int)METRIC_DENSE, "metrics");
_Static_assert((int)ULAM_SAMPLE_STATISTICS == (int)ULAM_CHAIN_STATISTICS, "statistics");

/* As of runtime/sampling/settings.py, initial_values.py and chain.py. */
static const double max_energy_error = 1000;
enum { MAX_TRIES = 100, LOCATED = 100 };
enum { INIT_STREAM = 0, TRAJECTORY_STREAM = 1, QUANTITIES_STREAM = 2, STREAMS = 8 };
enum { BLOCK_DRAWS = 100, BLOCK_BYTES = 1 << 20 };
static const double block_seconds = 0.5;

/* ---------------------------------------------------------------- the log density as a callback */

static int gradient_at(ulam_model *model, int jacobian, size_t n, const double *x, double *gradient, double *lp) {
  if ((int64_t)n != ulam_model_unconstrained(model)) return ULAM_WRONG_SIZE;
  return ulam_model_density(model, 1, jacobian, x, lp, gradient, NULL, NULL);
}

static int plain(size_t n, const double *x, double *gradient, double *lp, void *user) {
  return gradient_at(user, 0, n, x, gradient, lp);
}

static int adjusted(size_t n, const double *x, double *gradient, double *lp, void *user) {
  return gradient_at(user, 1, n, x, gradient, lp);
}

ULAM_API int ulam_native_handle(bs_model *model, bool jacobian, ulam_gradient *function, void **user, char **error) {
  ulam_text text = {0};
  if (model == NULL || function == NULL || user == NULL) {
    ulam_text_add(&text, "%s must not be NULL", model == NULL ? "model" : function == NULL ? "function" : "user");
    return ulam_hand_over(&text, error);
  }
  if (ulam_model_unit_of(model, ULAM_UNIT_GRADIENT_PROPTO, &text) == NULL) return ulam_hand_over(&text, error);
  free(text.bytes);
  *function = jacobian ? adjusted : plain;
  *user = model;
  return 0;
}

/* ---------------------------------------------------------------- options */

typedef struct {
  ulam_model *model;
  ulam_sample_options options;
  ulam_sample_output output;
  int64_t n, width, kept_warmup, kept_draws;
  int32_t next_chain;      /* to be taken by a thread */
  int32_t ended;           /* 1: by the callback; -1: by an error */
  pthread_mutex_t lock;    /* of the callback and the error */
  ulam_text *error;
} sampling;

/* Rows of the table of what options may be. */
typedef struct {
  const char *name;
  double value, least, most;
  int open; /* the ends are excluded */
} range;

static int check_ranges(const ulam_sample_options *o, ulam_text *error) {
  const double much = INFINITY, most_int = INT32_MAX;
  const range ranges[] = {
      {"chains", o->chains, 1, most_int, 0},
      {"warmup", o->warmup, 0, most_int, 0},
      {"draws", o->draws, 0, most_int, 0},
      {"thin", o->thin, 1, most_int, 0},
      {"save_warmup", o->save_warmup, 0, 1, 0},
      {"threads", o->threads, 0, most_int, 0},
      {"sampler", o->sampler, ULAM_SAMPLE_NUTS, ULAM_SAMPLE_HMC, 0},
      {"max_depth", o->max_depth, 1, 60, 0},
      {"integration_time", o->integration_time, 0, much, 1},
      {"target_accept", o->target_accept, 0, 1, 1},
      {"step_size", o->step_size == 0 ? 1 : o->step_size, 0, much, 1},
      {"step_size_jitter", o->step_size_jitter, 0, 1, 0},
      {"gamma", o->gamma, 0, much, 1},
      {"kappa", o->kappa, 0, much, 1},
      {"t0", o->t0, 0, much, 1},
      {"init_buffer", o->init_buffer, 0, most_int, 0},
      {"term_buffer", o->term_buffer, 0, most_int, 0},
      {"window", o->window, 1, most_int, 0},
      {"metric", o->metric, ULAM_SAMPLE_UNIT, ULAM_SAMPLE_DENSE, 0},
  };
  for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i) {
    const range *r = &ranges[i];
    if (r->open ? r->value > r->least && r->value < r->most : r->value >= r->least && r->value <= r->most) continue;
    ulam_text_add(error, "%s must be ", r->name);
    if (r->open && r->most == much)
      ulam_text_say(error, "positive");
    else if (r->most == most_int)
      ulam_text_add(error, "at least %g", r->least);
    else
      ulam_text_add(error, r->open ? "between %g and %g" : "from %g to %g", r->least, r->most);
    ulam_text_add(error, ", found %g", r->value);
    return 0;
  }
  return 1;
}

/* Of the structures the caller says how large they are: those of another version are refused, not misread. */
static int check_size(const char *what, size_t found, size_t known, ulam_text *error) {
  if (found == known) return 1;
  ulam_text_add(error, "size of the %s must be %zu, found %zu: begin with ULAM_SAMPLE_%s, and with the header of this "
                "version", what, known, found, strcmp(what, "options") == 0 ? "OPTIONS" : "OUTPUT");
  return 0;
}

static int64_t kept(int64_t count, int64_t thin) { return (count + thin - 1) / thin; }

static int begin(sampling *run, ulam_model *model, const ulam_sample_options *options,
                 const ulam_sample_output *output, ulam_text *error) {
  if (model == NULL || output == NULL) {
    ulam_text_add(error, "%s must not be NULL", model == NULL ? "model" : "output");
    return 0;
  }
  if (options && !check_size("options", options->size, sizeof *options, error)) return 0;
  if (!check_size("output", output->size, sizeof *output, error)) return 0;
  const ulam_sample_options defaults = ULAM_SAMPLE_OPTIONS;
  run->model = model;
  run->options = options ? *options : defaults;
  run->output = *output;
  run->error = error;
  const ulam_sample_options *o = &run->options;
  if (!check_ranges(o, error)) return 0;
  run->n = ulam_model_unconstrained(model);
  run->width = ulam_model_constrained(model, 1, 1);
  if (run->n == 0) run->options.warmup = 0; /* there is nothing to adapt */
  run->kept_warmup = o->save_warmup ? kept(o->warmup, o->thin) : 0;
  run->kept_draws = kept(o->draws, o->thin);
  const int64_t rows = run->kept_warmup + run->kept_draws;
  if ((output->values || output->unconstrained || output->statistics) && output->rows < rows) {
    ulam_text_add(error, "rows must be at least %lld for the draws of a chain, found %lld", (long long)rows,
                  (long long)output->rows);
    return 0;
  }
  for (int64_t i = 0; o->init_points && i < run->n * o->chains; ++i) {
    if (isfinite(o->init_points[i])) continue;
    ulam_text_add(error, "init_points must be finite, found %g", o->init_points[i]);
    return 0;
  }
  return 1;
}

/* ---------------------------------------------------------------- a chain */

/* A chain at work, and the arrays of its blocks. */
typedef struct {
  sampling *run;
  int32_t number; /* from 1 */
  ulam_context *ctx;
  const ulam_model_unit *gradient, *constrain;
  ulam_chain *chain;
  ulam_chain_block block;
  double *compiled, *values; /* what a block stands for: as it is computed, and a draw in BridgeStan's order */
  int32_t *statuses;
  uint64_t quantities[4]; /* the generator of generated quantities */
  int64_t rows, looked_at;
} chain_run;

static void words_of(const sampling *run, int32_t chain, int stream, uint64_t words[4]) {
  ulam_pcg generator;
  ulam_pcg_seed(&generator, run->options.seed, (uint64_t)STREAMS * (uint64_t)chain + (uint64_t)stream);
  words[0] = (uint64_t)(generator.state >> 64);
  words[1] = (uint64_t)generator.state;
  words[2] = (uint64_t)(generator.increment >> 64);
  words[3] = (uint64_t)generator.increment;
}

static int32_t no_memory(ulam_text *error) {
  ulam_text_say(error, "out of memory");
  return ULAM_FATAL;
}

/* Where the chain begins. */
static int32_t first_point(const chain_run *self, double *x, ulam_text *error) {
  const sampling *run = self->run;
  const ulam_sample_options *o = &run->options;
  ulam_rng rng;
  if (o->init_points == NULL) {
    ulam_pcg_seed(&rng.generator, o->seed, (uint64_t)STREAMS * (uint64_t)self->number + INIT_STREAM);
    return ulam_model_initialize(run->model, o->init, &rng, o->init_radius, MAX_TRIES, 1, x, error);
  }
  memcpy(x, o->init_points + (self->number - 1) * run->n, (size_t)run->n * sizeof *x);
  double *gradient = malloc((size_t)(run->n + 1) * sizeof *gradient), lp;
  if (gradient == NULL) return no_memory(error);
  int32_t status = ulam_model_density(run->model, 1, 1, x, &lp, gradient, NULL, error);
  int is_finite = status != ULAM_OK || isfinite(lp);
  for (int64_t i = 0; status == ULAM_OK && i < run->n; ++i) is_finite = is_finite && isfinite(gradient[i]);
  free(gradient);
  if (is_finite) return status;
  ulam_text_say(error, "the log density or its gradient is not finite at the initial point");
  return ULAM_REJECT;
}

static int32_t begin_chain(chain_run *self, ulam_text *error) {
  const sampling *run = self->run;
  const ulam_sample_options *o = &run->options;
  const int64_t widest = run->width > run->n ? run->width : run->n;
  int64_t capacity = BLOCK_BYTES / ((widest + 1) * (int64_t)sizeof(double));
  capacity = capacity < 1 ? 1 : capacity > BLOCK_DRAWS ? BLOCK_DRAWS : capacity;
  self->ctx = ulam_model_take(run->model);
  self->constrain = ulam_model_unit_of(run->model, ULAM_UNIT_CONSTRAIN, error);
  if (run->n) self->gradient = ulam_model_unit_of(run->model, ULAM_UNIT_GRADIENT_PROPTO, error);
  if (self->constrain == NULL || (run->n && self->gradient == NULL)) return ULAM_FATAL;
  self->block.capacity = capacity;
  self->block.seconds = block_seconds;
  self->block.points = calloc((size_t)(capacity * run->n + 1), sizeof(double));
  self->block.statistics = calloc((size_t)capacity, ULAM_CHAIN_STATISTICS * sizeof(double));
  self->block.numbers = calloc((size_t)capacity, sizeof(uint64_t));
  self->compiled = calloc((size_t)(capacity * run->width + 1), sizeof(double));
  self->values = calloc((size_t)run->width + 1, sizeof(double));
  self->statuses = calloc((size_t)capacity, sizeof(int32_t));
  double *x = calloc((size_t)run->n + 1, sizeof(double));
  int32_t status = ULAM_OK;
  if (!self->ctx || !self->block.points || !self->block.statistics || !self->block.numbers || !self->compiled ||
      !self->values || !self->statuses || !x)
    status = no_memory(error);
  if (status == ULAM_OK && run->n) status = first_point(self, x, error);
  if (status == ULAM_OK) {
    ulam_chain_settings settings = {
        .n = run->n,
        .sampler = run->n ? o->sampler : ULAM_SAMPLER_FIXED,
        .metric = o->metric,
        .warmup = o->warmup,
        .draws = o->draws,
        .thin = o->thin,
        .save_warmup = o->save_warmup,
        .max_depth = o->max_depth,
        .init_buffer = o->init_buffer,
        .term_buffer = o->term_buffer,
        .window = o->window,
        .find_step_size = run->n && (o->step_size == 0 || o->warmup > 0),
        .delta = o->target_accept,
        .gamma = o->gamma,
        .kappa = o->kappa,
        .t0 = o->t0,
        .step_size = o->step_size == 0 ? 1 : o->step_size,
        .step_size_jitter = o->step_size_jitter,
        .integration_time = o->integration_time,
        .max_energy_error = max_energy_error,
    };
    words_of(run, self->number, TRAJECTORY_STREAM, settings.generator);
    words_of(run, self->number, QUANTITIES_STREAM, self->quantities);
    self->chain = ulam_chain_new(&settings, self->ctx, self->gradient ? self->gradient->code->evaluate : NULL,
                                 self->gradient ? self->gradient->bound : NULL, x,
                                 run->n && o->metric != ULAM_SAMPLE_UNIT ? o->inv_metric : NULL, &status);
    if (self->chain == NULL && status == ULAM_CHAIN_METRIC)
      ulam_text_say(error, "inv_metric must be finite and positive definite");
    else if (self->chain == NULL)
      status = no_memory(error);
  }
  free(x);
  return status;
}

static void end_chain(chain_run *self) {
  ulam_chain_free(self->chain);
  if (self->ctx) ulam_model_give(self->run->model, self->ctx);
  free(self->block.points);
  free(self->block.statistics);
  free(self->block.numbers);
  free(self->compiled);
  free(self->values);
  free(self->statuses);
}

static int is_ended(sampling *run) { return __atomic_load_n(&run->ended, __ATOMIC_RELAXED) != 0; }

/* Hands a draw over. */
static void deliver(chain_run *self, int64_t i, int in_warmup) {
  sampling *run = self->run;
  const ulam_sample_output *output = &run->output;
  const double *point = self->block.points + i * run->n;
  const double *statistics = self->block.statistics + i * ULAM_CHAIN_STATISTICS;
  const int64_t row = self->rows++, place = (self->number - 1) * output->rows + row;
  ulam_to_output(run->model, 1, 1, self->compiled + i * run->width, self->values);
  if (output->values) memcpy(output->values + place * run->width, self->values, (size_t)run->width * sizeof(double));
  if (output->unconstrained) memcpy(output->unconstrained + place * run->n, point, (size_t)run->n * sizeof(double));
  if (output->statistics)
    memcpy(output->statistics + place * ULAM_CHAIN_STATISTICS, statistics, ULAM_CHAIN_STATISTICS * sizeof(double));
  if (output->callback == NULL) return;
  const ulam_draw draw = {self->number, in_warmup, row, self->values, point, statistics};
  pthread_mutex_lock(&run->lock);
  if (run->ended == 0 && output->callback(&draw, output->user) != 0) __atomic_store_n(&run->ended, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&run->lock);
}

/* Evaluations that failed are rejections, as a rule; one that is fatal ends the run. */
static int32_t look_at_failures(chain_run *self, ulam_text *error) {
  const sampling *run = self->run;
  for (int64_t i = 0; i < self->block.failed_kept; ++i) {
    if (++self->looked_at > LOCATED && self->block.failed_statuses[i] == ULAM_REJECT) continue;
    ulam_text told = {0};
    double lp, *gradient = malloc((size_t)run->n * sizeof *gradient);
    if (gradient == NULL) return no_memory(error);
    const double *point = self->block.failed_points + i * run->n;
    int32_t status = ulam_model_density(run->model, 1, 1, point, &lp, gradient, NULL, &told);
    free(gradient);
    if (status != ULAM_OK && status != ULAM_REJECT) ulam_text_say(error, told.bytes ? told.bytes : "");
    free(told.bytes);
    if (status != ULAM_OK && status != ULAM_REJECT) return ULAM_FATAL;
  }
  return ULAM_OK;
}

static void end_of_warmup(const chain_run *self) {
  const sampling *run = self->run;
  const int64_t size = run->options.metric == ULAM_SAMPLE_DENSE ? run->n * run->n : run->n;
  if (run->output.step_sizes) run->output.step_sizes[self->number - 1] = ulam_chain_look(self->chain)->step_size;
  if (run->output.inv_metrics && run->n)
    ulam_chain_metric(self->chain, run->output.inv_metrics + (self->number - 1) * size);
}

static int32_t run_blocks(chain_run *self, ulam_text *error) {
  sampling *run = self->run;
  const ulam_chain_state *state = ulam_chain_look(self->chain);
  if (state->phase != ULAM_PHASE_WARMUP) end_of_warmup(self);
  while (state->phase != ULAM_PHASE_DONE && !is_ended(run)) {
    const int in_warmup = state->phase == ULAM_PHASE_WARMUP;
    ulam_chain_block *block = &self->block;
    int32_t status = ulam_chain_run(self->chain, block);
    ulam_model_show(run->model, self->ctx);
    if (block->count)
      ulam_draw_quantities(self->ctx, self->constrain->code->evaluate, self->constrain->bound, self->quantities, run->n,
                           run->width, block->count, block->points, block->numbers, self->compiled, self->statuses);
    ulam_model_show(run->model, self->ctx);
    for (int64_t i = 0; i < block->count && !is_ended(run); ++i) deliver(self, i, in_warmup);
    int32_t found = look_at_failures(self, error);
    if (found != ULAM_OK) return found;
    if (ulam_chain_problem(status)) {
      ulam_text_say(error, ulam_chain_problem(status));
      return status;
    }
    if (status != ULAM_OK) { /* of an evaluation that is none of a failed point's */
      ulam_text_say(error, "the log density could not be evaluated");
      return status;
    }
    if (in_warmup && state->phase != ULAM_PHASE_WARMUP) end_of_warmup(self);
  }
  return ULAM_OK;
}

static void *run_chains(void *user) {
  sampling *run = user;
  for (;;) {
    const int32_t number = __atomic_add_fetch(&run->next_chain, 1, __ATOMIC_RELAXED);
    if (number > run->options.chains || is_ended(run)) return NULL;
    chain_run self = {.run = run, .number = number};
    ulam_text error = {0};
    int32_t status = begin_chain(&self, &error);
    if (status == ULAM_OK) status = run_blocks(&self, &error);
    end_chain(&self);
    if (status != ULAM_OK) {
      pthread_mutex_lock(&run->lock);
      if (run->ended >= 0) { /* the first error is told */
        __atomic_store_n(&run->ended, -1, __ATOMIC_RELAXED);
        ulam_text_add(run->error, "chain %d: ", number);
        ulam_text_say(run->error, error.length ? error.bytes : "unknown error");
      }
      pthread_mutex_unlock(&run->lock);
    }
    free(error.bytes);
  }
}

/* ---------------------------------------------------------------- all chains */

/* Chains on threads, of which the calling one is one. Where there can be no more threads, those that there are do it. */
static void run_threads(sampling *run) {
  int64_t count = run->options.threads ? run->options.threads : sysconf(_SC_NPROCESSORS_ONLN);
  if (count > run->options.chains) count = run->options.chains;
  pthread_t *threads = count > 1 ? calloc((size_t)count, sizeof *threads) : NULL;
  int64_t made = 0;
  while (threads && made < count - 1 && pthread_create(&threads[made], NULL, run_chains, run) == 0) ++made;
  run_chains(run);
  for (int64_t i = 0; i < made; ++i) pthread_join(threads[i], NULL);
  free(threads);
}

ULAM_API int ulam_sample(bs_model *model, const ulam_sample_options *options, const ulam_sample_output *output,
                         char **error) {
  ulam_text text = {0};
  sampling run = {0};
  if (!begin(&run, model, options, output, &text)) return ulam_hand_over(&text, error);
  if (pthread_mutex_init(&run.lock, NULL) != 0) {
    no_memory(&text);
    return ulam_hand_over(&text, error);
  }
  run_threads(&run);
  pthread_mutex_destroy(&run.lock);
  if (run.ended < 0) return ulam_hand_over(&text, error);
  free(text.bytes);
  return run.ended;
}
