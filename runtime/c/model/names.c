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

static int add_name(ulam_text *names, const char *name, const int64_t *index, int32_t rank) {
  int has_room = ulam_text_add(names, names->length ? ",%s" : "%s", name);
  for (int32_t i = 0; i < rank; ++i) has_room &= ulam_text_add(names, ".%lld", (long long)index[i] + 1);
  return has_room;
}

/* `a.1.1,a.2.1,...`: column-major over all dimensions. Returns 0 if out of memory. */
static int add_constrained(ulam_text *names, const ulam_program_variable *variable, const int64_t *dims) {
  int64_t index[ULAM_MOST_RANK] = {0};
  int32_t rank = ulam_variable_rank(variable);
  if (ulam_product(dims, rank) == 0) return 1;
  do {
    if (!add_name(names, variable->name, index, rank)) return 0;
  } while (next_index(index, dims, rank, 0, 1));
  return 1;
}

/* In the order of the unconstrained vector: array elements one after the other, each column-major. */
static int add_unconstrained(ulam_text *names, const ulam_program_variable *variable, const int64_t *dims) {
  int64_t index[ULAM_MOST_RANK] = {0}, sizes[ULAM_MOST_RANK];
  int32_t arrays = variable->array_rank, inner = variable->unconstrained_rank;
  int64_t count = dims[ulam_variable_rank(variable)];
  if (count == 0) return 1;
  for (int32_t i = 0; i < arrays; ++i) sizes[i] = dims[i];
  if (inner == 1) sizes[arrays] = count / ulam_product(dims, arrays);
  for (int32_t i = 0; inner == 2 && i < 2; ++i) sizes[arrays + i] = dims[arrays + i] - variable->shorter[i];
  do {
    if (!add_name(names, variable->name, index, arrays + inner)) return 0;
  } while (next_index(index + arrays, sizes + arrays, inner, 0, 1) || next_index(index, sizes, arrays, arrays - 1, -1));
  return 1;
}

/* Kept where the first who asked for them put them. */
static const char *kept(ulam_model *model, char **place, int tp, int gq, int unconstrained) {
  char *found = __atomic_load_n(place, __ATOMIC_ACQUIRE);
  if (found) return found;
  ulam_text names = {0};
  int has_room = ulam_text_append(&names, "", 0);
  for (int64_t i = 0; has_room && i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    if (ulam_is_written(variable, tp, gq))
      has_room = (unconstrained ? add_unconstrained : add_constrained)(&names, variable, model->dims[i]);
  }
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

/* Only arrays of containers, and those of more than one dimension, are kept otherwise than they are written. */
static int is_reordered(const ulam_program_variable *variable) {
  return variable->array_rank && ulam_variable_rank(variable) > 1;
}

int ulam_reorders(const ulam_model *model, int tp, int gq) {
  for (int64_t i = 0; i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    if (ulam_is_written(variable, tp, gq) && is_reordered(variable)) return 1;
  }
  return 0;
}

/* How far apart neighbours are in the compiled order: arrays row-major, a matrix in them column-major. */
static void compiled_strides(const ulam_program_variable *variable, const int64_t *dims, int64_t *strides) {
  int32_t rank = ulam_variable_rank(variable);
  int64_t stride = 1;
  if (variable->inner_rank == 2) {
    strides[rank - 2] = 1;
    strides[rank - 1] = dims[rank - 2];
    stride = dims[rank - 2] * dims[rank - 1];
    rank -= 2;
  }
  while (rank-- > 0) {
    strides[rank] = stride;
    stride *= dims[rank];
  }
}

static void reorder(const ulam_model *model, int tp, int gq, const double *compiled, const double *output,
                    double *to_compiled, double *to_output) {
  for (int64_t i = 0, start = 0; i < model->program->n_variables; ++i) {
    const ulam_program_variable *variable = &model->program->variables[i];
    const int64_t *dims = model->dims[i];
    if (!ulam_is_written(variable, tp, gq)) continue;
    int32_t rank = ulam_variable_rank(variable);
    int64_t size = ulam_product(dims, rank), index[ULAM_MOST_RANK] = {0}, strides[ULAM_MOST_RANK];
    if (size == 0) continue;
    compiled_strides(variable, dims, strides);
    for (int64_t k = 0; k < size; ++k) {
      int64_t place = k;
      if (is_reordered(variable)) {
        place = 0;
        for (int32_t d = 0; d < rank; ++d) place += index[d] * strides[d];
        next_index(index, dims, rank, 0, 1);
      }
      if (to_output)
        to_output[start + k] = compiled[start + place];
      else
        to_compiled[start + place] = output[start + k];
    }
    start += size;
  }
}

void ulam_to_output(const ulam_model *model, int tp, int gq, const double *compiled, double *output) {
  reorder(model, tp, gq, compiled, NULL, NULL, output);
}

void ulam_from_output(const ulam_model *model, const double *output, double *compiled) {
  reorder(model, 0, 0, NULL, output, compiled, NULL);
}
