/* Parts of models one by one, for tests and measurements. */
#ifndef ULAM_MODEL_TRIAL_H
#define ULAM_MODEL_TRIAL_H

#include "values.h"

/* Reads values of `count` variables, whose sizes are one after the other in `dims`, to `out`, which has room for each
 * variable's. `message` has room for `room` bytes: why not, or, of a good source, what is said of unused names.
 * ULAM_OK, ULAM_REJECT or ULAM_NO_MEMORY. */
ULAM_API int32_t ulam_try_values(const char *source, const char *what, const ulam_program_variable *variables,
                                 int64_t count, const int64_t *dims, void *const *out, char *message, int64_t room);

#endif
