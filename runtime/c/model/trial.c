#include "trial.h"

#include <stdlib.h>
#include <string.h>

#include "../native_handle.h"
#include "value_text.h"

typedef struct {
  const ulam_program_variable *variables;
  const int64_t *dims;
  void *const *out;
} trial;

static const int64_t *sizes_of(const trial *all, const ulam_program_variable *variable) {
  const int64_t *dims = all->dims;
  for (const ulam_program_variable *other = all->variables; other < variable; ++other) dims += ulam_variable_rank(other);
  return dims;
}

static int32_t dims_of(void *user, const ulam_program_variable *variable, int64_t *dims, ulam_text *problem) {
  const int64_t *sizes = sizes_of(user, variable);
  int32_t is_wrong = 0;
  for (int32_t k = 0; k < ulam_variable_rank(variable); ++k) is_wrong |= (dims[k] = sizes[k]) < 0;
  if (is_wrong) ulam_values_negative_size(variable, dims, problem);
  return is_wrong;
}

static void *room_of(void *user, const ulam_program_variable *variable, const int64_t *dims) {
  const trial *all = user;
  (void)dims;
  return all->out[variable - all->variables];
}

int32_t ulam_try_values(const char *source, const char *what, const ulam_program_variable *variables, int64_t count,
                        const int64_t *dims, void *const *out, char *message, int64_t room) {
  trial all = {variables, dims, out};
  ulam_values_target target = {&all, dims_of, room_of, NULL};
  ulam_text text = {0};
  ulam_values *values = ulam_values_read(source, what, &text);
  int32_t status = text.length ? ULAM_REJECT : ULAM_NO_MEMORY;
  if (values) {
    status = ulam_values_bind(values, variables, count, &target, &text);
    if (status == ULAM_OK) ulam_values_unused(values, variables, count, "declared in the data block", &text);
    ulam_values_free(values);
  }
  int64_t length = text.length < room - 1 ? text.length : room - 1;
  if (length) memcpy(message, text.bytes, (size_t)length);
  message[length] = '\0';
  free(text.bytes);
  return status;
}
