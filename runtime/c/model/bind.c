/* A model's data: bound as runtime/program.py does it, and refused in its words. */
#include <stdlib.h>
#include <string.h>

#include "../memory.h"
#include "model.h"
#include "values.h"

typedef struct {
  ulam_model *model;
  ulam_context *ctx;
} binding;

static int64_t number_of(const ulam_model *model, const ulam_program_variable *variable) {
  return variable - model->program->variables;
}

static const ulam_program_unit *setup_of(const ulam_model *model) { return &model->program->units[ULAM_UNIT_SETUP]; }

/* What the setup says of a variable that is named ahead of it. */
static void say_of(const ulam_program_variable *variable, int32_t status, binding *to, ulam_text *problem) {
  ulam_text told = {0};
  ulam_run_failure(setup_of(to->model), status, to->ctx, &told);
  const char *own = told.bytes ? told.bytes : "";
  size_t length = strlen(variable->name), i = 0;
  while (i < length && own[i] == (variable->name[i] == ':' ? '.' : variable->name[i])) ++i;
  if (i == length && own[i] == ':' && own[i + 1] == ' ')
    own += i + 2;
  else if (i == length && own[i] == ' ')
    own += i + 1;
  ulam_text_say(problem, own);
  free(told.bytes);
}

/* The sizes of a variable, and behind them how many unconstrained values it has. */
static int32_t sizes_of(binding *to, const ulam_program_variable *variable, int64_t *sizes, ulam_text *problem) {
  ulam_model *model = to->model;
  int32_t rank = ulam_variable_rank(variable);
  int32_t status = ulam_run_dims(to->ctx, setup_of(model)->data_dims, model->data, number_of(model, variable), sizes);
  if (status) {
    ulam_text_say(problem, "has a wrong size: ");
    say_of(variable, status, to, problem);
    return 1;
  }
  for (int32_t i = 0; i < rank + (variable->block == ULAM_BLOCK_PARAMETERS); ++i) {
    if (sizes[i] >= 0) continue;
    ulam_values_negative_size(variable, sizes, problem);
    return 1;
  }
  return 0;
}

static int32_t dims(void *user, const ulam_program_variable *variable, int64_t *dims, ulam_text *problem) {
  int64_t sizes[ULAM_MOST_RANK + 2] = {0};
  if (sizes_of(user, variable, sizes, problem)) return 1;
  memcpy(dims, sizes, (size_t)ulam_variable_rank(variable) * sizeof *dims);
  return 0;
}

static void *room(void *user, const ulam_program_variable *variable, const int64_t *dims) {
  binding *to = user;
  int32_t rank = ulam_variable_rank(variable);
  int64_t *slot = &to->model->data[variable->slot];
  int32_t own = rank - variable->is_complex;
  if (own == 0) {
    slot[rank] = 0;
    *slot = 0;
    return slot; /* an int has the lower half of it */
  }
  int64_t size = ulam_product(dims, rank), bytes;
  if (variable->is_complex && __builtin_mul_overflow(size, (int64_t)2, &size)) return NULL; /* see `take_apart` */
  if (__builtin_mul_overflow(size, (int64_t)sizeof(double), &bytes)) return NULL;
  if (bytes > ULAM_LARGE_BLOCK && bytes > ulam_available_bytes()) return NULL;
  void *block = ulam_bound_memory_alloc(to->model->memory, bytes);
  *slot = (int64_t)(intptr_t)block;
  memcpy(slot + 1, dims, (size_t)own * sizeof *dims);
  if (!variable->is_complex || !block) return block;
  double *pairs = (double *)block + size / 2;
  slot[rank] = (int64_t)(intptr_t)(pairs - size / 4);
  memcpy(slot + 1 + rank, dims, (size_t)own * sizeof *dims);
  return pairs;
}

/* Complex numbers as they were read, from the middle of their block on, become all real parts, then all imaginary ones. */
static void take_apart(const ulam_program_variable *variable, int64_t *slot, const int64_t *dims) {
  int32_t own = ulam_variable_rank(variable) - 1;
  if (own == 0) return;
  int64_t count = ulam_product(dims, own);
  double *block = (double *)(intptr_t)*slot;
  const double *pairs = block + 2 * count;
  for (int64_t k = 0; k < count; ++k) {
    block[k] = pairs[2 * k];
    block[count + k] = pairs[2 * k + 1];
  }
}

static int32_t stored(void *user, const ulam_program_variable *variable, const int64_t *dims, ulam_text *problem) {
  binding *to = user;
  if (variable->is_complex) take_apart(variable, &to->model->data[variable->slot], dims);
  if (!variable->is_bounded) return 0;
  /* At once, and not by `prepare`: sizes of the variables that follow may depend on it. */
  ulam_model *model = to->model;
  int64_t which = model->program->n_variables + number_of(model, variable), none[2];
  int32_t status = ulam_run_dims(to->ctx, setup_of(model)->data_dims, model->data, which, none);
  if (status) say_of(variable, status, to, problem);
  return status != 0;
}

/* ---------------------------------------------------------------- sizes */

static int64_t bytes_of(int64_t values) {
  int64_t bytes;
  return __builtin_mul_overflow(values, (int64_t)sizeof(double), &bytes) ? INT64_MAX : bytes;
}

static int too_large(int64_t bytes) { return bytes > ULAM_LARGE_BLOCK && bytes > ulam_machine_bytes(); }

/* As check_memory of runtime/memory.py: whether variables, and a gradient, fit into the machine. */
static int32_t check_memory(const ulam_model *model, ulam_text *error) {
  enum { COPIES = 4 };
  const ulam_program_variable *most = NULL;
  int64_t of_most = -1, machine = ulam_machine_bytes();
  for (int64_t i = 0; i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    const int64_t *sizes = model->dims[i];
    if (sizes == NULL) continue;
    int32_t rank = ulam_variable_rank(variable);
    int64_t size = ulam_product(sizes, rank), count = variable->block == ULAM_BLOCK_PARAMETERS ? sizes[rank] : 0;
    int64_t needed = bytes_of(size > count ? size : count);
    if (too_large(needed)) {
      ulam_text_add(error, "variable '%s' is too large: sizes ", variable->name);
      for (int32_t k = 0; k < rank; ++k) ulam_text_add(error, k ? " x %lld" : "%lld", (long long)sizes[k]);
      ulam_text_add(error, " need %lld bytes, and this machine has %lld", (long long)needed, (long long)machine);
      return ULAM_REJECT;
    }
    if (variable->block == ULAM_BLOCK_PARAMETERS && count > of_most) {
      most = variable;
      of_most = count;
    }
  }
  int64_t needed = bytes_of(model->n);
  if (__builtin_mul_overflow(needed, (int64_t)COPIES, &needed)) needed = INT64_MAX;
  if (!too_large(needed)) return ULAM_OK;
  ulam_text_add(error,
                "the parameters are too large: a gradient of %lld unconstrained values (of which '%s' has %lld) needs "
                "%lld bytes, and this machine has %lld",
                (long long)model->n, most->name, (long long)of_most, (long long)needed, (long long)machine);
  return ULAM_REJECT;
}

static int64_t sum(int64_t a, int64_t b) { return __builtin_add_overflow(a, b, &a) ? INT64_MAX : a; }

/* The sizes of all that is not data, and how many values there are. */
static int32_t find_sizes(binding *to, ulam_text *error) {
  ulam_model *model = to->model;
  int64_t counts[5] = {0}; /* by block */
  for (int64_t i = 0; i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    int32_t rank = ulam_variable_rank(variable);
    if (variable->block == ULAM_BLOCK_DATA || variable->block == ULAM_BLOCK_TRANSFORMED_DATA) continue;
    model->dims[i] = calloc((size_t)rank + 2, sizeof(int64_t));
    if (model->dims[i] == NULL) return ulam_no_memory(error);
    ulam_text problem = {0};
    if (sizes_of(to, variable, model->dims[i], &problem)) {
      ulam_text_add(error, "variable '%s' %s", variable->name, problem.bytes ? problem.bytes : "");
      free(problem.bytes);
      return ULAM_REJECT;
    }
    if (variable->block == ULAM_BLOCK_PARAMETERS) model->n = sum(model->n, model->dims[i][rank]);
    counts[variable->block] = sum(counts[variable->block], ulam_product(model->dims[i], rank));
  }
  for (int which = 0; which < 4; ++which) {
    int64_t count = counts[ULAM_BLOCK_PARAMETERS];
    if (which & 1) count = sum(count, counts[ULAM_BLOCK_TRANSFORMED_PARAMETERS]);
    if (which & 2) count = sum(count, counts[ULAM_BLOCK_GENERATED_QUANTITIES]);
    model->constrained[which] = count;
  }
  return check_memory(model, error);
}

/* ---------------------------------------------------------------- data */

static int32_t bind_values(binding *to, const char *data, ulam_text *error) {
  const ulam_program *program = to->model->program;
  ulam_values *values = ulam_values_read(data, ULAM_DATA, error);
  if (values == NULL) return error && error->length ? ULAM_REJECT : ulam_no_memory(error);
  int64_t count = 0; /* the variables of the data block are the first */
  while (count < program->n_variables && program->variables[count].block == ULAM_BLOCK_DATA) ++count;
  const ulam_values_target target = {to, dims, room, stored};
  int32_t status = ulam_values_bind(values, program->variables, count, &target, error);
  if (status == ULAM_NO_MEMORY) ulam_no_memory(error);
  ulam_values_free(values);
  return status;
}

static int32_t prepare(binding *to, uint32_t seed, ulam_text *error) {
  ulam_model *model = to->model;
  const ulam_program_unit *setup = setup_of(model);
  ulam_rng rng;
  ulam_rng_begin(&rng, seed);
  to->ctx->rng = (struct bitgen *)&rng.generator.interface;
  int32_t status = ulam_run_bind(to->ctx, setup->prepare, model->data, model->memory);
  to->ctx->rng = NULL;
  return status ? ulam_run_failure(setup, status, to->ctx, error) : ULAM_OK;
}

int32_t ulam_bind_data(ulam_model *model, const char *data, uint32_t seed, ulam_text *error) {
  binding to = {model, ulam_model_take(model)};
  if (to.ctx == NULL) return ulam_no_memory(error);
  int32_t status = bind_values(&to, data, error);
  if (status == ULAM_OK) status = prepare(&to, seed, error);
  if (status == ULAM_OK) status = find_sizes(&to, error);
  ulam_model_give(model, to.ctx);
  return status;
}
