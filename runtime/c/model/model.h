/* The private part of a model. */
#ifndef ULAM_MODEL_H
#define ULAM_MODEL_H

#include <pthread.h>

#include "../context_pool.h"
#include "../native_handle.h"
#include "program.h"

enum { ULAM_LOCATE = 3 }; /* of a hot unit: an error happened, the unit `locate` tells which; see library/statuses.py */

enum { ULAM_MOST_RANK = 64 }; /* of a variable: as NumPy's */

struct bs_model {
  ulam_program *program;
  ulam_bound_memory *memory; /* of bound data and of what units make of them */
  int64_t *data;             /* the setup's table: data and transformed data */
  int64_t **dims;            /* of each variable, in the same order; then how many unconstrained values it has */
  int64_t n;                 /* unconstrained values */
  int64_t constrained[4];    /* values, by `tp` + 2 `gq` */
  ulam_model_unit units[ULAM_UNITS];
  int32_t ready[ULAM_UNITS];
  pthread_mutex_t lock; /* of what is made when it is first asked for; nothing of the caller's runs under it */
  ulam_context_pool contexts;
  char *names[4], *unconstrained_names;
};

/* Products of sizes: INT64_MAX where they have no room. */
int64_t ulam_product(const int64_t *sizes, int32_t count);

/* Whether a block is among those asked for. */
static inline int ulam_is_written(const ulam_program_variable *variable, int tp, int gq) {
  return variable->block == ULAM_BLOCK_PARAMETERS || (tp && variable->block == ULAM_BLOCK_TRANSFORMED_PARAMETERS) ||
         (gq && variable->block == ULAM_BLOCK_GENERATED_QUANTITIES);
}

/* Variables in the order in which users get their values: one in an array of tuples comes once for each of the tuples, with
 * its place in the array: `index`, of `skipped` numbers. `first`: where its values begin in the compiled order. 0 from
 * `visit` ends it. */
typedef int (*ulam_visit)(void *user, int64_t variable, const int64_t *index, int32_t skipped, int64_t first);
int ulam_in_order(const ulam_model *model, int tp, int gq, ulam_visit visit, void *user);

/* Constrained values from the compiled order (runtime/names.py) to BridgeStan's, or back. */
int ulam_reorders(const ulam_model *model, int tp, int gq);
void ulam_to_output(const ulam_model *model, int tp, int gq, const double *compiled, double *output);
void ulam_from_output(const ulam_model *model, const double *output, double *compiled);

/* The unconstrained form of constrained values in the compiled order. */
int32_t ulam_unconstrain_compiled(ulam_model *model, const double *compiled, double *x, ulam_text *error);

/* Binds data: what a model is before its units are used. ULAM_OK, or why not. */
int32_t ulam_bind_data(ulam_model *model, const char *data, uint32_t seed, ulam_text *error);

/* The message of a failure of a unit, as `ErrorSite.error` writes it. Returns ULAM_REJECT or ULAM_FATAL. */
int32_t ulam_failure_text(const ulam_program_unit *unit, int32_t status, int64_t site, const double values[4],
                          const char *message, ulam_text *text);
/* That of the run that `ctx` had last. */
int32_t ulam_run_failure(const ulam_program_unit *unit, int32_t status, const ulam_context *ctx, ulam_text *text);

/* What was printed goes to whom it is for. */
void ulam_show(ulam_model *model, const char *text, int64_t length);

char *ulam_copy(const char *text); /* NULL: out of memory */
int32_t ulam_no_memory(ulam_text *error); /* says so, and returns ULAM_NO_MEMORY */

#endif
