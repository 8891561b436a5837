/* Values of variables from JSON, by the rules and in the words of runtime/data.py. One table of cases,
 * tests/reference/data_cases.jsonl, tests both.
 */
#ifndef ULAM_VALUES_H
#define ULAM_VALUES_H

#include "program.h"

typedef struct ulam_values ulam_values;

/* What values are for: how messages call those that do not come from a file (runtime/data.py has them, too). */
#define ULAM_DATA "data"
#define ULAM_INITIAL_VALUES "initial values"
#define ULAM_PARAMETER_VALUES "parameter values"

/* `source`: JSON text, which begins with { or [; the path of a file of it; NULL and blanks are no values. NULL: `error`
 * says why, or is empty if there is no memory. */
ulam_values *ulam_values_read(const char *source, const char *what, ulam_text *error);
void ulam_values_free(ulam_values *values);

/* Of NULL and blanks, and of {}, 0. */
int64_t ulam_values_count(const ulam_values *values);
/* Whether there is a value for a variable; of a field of a tuple, `t:1`, whether there is one for the tuple. */
int ulam_values_has(const ulam_values *values, const char *name);
/* How messages call the source: a path, or `what`. */
const char *ulam_values_name(const ulam_values *values);

/* All names, in their order, with commas. */
void ulam_values_say_names(const ulam_values *values, ulam_text *text);

/* Who wants the values. Functions return 0, or 1 where `problem` says what is wrong, to be read after "variable 'x'":
 * "has a wrong size: ...". */
typedef struct {
  void *user;
  /* The sizes of a variable, by what was stored before. None of them is negative. */
  int32_t (*dims)(void *user, const ulam_program_variable *variable, int64_t *dims, ulam_text *problem);
  /* Where the values go: int32_t or double, as many as the product of `dims`, in the compiled order. NULL: out of
   * memory. */
  void *(*room)(void *user, const ulam_program_variable *variable, const int64_t *dims);
  /* They are there. May be NULL. */
  int32_t (*stored)(void *user, const ulam_program_variable *variable, const int64_t *dims, ulam_text *problem);
} ulam_values_target;

/* The values of variables, in their order. All problems of all variables are told at once, one in each line. Once an int
 * variable is wrong, sizes can no longer be trusted: for later ones `dims` is not called.
 * ULAM_OK, ULAM_REJECT or, out of memory, ULAM_NO_MEMORY (native_handle.h). */
int32_t ulam_values_bind(const ulam_values *values, const ulam_program_variable *variables, int64_t count,
                         const ulam_values_target *target, ulam_text *error);
/* The same of some of the variables: those of `chosen`, which has their numbers. */
int32_t ulam_values_bind_chosen(const ulam_values *values, const ulam_program_variable *variables,
                                const int64_t *chosen, int64_t count, const ulam_values_target *target,
                                ulam_text *error);

/* What is said of names that none of the variables has; nothing if there are none. `where` says what has the names that
 * mean something: "declared in the data block". */
void ulam_values_unused(const ulam_values *values, const ulam_program_variable *variables, int64_t count,
                        const char *where, ulam_text *warning);

/* "has a negative size in its dims (2,-1); declared ...", for a variable whose sizes came out so. */
void ulam_values_negative_size(const ulam_program_variable *variable, const int64_t *dims, ulam_text *problem);

#endif
