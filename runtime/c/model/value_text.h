/* What messages say of a value that does not fit: only made when there is something to say. All values are JSON text
 * without errors. */
#ifndef ULAM_VALUE_TEXT_H
#define ULAM_VALUE_TEXT_H

#include "json_text.h"
#include "program.h"

static inline int ulam_has_zero(const int64_t *sizes, int32_t count) {
  for (int32_t k = 0; k < count; ++k)
    if (sizes[k] == 0) return 1;
  return 0;
}

/* Whether a value can be what a variable declares, but for its size. 0: `problem` says why not. */
int ulam_value_check(const ulam_program_variable *variable, const char *value, const ulam_json_shape *shape,
                     ulam_text *problem);
/* Whether its shape is `dims`. 0: `problem` says what it is. */
int ulam_value_check_dims(const ulam_program_variable *variable, const char *value, const ulam_json_shape *shape,
                          const int64_t *dims, ulam_text *problem);

/* The number that a leaf stands for, which is a number or a text; texts are NaN and infinities. */
double ulam_leaf_real(const char *leaf);

const char *ulam_kind_text(const char *value); /* "an array" */
void ulam_say_dims(ulam_text *text, const int64_t *dims, int32_t count); /* (2,3) */
/* UTF-8 of some length: with escapes for halves of surrogate pairs. */
void ulam_say_text(ulam_text *text, const char *bytes, int64_t length);

#endif
