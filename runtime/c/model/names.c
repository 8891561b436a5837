/* Names of a model's values, and their order: the rules of runtime/names.py. */
#include <stdlib.h>
#include <string.h>

#include "model.h"

int64_t ulam_product(const int64_t *sizes, int32_t count) {
  int64_t product = 1;
  int has_none = 0;
  for (int32_t i = 0; i < count; ++i) {
    has_none |= sizes[i] == 0;
    if (__builtin_mul_overflow(product, sizes[i], &product)) product = INT64_MAX;
  }
  return has_none ? 0 : product;
}

/* The next of the indices below `sizes`: those from `first` on in steps of `step`, the first of them fastest. Returns 0
 * behind the last. */
static int next_index(int64_t *index, const int64_t *sizes, int32_t count, int32_t first, int32_t step) {
  for (int32_t i = 0, k = first; i < count; ++i, k += step) {
    if (++index[k] < sizes[k]) return 1;
    index[k] = 0;
  }
  return 0;
}

/* ---------------------------------------------------------------- tuples */

/* Where the first `level` numbers of a field's name end: 2 of `t:1:2` is behind `t:1`, for 1. */
static size_t prefix_length(const char *name, int32_t level) {
  size_t length = strcspn(name, ":");
  while (level-- > 0 && name[length]) length += 1 + strcspn(name + length + 1, ":");
  return length;
}

static int are_together(const ulam_program_variable *one, const ulam_program_variable *other, int32_t level) {
  size_t length = prefix_length(one->name, level);
  return one->block == other->block && other->field_ranks[0] && length == prefix_length(other->name, level) &&
         memcmp(one->name, other->name, length) == 0;
}

typedef struct {
  const ulam_model *model;
  ulam_visit visit;
  void *user;
  int64_t index[ULAM_MOST_RANK];
} walk;

static int64_t size_of(const ulam_model *model, int64_t variable) {
  return ulam_product(model->dims[variable], ulam_variable_rank(&model->program->variables[variable]));
}

/* The fields from `begin` to `end` of a tuple, or of each in an array of tuples. */
static int in_tuple(walk *all, int64_t begin, int64_t end, int32_t level, int32_t skipped, int64_t first) {
  const ulam_program_variable *variables = all->model->program->variables;
  if (!variables[begin].field_ranks[level]) return all->visit(all->user, begin, all->index, skipped, first);
  int32_t rank = ulam_field_rank(&variables[begin], level);
  const int64_t *sizes = all->model->dims[begin] + skipped;
  if (ulam_product(sizes, rank) == 0) return 1;
  memset(all->index + skipped, 0, (size_t)rank * sizeof *all->index);
  do {
    int64_t at = first;
    for (int64_t k = begin, next; k < end; k = next) {
      int64_t here = at;
      for (next = k; next < end && are_together(&variables[k], &variables[next], level + 1); ++next)
        at += size_of(all->model, next);
      if (!in_tuple(all, k, next, level + 1, skipped + rank, here)) return 0;
    }
  } while (next_index(all->index + skipped, sizes, rank, rank - 1, -1));
  return 1;
}

int ulam_in_order(const ulam_model *model, int tp, int gq, ulam_visit visit, void *user) {
  const ulam_program *program = model->program;
  walk all = {.model = model, .visit = visit, .user = user};
  for (int64_t i = 0, next, first = 0; i < program->n_variables; i = next) {
    const ulam_program_variable *variable = &program->variables[i];
    next = i + 1;
    if (!ulam_is_written(variable, tp, gq)) continue;
    int64_t here = first;
    first += size_of(model, i);
    if (variable->field_ranks[0]) {
      for (; next < program->n_variables && are_together(variable, &program->variables[next], 0); ++next)
        first += size_of(model, next);
      if (!in_tuple(&all, i, next, 0, 0, here)) return 0;
    } else if (!visit(user, i, all.index, 0, here)) {
      return 0;
    }
  }
  return 1;
}

/* ---------------------------------------------------------------- names */

typedef struct {
  const ulam_model *model;
  ulam_text *names;
} naming;

/* `a.2:1.3`: the first indices are those of arrays of tuples. */
static int add_part(ulam_text *names, const ulam_program_variable *variable, const int64_t *tuples, const int64_t *index,
                    int32_t rank, const char *part) {
  const char *at = variable->name;
  size_t length = prefix_length(at, 0);
  int has_room = ulam_text_add(names, names->length ? ",%.*s" : "%.*s", (int)length, at);
  for (int32_t level = 0; variable->field_ranks[level]; ++level) {
    for (int32_t i = ulam_field_rank(variable, level); i > 0; --i)
      has_room &= ulam_text_add(names, ".%lld", (long long)*tuples++ + 1);
    at += length;
    length = 1 + strcspn(at + 1, ":");
    has_room &= ulam_text_add(names, "%.*s", (int)length, at);
  }
  for (int32_t i = 0; i < rank; ++i) has_room &= ulam_text_add(names, ".%lld", (long long)index[i] + 1);
  return has_room & ulam_text_add(names, "%s", part);
}

/* An element, or both parts of one. */
static int add_name(ulam_text *names, const ulam_program_variable *variable, const int64_t *tuples, const int64_t *index,
                    int32_t rank) {
  if (!variable->is_complex) return add_part(names, variable, tuples, index, rank, "");
  return add_part(names, variable, tuples, index, rank, ".real") &&
         add_part(names, variable, tuples, index, rank, ".imag");
}

/* `a.1.1,a.2.1,...`: column-major over all dimensions. Returns 0 if out of memory. */
static int add_constrained(void *user, int64_t number, const int64_t *tuples, int32_t skipped, int64_t first) {
  (void)first;
  const naming *to = user;
  const ulam_program_variable *variable = &to->model->program->variables[number];
  const int64_t *dims = to->model->dims[number] + skipped;
  int64_t index[ULAM_MOST_RANK] = {0};
  int32_t rank = ulam_variable_rank(variable) - variable->is_complex - skipped;
  if (ulam_product(dims, rank) == 0) return 1;
  do {
    if (!add_name(to->names, variable, tuples, index, rank)) return 0;
  } while (next_index(index, dims, rank, 0, 1));
  return 1;
}

/* In the order of the unconstrained vector: array elements one after the other, each column-major. */
static int add_unconstrained(void *user, int64_t number, const int64_t *tuples, int32_t skipped, int64_t first) {
  (void)first;
  const naming *to = user;
  const ulam_program_variable *variable = &to->model->program->variables[number];
  const int64_t *dims = to->model->dims[number];
  int64_t index[ULAM_MOST_RANK] = {0}, sizes[ULAM_MOST_RANK];
  int32_t arrays = variable->array_rank - skipped, inner = variable->unconstrained_rank;
  int64_t count = dims[ulam_variable_rank(variable)];
  if (count == 0) return 1;
  for (int32_t i = 0; i < arrays; ++i) sizes[i] = dims[skipped + i];
  if (variable->is_complex) count /= 2;
  if (inner == 1) sizes[arrays] = count / ulam_product(dims, variable->array_rank);
  for (int32_t i = 0; inner == 2 && i < 2; ++i)
    sizes[arrays + i] = dims[variable->array_rank + i] - variable->shorter[i];
  do {
    if (!add_name(to->names, variable, tuples, index, arrays + inner)) return 0;
  } while (next_index(index + arrays, sizes + arrays, inner, 0, 1) || next_index(index, sizes, arrays, arrays - 1, -1));
  return 1;
}

/* Kept where the first who asked for them put them. */
static const char *kept(ulam_model *model, char **place, int tp, int gq, int unconstrained) {
  char *found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (found) return found;
  ulam_text names = {0};
  int has_room = ulam_text_append(&names, "", 0);
  naming to = {model, &names};
  has_room = has_room && ulam_in_order(model, tp, gq, unconstrained ? add_unconstrained : add_constrained, &to);
  if (!has_room) {
    free(names.bytes);
    return NULL;
  }
  if (__atomic_compare_exchange_n(place, &found, names.bytes, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
    return names.bytes;
  free(names.bytes);
  return found;
}

const char *ulam_model_names(ulam_model *model, int tp, int gq) {
  return kept(model, &model->names[!!tp + 2 * !!gq], tp, gq, 0);
}

const char *ulam_model_unconstrained_names(ulam_model *model) {
  return kept(model, &model->unconstrained_names, 0, 0, 1);
}

/* ---------------------------------------------------------------- order */

/* Only arrays of containers and of tuples, and those of more than one dimension, are kept otherwise than they are
 * written. */
static int is_reordered(const ulam_program_variable *variable) {
  return (variable->array_rank && ulam_variable_rank(variable) - variable->is_complex > 1) ||
         variable->field_ranks[strspn(variable->field_ranks, "0")];
}

int ulam_reorders(const ulam_model *model, int tp, int gq) {
  for (int64_t i = 0; i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    if (ulam_is_written(variable, tp, gq) && is_reordered(variable)) return 1;
  }
  return 0;
}

/* How far apart neighbours are in the compiled order: arrays row-major, a matrix in them column-major. The two parts of a
 * complex number are neighbours. */
static void compiled_strides(const ulam_program_variable *variable, const int64_t *dims, int64_t *strides) {
  int32_t rank = ulam_variable_rank(variable);
  int64_t stride = 1;
  if (variable->is_complex) {
    strides[--rank] = 1;
    stride = 2;
  }
  if (variable->inner_rank == 2) {
    strides[rank - 2] = stride;
    strides[rank - 1] = stride * dims[rank - 2];
    stride *= dims[rank - 2] * dims[rank - 1];
    rank -= 2;
  }
  while (rank-- > 0) {
    strides[rank] = stride;
    stride *= dims[rank];
  }
}

typedef struct {
  const ulam_model *model;
  const double *compiled, *output;
  double *to_compiled, *to_output;
  int64_t written;
} moves;

static int move(void *user, int64_t number, const int64_t *tuples, int32_t skipped, int64_t first) {
  moves *all = user;
  const ulam_program_variable *variable = &all->model->program->variables[number];
  const int64_t *dims = all->model->dims[number];
  int32_t rank = ulam_variable_rank(variable);
  int64_t size = ulam_product(dims + skipped, rank - skipped), index[ULAM_MOST_RANK] = {0}, strides[ULAM_MOST_RANK];
  if (size == 0) return 1;
  compiled_strides(variable, dims, strides);
  for (int32_t d = 0; d < skipped; ++d) first += tuples[d] * strides[d];
  for (int64_t k = 0; k < size; ++k) {
    int64_t place = first;
    if (is_reordered(variable)) {
      for (int32_t d = skipped; d < rank; ++d) place += index[d - skipped] * strides[d];
      int32_t own = rank - variable->is_complex - skipped;
      int is_first_part = variable->is_complex && (index[own] ^= 1);
      if (!is_first_part) next_index(index, dims + skipped, own, 0, 1);
    } else {
      place += k;
    }
    if (all->to_output)
      all->to_output[all->written + k] = all->compiled[place];
    else
      all->to_compiled[place] = all->output[all->written + k];
  }
  all->written += size;
  return 1;
}

void ulam_to_output(const ulam_model *model, int tp, int gq, const double *compiled, double *output) {
  moves all = {.model = model, .compiled = compiled, .to_output = output};
  ulam_in_order(model, tp, gq, move, &all);
}

void ulam_from_output(const ulam_model *model, const double *output, double *compiled) {
  moves all = {.model = model, .output = output, .to_compiled = compiled};
  ulam_in_order(model, 0, 0, move, &all);
}
