/* A compiled program as tables, and a model: a program with its data. What BridgeStan's functions (bridgestan.h) and the
 * samplers of ulam's C interface are made of; it needs nothing of Python.
 *
 * The tables are those of runtime/libraries/program_tables.py, which has the same structures. In the process of ulam
 * they are made by it, and `load` compiles a unit when it is first used; in a library of its own they are constants, and
 * `load` is NULL.
 */
#ifndef ULAM_PROGRAM_H
#define ULAM_PROGRAM_H

#include "../pcg64dxsm.h"
#include "../services.h"

/* A place where a check may fail: `ErrorSite` of runtime/errors.py. Texts are UTF-8, "" if there is nothing to say. */
typedef struct {
  int32_t status, line, column; /* ULAM_REJECT or ULAM_FATAL */
  const char *message, *file, *function;
} ulam_program_site;

/* In the order of UNITS in passes/units.py. */
enum {
  ULAM_UNIT_SETUP,
  ULAM_UNIT_VALUE_PROPTO,
  ULAM_UNIT_VALUE_FULL,
  ULAM_UNIT_GRADIENT_PROPTO,
  ULAM_UNIT_GRADIENT_FULL,
  ULAM_UNIT_HESSIAN_VECTOR_PROPTO,
  ULAM_UNIT_HESSIAN_VECTOR_FULL,
  ULAM_UNIT_CONSTRAIN,
  ULAM_UNIT_UNCONSTRAIN,
  ULAM_UNIT_LOCATE,
  ULAM_UNIT_LOCATE_CONSTRAIN,
  ULAM_UNITS
};

/* Code of a program. Entries that a unit has not are NULL: `prepare` and `data_dims` are of the setup, which has no
 * `evaluate`. */
typedef struct {
  const char *name;
  void *evaluate, *bind, *prepare, *data_dims;
  int64_t n_slots, n_sites; /* of its table of bound data */
  const ulam_program_site *sites;
  int32_t draws;  /* random numbers */
  int32_t loaded; /* 0: all but the name comes with `load` */
} ulam_program_unit;

enum {
  ULAM_BLOCK_DATA,
  ULAM_BLOCK_TRANSFORMED_DATA,
  ULAM_BLOCK_PARAMETERS,
  ULAM_BLOCK_TRANSFORMED_PARAMETERS,
  ULAM_BLOCK_GENERATED_QUANTITIES
};

/* A variable of the program's blocks; a field of a tuple is one of its own, `t:1`. */
typedef struct {
  const char *name;
  const char *type;        /* as in Stan, without sizes: `array[] vector` */
  const char *declaration; /* `array[] vector y with sizes (N, K)`, for messages */
  int32_t block, is_int, is_complex; /* of a complex number the last size is 2: the real part and the imaginary one */
  int32_t array_rank, inner_rank; /* 0 scalars, 1 vectors, 2 matrices */
  int32_t is_bounded; /* an int with bounds: they are checked when it is bound, `data_dims` of n_variables + its number */
  int32_t slot; /* of data and transformed data: the value or its address, then the sizes; of complex numbers those of
                   the real parts, then those of the imaginary ones; else -1 */
  /* The unconstrained form of a parameter's inner value: of 1 dimension, which has what is left by the array's, or of 2,
   * which are shorter by `shorter`. */
  int32_t unconstrained_rank, shorter[2];
  /* Of a field of a tuple, for each number in its name the rank of the array of tuples that it is taken of, as a character
   * from '0' on: "01" of `t:1:2` if `t.1` is such an array. "" of others. These dimensions are the variable's first. */
  const char *field_ranks;
} ulam_program_variable;

static inline int32_t ulam_field_rank(const ulam_program_variable *variable, int32_t level) {
  return variable->field_ranks[level] ? variable->field_ranks[level] - '0' : 0;
}

static inline int32_t ulam_variable_rank(const ulam_program_variable *variable) {
  return variable->array_rank + variable->inner_rank + variable->is_complex;
}

enum { ULAM_LOAD_INTERRUPTED = 2 };

typedef struct ulam_program {
  const char *name; /* as BridgeStan tells it, with `_model` */
  const char *info; /* versions and options, lines */
  int64_t n_variables;
  const ulam_program_variable *variables; /* in the order of their blocks */
  ulam_program_unit *units;               /* ULAM_UNITS */
  /* Fills a unit's entry, all but `loaded`; returns 0, or something else and why. May be called by several threads at
   * once for the same unit, with no lock held. */
  int32_t (*load)(void *user, int64_t unit, ulam_text *error);
  void *user;
  void (*interrupted)(void); /* called where `load` returned ULAM_LOAD_INTERRUPTED, for the host to hear of it */
  void (*print)(const char *text, size_t length); /* see ulam_program_print_to */
} ulam_program;

/* ---------------------------------------------------------------- models */

/* Everything here is for any number of threads at once, but for new and free. Functions return ULAM_OK, ULAM_REJECT,
 * ULAM_FATAL or ULAM_NO_MEMORY (native_handle.h); `error` is appended to, and may be NULL. */
typedef struct bs_model ulam_model;

typedef struct bs_rng {
  ulam_pcg generator;
} ulam_rng;

/* A unit of a model: its code, and its table of bound data. */
typedef struct {
  const ulam_program_unit *code;
  int64_t *bound;
  /* What its `bind` returned: of work that depends on data only. Not ULAM_OK: every evaluation fails with it. */
  int32_t failed;
  int64_t failed_site;
  double failed_values[4];
  char *failed_message; /* NULL: none */
} ulam_model_unit;

/* `data`: see values.h. `seed` is for transformed data. NULL: `error` says why. */
ULAM_API ulam_model *ulam_model_new(ulam_program *program, const char *data, uint32_t seed, ulam_text *error);
ULAM_API void ulam_model_free(ulam_model *model);

const ulam_program *ulam_model_program(const ulam_model *model);
int64_t ulam_model_unconstrained(const ulam_model *model);                     /* how many values */
int64_t ulam_model_constrained(const ulam_model *model, int tp, int gq);

/* The unit, loaded and bound. NULL: it cannot be loaded. */
const ulam_model_unit *ulam_model_unit_of(ulam_model *model, int32_t unit, ulam_text *error);
static inline int32_t ulam_density_unit(int order, int propto) {
  return ULAM_UNIT_VALUE_PROPTO + 2 * order + !propto;
}

/* A context, whose printed text stays in it until it is given back and then shown. NULL: out of memory. */
ulam_context *ulam_model_take(ulam_model *model);
void ulam_model_give(ulam_model *model, ulam_context *ctx);
/* Shows what was printed meanwhile, for those who keep a context for long. */
void ulam_model_show(ulam_model *model, ulam_context *ctx);
/* Who gets what a program prints; NULL: standard output. Called by one thread at a time. */
void ulam_program_print_to(ulam_program *program, void (*print)(const char *text, size_t length));

/* The log density of an unconstrained point, with its gradient and its Hessian (n x n) where these are not NULL. */
int32_t ulam_model_density(ulam_model *model, int propto, int jacobian, const double *x, double *lp, double *gradient,
                           double *hessian, ulam_text *error);
/* The product of the Hessian with `direction`. */
int32_t ulam_model_hessian_vector(ulam_model *model, int propto, int jacobian, const double *x, const double *direction,
                                  double *lp, double *product, ulam_text *error);
/* Constrained values in BridgeStan's order. */
int32_t ulam_model_constrain(ulam_model *model, int tp, int gq, const double *x, double *out, ulam_rng *rng,
                             ulam_text *error);
int32_t ulam_model_unconstrain(ulam_model *model, const double *constrained, double *x, ulam_text *error);
int32_t ulam_model_unconstrain_json(ulam_model *model, const char *json, double *x, ulam_text *error);
/* A point with a finite log density, that has the values of `json` (NULL: none), others drawn between -radius and
 * radius. */
int32_t ulam_model_initialize(ulam_model *model, const char *json, ulam_rng *rng, double radius, int tries, int jacobian,
                              double *x, ulam_text *error);

/* What a run of a unit that returned `status` says, at the end of `error`: for those that call units themselves. A density
 * is run once more at `x`, as it was written, to find its first error. Returns ULAM_REJECT or ULAM_FATAL. */
int32_t ulam_model_density_error(ulam_model *model, ulam_context *ctx, const ulam_model_unit *unit, int32_t status,
                                 const double *x, int jacobian, ulam_text *error);

/* Comma-separated names, which live as long as the model. */
const char *ulam_model_names(ulam_model *model, int tp, int gq);
const char *ulam_model_unconstrained_names(ulam_model *model);

/* The stream of StanModel.new_rng(seed). */
void ulam_rng_begin(ulam_rng *rng, uint32_t seed);

/* ---------------------------------------------------------------- texts */

int ulam_text_add(ulam_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For those who load units from Python. */
ULAM_API void ulam_text_say(ulam_text *text, const char *what);

#endif
