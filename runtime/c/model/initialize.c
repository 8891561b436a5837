/* Parameters by name, and initial values: by the rules of runtime/optimizers/initial_values.py. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "values.h"

static const char advice[] =
    "Try specifying initial values, reducing ranges of constrained values, or reparameterizing the model.";

/* ---------------------------------------------------------------- values by name */

/* Parameters and where they are in the compiled order. */
typedef struct {
  ulam_model *model;
  int64_t first, count; /* of the variables */
  int64_t *starts; /* of each, and the end */
  double *values; /* constrained */
  char *is_given;
} parameters;

static void forget(parameters *found) {
  free(found->starts);
  free(found->values);
  free(found->is_given);
}

static int find(parameters *found, ulam_model *model) {
  const ulam_program *program = model->program;
  memset(found, 0, sizeof *found);
  found->model = model;
  for (int64_t i = 0; i < program->n_variables; ++i) {
    if (program->variables[i].block != ULAM_BLOCK_PARAMETERS) continue;
    if (found->count++ == 0) found->first = i;
  }
  found->starts = calloc((size_t)found->count + 1, sizeof(int64_t));
  found->values = malloc((size_t)(model->constrained[0] + 1) * sizeof(double));
  found->is_given = calloc((size_t)found->count + 1, 1);
  if (!found->starts || !found->values || !found->is_given) return 0;
  for (int64_t i = 0; i < found->count; ++i) {
    int32_t rank = ulam_variable_rank(&program->variables[found->first + i]);
    const int64_t *dims = model->dims[found->first + i];
    found->starts[i + 1] = found->starts[i] + ulam_product(dims, rank);
  }
  return 1;
}

static const ulam_program_variable *parameter(const parameters *found, int64_t i) {
  return &found->model->program->variables[found->first + i];
}

static int64_t number_of(const parameters *found, const ulam_program_variable *variable) {
  return variable - parameter(found, 0);
}

static int32_t dims(void *user, const ulam_program_variable *variable, int64_t *dims, ulam_text *problem) {
  (void)problem;
  const parameters *found = user;
  const int64_t *known = found->model->dims[found->first + number_of(found, variable)];
  memcpy(dims, known, (size_t)ulam_variable_rank(variable) * sizeof *dims);
  return 0;
}

static void *room(void *user, const ulam_program_variable *variable, const int64_t *dims) {
  (void)dims;
  const parameters *found = user;
  return found->values + found->starts[number_of(found, variable)];
}

static int32_t stored(void *user, const ulam_program_variable *variable, const int64_t *dims, ulam_text *problem) {
  (void)dims, (void)problem;
  const parameters *found = user;
  found->is_given[number_of(found, variable)] = 1;
  return 0;
}

/* Values of JSON text into `found`: of all parameters, or of those that there are values for. */
static int32_t read(parameters *found, const char *json, const char *what, int all, int64_t *given, ulam_text *error) {
  const ulam_values_target target = {found, dims, room, stored};
  ulam_values *values = ulam_values_read(json, what, error);
  if (values == NULL) return error && error->length ? ULAM_REJECT : ulam_no_memory(error);
  int64_t *chosen = malloc((size_t)(found->count + 1) * sizeof *chosen), count = 0;
  int32_t status = chosen ? ULAM_OK : ULAM_NO_MEMORY;
  for (int64_t i = 0; chosen && i < found->count; ++i)
    if (all || ulam_values_has(values, parameter(found, i)->name)) chosen[count++] = i;
  if (status == ULAM_OK && !all && count == 0 && ulam_values_count(values)) {
    ulam_text_add(error, "%s: no initial value is for a parameter of the model", ulam_values_name(values));
    for (int64_t i = 0; i < found->count; ++i)
      ulam_text_add(error, i ? ", %s" : " (%s", parameter(found, i)->name);
    ulam_text_say(error, found->count ? "), found " : " (), found ");
    if (error) ulam_values_say_names(values, error);
    status = ULAM_REJECT;
  }
  if (status == ULAM_OK)
    status = ulam_values_bind_chosen(values, parameter(found, 0), chosen, count, &target, error);
  int64_t wrong = 0;
  for (int64_t i = 0; status == ULAM_OK && !all && i < count; ++i) {
    int64_t k = found->starts[chosen[i]], end = found->starts[chosen[i] + 1];
    while (k < end && isfinite(found->values[k])) ++k;
    if (k == end) continue;
    ulam_text_add(error, "%s%s: the initial value of '%s' is not finite", wrong++ ? "\n" : "",
                  ulam_values_name(values), parameter(found, chosen[i])->name);
  }
  if (wrong) status = ULAM_REJECT;
  if (status == ULAM_NO_MEMORY) ulam_no_memory(error);
  *given = count;
  free(chosen);
  ulam_values_free(values);
  return status;
}

int32_t ulam_model_unconstrain_json(ulam_model *model, const char *json, double *x, ulam_text *error) {
  parameters found;
  int64_t given;
  int32_t status =
      find(&found, model) ? read(&found, json, ULAM_PARAMETER_VALUES, 1, &given, error) : ulam_no_memory(error);
  if (status == ULAM_OK) status = ulam_unconstrain_compiled(model, found.values, x, error);
  forget(&found);
  return status;
}

/* ---------------------------------------------------------------- initial values */

typedef struct {
  parameters given;
  int64_t count; /* of the parameters that are given */
  double *drawn, *merged, *unconstrained;
  char *refused; /* what was said of the last values that did not fit */
} start;

/* The parameter whose value is refused where the last run of `unconstrain` failed: the last one that is refused there as
 * NaN. One before it may be its bound. -1: none. */
static int64_t guilty(const start *from, ulam_context *ctx, const ulam_model_unit *unit) {
  const parameters *given = &from->given;
  int64_t site = ctx->error_site;
  for (int64_t i = given->count; i-- > 0;) {
    memcpy(from->merged, from->drawn, (size_t)given->starts[given->count] * sizeof(double));
    for (int64_t k = given->starts[i]; k < given->starts[i + 1]; ++k) from->merged[k] = __builtin_nan("");
    int32_t status = ulam_run_unconstrain(ctx, unit->code->evaluate, unit->bound, from->merged, from->unconstrained);
    if (status != ULAM_OK && ctx->error_site == site) return i;
  }
  return -1;
}

typedef struct {
  const start *from;
  double *x;
  int64_t at; /* in it */
} taking;

/* The unconstrained form of a parameter that is given, of one tuple of an array. */
static int take_given(void *user, int64_t number, const int64_t *index, int32_t skipped, int64_t first) {
  (void)index, (void)first;
  taking *all = user;
  const parameters *given = &all->from->given;
  const int64_t *dims = given->model->dims[number];
  int64_t count = dims[ulam_variable_rank(&given->model->program->variables[number])];
  if (count) count /= ulam_product(dims, skipped);
  if (given->is_given[number - given->first])
    memcpy(all->x + all->at, all->from->unconstrained + all->at, (size_t)count * sizeof(double));
  all->at += count;
  return 1;
}

/* Puts the values given into the places of those drawn. ULAM_REJECT: they do not fit what was drawn; ULAM_FATAL: they never
 * will. */
static int32_t combine(start *from, double *x, ulam_text *error) {
  parameters *given = &from->given;
  ulam_model *model = given->model;
  const ulam_model_unit *constrain = ulam_model_unit_of(model, ULAM_UNIT_CONSTRAIN, error);
  const ulam_model_unit *unconstrain = ulam_model_unit_of(model, ULAM_UNIT_UNCONSTRAIN, error);
  if (constrain == NULL || unconstrain == NULL) return ULAM_FATAL;
  ulam_context *ctx = ulam_model_take(model);
  if (ctx == NULL) return ulam_no_memory(error);
  int32_t status = ulam_run_constrain(ctx, constrain->code->evaluate, constrain->bound, x, from->drawn, 0, 0);
  if (status != ULAM_OK) {
    status = ulam_run_failure(constrain->code, status, ctx, error);
    ulam_model_give(model, ctx);
    return status;
  }
  for (int64_t i = 0; i < given->count; ++i) {
    const double *source = given->is_given[i] ? given->values : from->drawn;
    int64_t first = given->starts[i];
    memcpy(from->merged + first, source + first, (size_t)(given->starts[i + 1] - first) * sizeof(double));
  }
  status = ulam_run_unconstrain(ctx, unconstrain->code->evaluate, unconstrain->bound, from->merged, from->unconstrained);
  if (status == ULAM_OK) {
    taking all = {from, x, 0};
    ulam_in_order(model, 0, 0, take_given, &all);
  } else {
    ulam_text told = {0};
    status = ulam_run_failure(unconstrain->code, status, ctx, &told);
    int64_t which = guilty(from, ctx, unconstrain);
    int is_given = which >= 0 && given->is_given[which];
    const char *text = told.bytes ? told.bytes : "";
    /* The same message for two draws: the bounds do not depend on what is drawn. */
    int never = from->count == given->count || (from->refused && strcmp(from->refused, text) == 0);
    if (is_given && never) {
      ulam_text_add(error, ULAM_INITIAL_VALUES ": the initial value of '%s' is not in its support: %s",
                    parameter(given, which)->name, text);
      status = ULAM_FATAL;
    } else {
      if (is_given) ulam_text_add(error, "initial value of '%s': ", parameter(given, which)->name);
      if (which >= 0 && !is_given)
        ulam_text_add(error, "'%s', drawn, does not fit the initial values given: ", parameter(given, which)->name);
      ulam_text_say(error, text);
    }
    free(from->refused);
    from->refused = told.bytes;
  }
  ulam_model_give(model, ctx);
  return status;
}

/* Whether the log density and its gradient are finite. */
static int32_t check(ulam_model *model, const double *x, int jacobian, double *gradient, ulam_text *error) {
  double lp;
  int32_t status = ulam_model_density(model, 1, jacobian, x, &lp, gradient, NULL, error);
  if (status != ULAM_OK) return status;
  if (!isfinite(lp)) {
    ulam_text_add(error, "the log density is not finite, %g", lp);
    return ULAM_REJECT;
  }
  for (int64_t i = 0; i < model->n; ++i) {
    if (isfinite(gradient[i])) continue;
    ulam_text_add(error, "element %lld of the gradient is not finite, %g", (long long)i + 1, gradient[i]);
    return ULAM_REJECT;
  }
  return ULAM_OK;
}

static int32_t draw(start *from, ulam_rng *rng, double radius, int tries, int jacobian, double *x, ulam_text *error) {
  ulam_model *model = from->given.model;
  double *gradient = malloc((size_t)(model->n + 1) * sizeof *gradient);
  if (gradient == NULL) return ulam_no_memory(error);
  int is_given = from->count == from->given.count && from->count > 0;
  if (is_given || radius == 0 || model->n == 0) tries = 1;
  ulam_text told = {0};
  int32_t status = ULAM_REJECT;
  for (int i = 0; status == ULAM_REJECT && i < tries; ++i) {
    told.length = 0;
    for (int64_t k = 0; k < model->n; ++k)
      x[k] = radius == 0 ? 0 : -radius + 2 * radius * ulam_pcg_uniform(&rng->generator);
    status = from->count ? combine(from, x, &told) : ULAM_OK;
    if (status == ULAM_OK) status = check(model, x, jacobian, gradient, &told);
  }
  free(gradient);
  const char *text = told.bytes && told.length ? told.bytes : "";
  if (status == ULAM_REJECT) {
    ulam_text_say(error, "initialization failed ");
    if (is_given)
      ulam_text_say(error, "at the initial values given");
    else if (radius == 0)
      ulam_text_say(error, "at the initial point 0");
    else
      ulam_text_add(error, "between (%g, %g)", -radius, radius);
    if (tries > 1)
      ulam_text_add(error, " after %d attempts: the last one: %s\n%s", tries, text, advice);
    else
      ulam_text_add(error, ": %s", text);
  } else if (status != ULAM_OK) {
    ulam_text_say(error, text);
  }
  free(told.bytes);
  return status;
}

int32_t ulam_model_initialize(ulam_model *model, const char *json, ulam_rng *rng, double radius, int tries,
                              int jacobian, double *x, ulam_text *error) {
  if (!(isfinite(radius) && radius >= 0)) {
    ulam_text_add(error, "the radius of initial values must be a finite number, at least 0, found %g", radius);
    return ULAM_REJECT;
  }
  if (tries < 1) {
    ulam_text_add(error, "there must be at least 1 try for initial values, found %d", tries);
    return ULAM_REJECT;
  }
  start from = {0};
  int32_t status =
      find(&from.given, model) ? read(&from.given, json, ULAM_INITIAL_VALUES, 0, &from.count, error) : ULAM_NO_MEMORY;
  if (status == ULAM_OK && from.count) {
    size_t constrained = (size_t)(model->constrained[0] + 1) * sizeof(double);
    from.drawn = malloc(constrained);
    from.merged = malloc(constrained);
    from.unconstrained = malloc((size_t)(model->n + 1) * sizeof(double));
    if (!from.drawn || !from.merged || !from.unconstrained) status = ULAM_NO_MEMORY;
  }
  if (status == ULAM_NO_MEMORY) ulam_no_memory(error);
  if (status == ULAM_OK) status = draw(&from, rng, radius, tries, jacobian, x, error);
  forget(&from.given);
  free(from.drawn);
  free(from.merged);
  free(from.unconstrained);
  free(from.refused);
  return status;
}
