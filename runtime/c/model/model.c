/* Models: a program with its data, and what is asked of it. Units are loaded and bound when they are first used. */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../seed_sequence.h"

/* ---------------------------------------------------------------- life */

static int32_t load(ulam_program *program, int32_t unit, ulam_text *error) {
  ulam_program_unit *code = &program->units[unit];
  if (__atomic_load_n(&code->loaded, __ATOMIC_ACQUIRE)) return ULAM_OK;
  int32_t returned = program->load ? program->load(program->user, unit, error) : -1;
  if (returned != 0) {
    if (returned == ULAM_LOAD_INTERRUPTED && program->interrupted) program->interrupted();
    if (error && error->length == 0) ulam_text_add(error, "the code of '%s' cannot be loaded", code->name);
    return ULAM_FATAL;
  }
  __atomic_store_n(&code->loaded, 1, __ATOMIC_RELEASE);
  return ULAM_OK;
}

static int32_t check_ranks(const ulam_program *program, ulam_text *error) {
  for (int64_t i = 0; i < program->n_variables; ++i) {
    if (ulam_variable_rank(&program->variables[i]) <= ULAM_MOST_RANK) continue;
    ulam_text_add(error, "variable '%s' has more than %d dimensions", program->variables[i].name, ULAM_MOST_RANK);
    return ULAM_FATAL;
  }
  return ULAM_OK;
}

static int32_t begin(ulam_model *model, const char *data, uint32_t seed, ulam_text *error) {
  ulam_program *program = model->program;
  int32_t status = check_ranks(program, error);
  if (status == ULAM_OK) status = load(program, ULAM_UNIT_SETUP, error);
  if (status != ULAM_OK) return status;
  int64_t n_slots = program->units[ULAM_UNIT_SETUP].n_slots;
  model->dims = calloc((size_t)program->n_variables + 1, sizeof *model->dims);
  model->memory = ulam_bound_memory_new();
  model->data = calloc((size_t)n_slots + 1, sizeof *model->data);
  if (model->dims == NULL || model->memory == NULL || model->data == NULL) return ulam_no_memory(error);
  return ulam_bind_data(model, data, seed, error);
}

ulam_model *ulam_model_new(ulam_program *program, const char *data, uint32_t seed, ulam_text *error) {
  ulam_model *model = calloc(1, sizeof *model);
  if (model == NULL || pthread_mutex_init(&model->lock, NULL) != 0) {
    free(model);
    ulam_no_memory(error);
    return NULL;
  }
  model->program = program;
  if (begin(model, data, seed, error) == ULAM_OK) return model;
  ulam_model_free(model);
  return NULL;
}

void ulam_model_free(ulam_model *model) {
  if (model == NULL) return;
  ulam_pool_clear(&model->contexts);
  for (int i = 0; i < ULAM_UNITS; ++i) {
    free(model->units[i].bound);
    free(model->units[i].failed_message);
  }
  for (int64_t i = 0; model->dims && i < model->program->n_variables; ++i) free(model->dims[i]);
  free(model->dims);
  free(model->data);
  ulam_bound_memory_free(model->memory);
  for (int i = 0; i < 4; ++i) free(model->names[i]);
  free(model->unconstrained_names);
  pthread_mutex_destroy(&model->lock);
  free(model);
}

const ulam_program *ulam_model_program(const ulam_model *model) { return model->program; }

int64_t ulam_model_unconstrained(const ulam_model *model) { return model->n; }

int64_t ulam_model_constrained(const ulam_model *model, int tp, int gq) { return model->constrained[!!tp + 2 * !!gq]; }

void ulam_rng_begin(ulam_rng *rng, uint32_t seed) {
  ulam_pcg_seed(&rng->generator, seed, 0);
}

/* ---------------------------------------------------------------- printing */

static pthread_once_t print_once = PTHREAD_ONCE_INIT;
static pthread_mutex_t print_lock;

static void make_print_lock(void) {
  pthread_mutexattr_t attributes; /* what is called may evaluate, too */
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&print_lock, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/* A line, and then its end: as C++ streams write them, and BridgeStan's clients count. */
static void show_lines(void (*print)(const char *, size_t), const char *text, int64_t length) {
  while (length > 0) {
    const char *end = memchr(text, '\n', (size_t)length);
    int64_t line = end ? end - text : length;
    if (line) print(text, (size_t)line);
    if (end) print(end, 1);
    line += end != NULL;
    text += line;
    length -= line;
  }
}

void ulam_show(ulam_model *model, const char *text, int64_t length) {
  pthread_once(&print_once, make_print_lock);
  pthread_mutex_lock(&print_lock);
  if (model->program->print) {
    show_lines(model->program->print, text, length);
  } else {
    fwrite(text, 1, (size_t)length, stdout);
    fflush(stdout);
  }
  pthread_mutex_unlock(&print_lock);
}

void ulam_program_print_to(ulam_program *program, void (*print)(const char *text, size_t length)) {
  pthread_once(&print_once, make_print_lock);
  pthread_mutex_lock(&print_lock);
  program->print = print;
  pthread_mutex_unlock(&print_lock);
}

ulam_context *ulam_model_take(ulam_model *model) { return ulam_pool_take(&model->contexts); }

void ulam_model_show(ulam_model *model, ulam_context *ctx) {
  if (ctx->output_length) ulam_show(model, ulam_output(ctx), ctx->output_length);
  ulam_clear_output(ctx);
}

void ulam_model_give(ulam_model *model, ulam_context *ctx) {
  ulam_model_show(model, ctx);
  ctx->rng = NULL;
  ulam_pool_give(&model->contexts, ctx);
}

/* ---------------------------------------------------------------- units */

static int32_t bind(ulam_model *model, ulam_model_unit *unit, ulam_context *ctx, ulam_text *error) {
  const ulam_program_unit *code = unit->code;
  int64_t n_slots = model->program->units[ULAM_UNIT_SETUP].n_slots;
  unit->bound = calloc((size_t)code->n_slots + 1, sizeof *unit->bound);
  if (unit->bound == NULL) return ulam_no_memory(error);
  /* Each unit has a table of its own: slots beyond those of data may mean something else in each. */
  memcpy(unit->bound, model->data, (size_t)(n_slots < code->n_slots ? n_slots : code->n_slots) * sizeof *unit->bound);
  if (code->bind == NULL) return ULAM_OK;
  unit->failed = ulam_run_bind(ctx, code->bind, unit->bound, model->memory);
  if (unit->failed == ULAM_OK) return ULAM_OK;
  unit->failed_site = ctx->error_site;
  memcpy(unit->failed_values, ctx->error_values, sizeof unit->failed_values);
  unit->failed_message = ulam_copy(ulam_message(ctx));
  return ULAM_OK;
}

const ulam_model_unit *ulam_model_unit_of(ulam_model *model, int32_t which, ulam_text *error) {
  ulam_model_unit *unit = &model->units[which];
  if (__atomic_load_n(&model->ready[which], __ATOMIC_ACQUIRE)) return unit;
  if (load(model->program, which, error) != ULAM_OK) return NULL;
  ulam_context *ctx = ulam_model_take(model);
  if (ctx == NULL) {
    ulam_no_memory(error);
    return NULL;
  }
  pthread_mutex_lock(&model->lock);
  int is_ready = model->ready[which];
  if (!is_ready) {
    unit->code = &model->program->units[which];
    is_ready = bind(model, unit, ctx, error) == ULAM_OK;
    if (is_ready) __atomic_store_n(&model->ready[which], 1, __ATOMIC_RELEASE);
  }
  pthread_mutex_unlock(&model->lock);
  ulam_model_give(model, ctx);
  return is_ready ? unit : NULL;
}

/* ---------------------------------------------------------------- failures */


/* What a run printed that was one more of the same is forgotten, unless there was none before: its `bind` failed. */
static void show_again(ulam_model *model, const ulam_model_unit *unit, ulam_context *ctx) {
  if (unit->failed != ULAM_OK) ulam_model_show(model, ctx);
  ulam_clear_output(ctx);
}

/* The failure of a unit's last run in `ctx`, or of its `bind`, which is noted here: `locate` has the context next. */
typedef struct {
  int32_t status;
  int64_t site;
  double values[4];
  char *message;
} failure;

static failure failure_of(const ulam_model_unit *unit, int32_t status, const ulam_context *ctx) {
  failure found = {status, ctx->error_site, {0}, NULL};
  const char *message = ulam_message(ctx);
  memcpy(found.values, ctx->error_values, sizeof found.values);
  if (unit->failed != ULAM_OK) {
    found.status = unit->failed;
    found.site = unit->failed_site;
    memcpy(found.values, unit->failed_values, sizeof found.values);
    message = unit->failed_message ? unit->failed_message : "";
  }
  found.message = ulam_copy(message);
  return found;
}

static int32_t tell(const ulam_model_unit *unit, failure *found, ulam_text *error) {
  int32_t status = ulam_failure_text(unit->code, found->status, found->site, found->values, found->message, error);
  free(found->message);
  return status;
}

int32_t ulam_model_density_error(ulam_model *model, ulam_context *ctx, const ulam_model_unit *unit, int32_t status,
                                 const double *x, int jacobian, ulam_text *error) {
  failure found = failure_of(unit, status, ctx);
  ulam_model_show(model, ctx);
  const ulam_model_unit *locate = ulam_model_unit_of(model, ULAM_UNIT_LOCATE, error);
  if (locate == NULL) {
    free(found.message);
    return ULAM_FATAL;
  }
  status = ulam_run_value(ctx, locate->code->evaluate, locate->bound, x, jacobian);
  show_again(model, unit, ctx);
  if (status == ULAM_OK) return tell(unit, &found, error);
  free(found.message);
  return ulam_run_failure(locate->code, status, ctx, error);
}

/* Generated quantities, which draw, are not run again and keep their errors. */
static int32_t constrain_error(ulam_model *model, ulam_context *ctx, const ulam_model_unit *unit, int32_t status,
                               const double *x, int beyond, ulam_text *error) {
  failure found = failure_of(unit, status, ctx);
  ulam_model_show(model, ctx);
  const ulam_model_unit *locate = ulam_model_unit_of(model, ULAM_UNIT_LOCATE_CONSTRAIN, error);
  double *written = malloc((size_t)(model->constrained[1] + 1) * sizeof *written);
  if (locate == NULL || written == NULL) {
    free(written);
    free(found.message);
    return locate ? ulam_no_memory(error) : ULAM_FATAL;
  }
  status = ulam_run_constrain(ctx, locate->code->evaluate, locate->bound, x, written, beyond, 0);
  show_again(model, unit, ctx);
  free(written);
  if (status == ULAM_OK) return tell(unit, &found, error);
  free(found.message);
  return ulam_run_failure(locate->code, status, ctx, error);
}

/* ---------------------------------------------------------------- log density */

static int32_t second_order(ulam_context *ctx, const ulam_model_unit *unit, int64_t n, const double *x,
                            double *gradient, double *hessian, int jacobian) {
  double *direction = malloc((size_t)(n + 1) * sizeof *direction);
  if (direction == NULL) return ULAM_NO_MEMORY;
  int32_t status = ulam_run_hessian(ctx, unit->code->evaluate, unit->bound, x, n, direction, gradient, hessian, jacobian);
  free(direction);
  for (int64_t i = 0; status == ULAM_OK && i < n; ++i) {
    for (int64_t j = 0; j < i; ++j)
      hessian[i * n + j] = hessian[j * n + i] = 0.5 * (hessian[i * n + j] + hessian[j * n + i]);
  }
  return status;
}

static int32_t density(ulam_context *ctx, const ulam_model_unit *unit, int64_t n, int order, int jacobian,
                       const double *x, double *gradient, double *hessian) {
  void *entry = unit->code->evaluate;
  if (unit->failed != ULAM_OK) return unit->failed;
  if (order == 0) return ulam_run_value(ctx, entry, unit->bound, x, jacobian);
  if (order == 1) return ulam_run_gradient(ctx, entry, unit->bound, x, gradient, jacobian);
  return second_order(ctx, unit, n, x, gradient, hessian, jacobian);
}

int32_t ulam_model_density(ulam_model *model, int propto, int jacobian, const double *x, double *lp, double *gradient,
                           double *hessian, ulam_text *error) {
  int order = hessian && model->n ? 2 : gradient ? 1 : 0;
  const ulam_model_unit *unit = ulam_model_unit_of(model, ulam_density_unit(order, propto), error);
  if (unit == NULL) return ULAM_FATAL;
  ulam_context *ctx = ulam_model_take(model);
  if (ctx == NULL) return ulam_no_memory(error);
  int32_t status = density(ctx, unit, model->n, order, jacobian, x, gradient, hessian);
  if (status == ULAM_OK)
    *lp = ctx->value;
  else if (status == ULAM_NO_MEMORY)
    ulam_no_memory(error);
  else
    status = ulam_model_density_error(model, ctx, unit, status, x, jacobian, error);
  ulam_model_give(model, ctx);
  return status;
}

int32_t ulam_model_hessian_vector(ulam_model *model, int propto, int jacobian, const double *x, const double *direction,
                                  double *lp, double *product, ulam_text *error) {
  const ulam_model_unit *unit = ulam_model_unit_of(model, ulam_density_unit(2, propto), error);
  if (unit == NULL) return ULAM_FATAL;
  ulam_context *ctx = ulam_model_take(model);
  double *gradient = malloc((size_t)(model->n + 1) * sizeof *gradient);
  int32_t status = ULAM_NO_MEMORY;
  if (ctx && gradient) {
    status = unit->failed;
    if (status == ULAM_OK)
      status = ulam_run_hessian_vector(ctx, unit->code->evaluate, unit->bound, x, direction, gradient, product,
                                       jacobian);
    if (status == ULAM_OK)
      *lp = ctx->value;
    else
      status = ulam_model_density_error(model, ctx, unit, status, x, jacobian, error);
  } else {
    ulam_no_memory(error);
  }
  if (ctx) ulam_model_give(model, ctx);
  free(gradient);
  return status;
}

/* ---------------------------------------------------------------- transforms */

int32_t ulam_model_constrain(ulam_model *model, int tp, int gq, const double *x, double *out, ulam_rng *rng,
                             ulam_text *error) {
  const ulam_model_unit *unit = ulam_model_unit_of(model, ULAM_UNIT_CONSTRAIN, error);
  if (unit == NULL) return ULAM_FATAL;
  int64_t count = ulam_model_constrained(model, tp, gq);
  double *compiled = ulam_reorders(model, tp, gq) ? malloc((size_t)(count + 1) * sizeof *compiled) : out;
  ulam_context *ctx = ulam_model_take(model);
  int32_t status = ULAM_NO_MEMORY;
  if (ctx && (compiled || count == 0)) {
    for (int64_t i = 0; i < count; ++i) compiled[i] = __builtin_nan("");
    ctx->rng = rng ? (struct bitgen *)&rng->generator.interface : NULL;
    status = unit->failed;
    if (status == ULAM_OK)
      status = ulam_run_constrain(ctx, unit->code->evaluate, unit->bound, x, compiled, tp, gq);
    if (status != ULAM_OK) status = constrain_error(model, ctx, unit, status, x, tp || gq, error);
  } else {
    ulam_no_memory(error);
  }
  if (ctx) ulam_model_give(model, ctx);
  if (compiled != out) {
    if (status == ULAM_OK) ulam_to_output(model, tp, gq, compiled, out);
    free(compiled);
  }
  return status;
}

int32_t ulam_unconstrain_compiled(ulam_model *model, const double *compiled, double *x, ulam_text *error) {
  const ulam_model_unit *unit = ulam_model_unit_of(model, ULAM_UNIT_UNCONSTRAIN, error);
  if (unit == NULL) return ULAM_FATAL;
  ulam_context *ctx = ulam_model_take(model);
  if (ctx == NULL) return ulam_no_memory(error);
  int32_t status = ulam_run_unconstrain(ctx, unit->code->evaluate, unit->bound, compiled, x);
  if (status != ULAM_OK) status = ulam_run_failure(unit->code, status, ctx, error);
  ulam_model_give(model, ctx);
  return status;
}

int32_t ulam_model_unconstrain(ulam_model *model, const double *constrained, double *x, ulam_text *error) {
  if (!ulam_reorders(model, 0, 0)) return ulam_unconstrain_compiled(model, constrained, x, error);
  double *compiled = malloc((size_t)(model->constrained[0] + 1) * sizeof *compiled);
  if (compiled == NULL) return ulam_no_memory(error);
  ulam_from_output(model, constrained, compiled);
  int32_t status = ulam_unconstrain_compiled(model, compiled, x, error);
  free(compiled);
  return status;
}
