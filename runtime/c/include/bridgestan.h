/* BridgeStan's C interface, version 2.9: the functions of a library that `ulam build` makes of a Stan program.
 *
 * A library is of one program, with BridgeStan's names and conventions, so what works with BridgeStan's own libraries
 * works with it. All functions may be called by any number of threads at once with the same model, but for
 * `bs_model_destruct`; a generator belongs to one thread at a time.
 *
 * Functions that return `int` return 0, or -1 for an error. `error`, if it is not NULL, is then set to a message, which
 * `bs_free_error_msg` frees; nothing is written to it otherwise. No function ends the process.
 *
 * The same functions with `_R` behind the name are for R's `.C`: all their arguments are addresses, and what they return
 * goes to the last ones.
 */
#ifndef BRIDGESTAN_H
#define BRIDGESTAN_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The program with data; random numbers. */
typedef struct bs_model bs_model;
typedef struct bs_rng bs_rng;

extern const int bs_major_version, bs_minor_version, bs_patch_version; /* of BridgeStan's interface */

/* ------------------------------------------------------------ models */

/* `data`: JSON text, or the path of a file whose name ends in .json; NULL or "": no data. `seed`: of random numbers in
 * transformed data. NULL for an error, such as data that do not fit. */
bs_model *bs_model_construct(const char *data, unsigned int seed, char **error);
void bs_model_destruct(bs_model *model); /* NULL is allowed */
void bs_free_error_msg(char *error);     /* NULL is allowed */

/* Texts live as long as the model. */
const char *bs_name(const bs_model *model);       /* of the program, with `_model` behind it */
const char *bs_model_info(const bs_model *model); /* versions and options */

/* Names with commas between them. Of constrained values `a.2.1` is a[2, 1], the first index goes fastest; `tp`: with
 * transformed parameters, `gq`: with generated quantities. */
const char *bs_param_names(const bs_model *model, bool tp, bool gq);
const char *bs_param_unc_names(const bs_model *model);
int bs_param_num(const bs_model *model, bool tp, bool gq); /* how many */
int bs_param_unc_num(const bs_model *model);

/* ------------------------------------------------------------ transforms */

/* From `bs_param_unc_num(model)` unconstrained to `bs_param_num(model, tp, gq)` constrained values. `rng` may be NULL
 * unless `gq` is true. */
int bs_param_constrain(const bs_model *model, bool tp, bool gq, const double *theta_unc, double *theta, bs_rng *rng,
                       char **error);
/* From `bs_param_num(model, false, false)` constrained values back; from all parameters by name, in JSON. */
int bs_param_unconstrain(const bs_model *model, const double *theta, double *theta_unc, char **error);
int bs_param_unconstrain_json(const bs_model *model, const char *json, double *theta_unc, char **error);

/* An unconstrained point where the log density and its gradient are finite: with the values of `json` for some or all
 * parameters (NULL: for none), all else drawn uniformly between -radius and radius, up to `tries` times. */
int bs_param_initialize(const bs_model *model, const char *json, bs_rng *rng, double radius, int tries, bool jacobian,
                        double *theta_unc, char **error);

/* ------------------------------------------------------------ the log density */

/* Of an unconstrained point. `propto`: without terms that do not depend on parameters. `jacobian`: with the change of
 * variables. The gradient has `bs_param_unc_num(model)` elements, the Hessian the square of that, row by row. */
int bs_log_density(const bs_model *model, bool propto, bool jacobian, const double *theta_unc, double *value,
                   char **error);
int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *theta_unc, double *value,
                            double *gradient, char **error);
int bs_log_density_hessian(const bs_model *model, bool propto, bool jacobian, const double *theta_unc, double *value,
                           double *gradient, double *hessian, char **error);
/* The product of the Hessian with `vector`. */
int bs_log_density_hessian_vector_product(const bs_model *model, bool propto, bool jacobian, const double *theta_unc,
                                          const double *vector, double *value, double *product, char **error);

/* ------------------------------------------------------------ random numbers, printing */

bs_rng *bs_rng_construct(unsigned int seed, char **error);
void bs_rng_destruct(bs_rng *rng); /* NULL is allowed */

/* Where what the program prints goes, from now on; NULL: to standard output. One call at a time. */
int bs_set_print_callback(void (*print)(const char *text, size_t length), char **error);

#ifdef __cplusplus
}
#endif

#endif
