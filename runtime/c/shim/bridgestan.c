/* BridgeStan's functions, of one program: those of C, and R's, whose arguments are all addresses.
 *
 * Built as a library of its own, `link` is empty: a process of ulam that loads a copy of it says there what its functions
 * are and what its program is, and whoever else opens that copy in the process has them. Linked with a program
 * (ULAM_LINKED), both are known.
 */
#include <stdlib.h>
#include <string.h>

#include "../model/bridgestan.h"

#if defined(ULAM_LINKED)
extern ulam_program ulam_linked_program;
static const struct {
  const ulam_bridgestan_functions *functions;
  ulam_program *program;
} link = {&ulam_bridgestan, &ulam_linked_program};
#else
ULAM_API struct {
  const ulam_bridgestan_functions *functions;
  ulam_program *program;
} ulam_bridgestan_link = {NULL, NULL};
#define link ulam_bridgestan_link
#endif

ULAM_API const int bs_major_version = BRIDGESTAN_MAJOR;
ULAM_API const int bs_minor_version = BRIDGESTAN_MINOR;
ULAM_API const int bs_patch_version = BRIDGESTAN_PATCH;

/* Whether there is a program. */
static int is_linked(char **error) {
  static const char nothing[] =
      "this library is part of the process of ulam that made it, and has no program in others; `ulam build` makes "
      "libraries that have";
  if (link.functions) return 1;
  if (error) {
    *error = malloc(sizeof nothing);
    if (*error) memcpy(*error, nothing, sizeof nothing);
  }
  return 0;
}

ULAM_API bs_model *bs_model_construct(const char *data, unsigned int seed, char **error) {
  return is_linked(error) ? link.functions->construct(link.program, data, seed, error) : NULL;
}

ULAM_API void bs_model_destruct(bs_model *model) {
  if (model && is_linked(NULL)) link.functions->destruct(model);
}

ULAM_API void bs_free_error_msg(char *error) {
  if (link.functions)
    link.functions->free_error(error);
  else
    free(error);
}

ULAM_API const char *bs_name(const bs_model *model) { return is_linked(NULL) ? link.functions->name(model) : NULL; }

ULAM_API const char *bs_model_info(const bs_model *model) {
  return is_linked(NULL) ? link.functions->info(model) : NULL;
}

ULAM_API const char *bs_param_names(const bs_model *model, bool tp, bool gq) {
  return is_linked(NULL) ? link.functions->names(model, tp, gq) : NULL;
}

ULAM_API const char *bs_param_unc_names(const bs_model *model) {
  return is_linked(NULL) ? link.functions->unconstrained_names(model) : NULL;
}

ULAM_API int bs_param_num(const bs_model *model, bool tp, bool gq) {
  return is_linked(NULL) ? link.functions->count(model, tp, gq) : -1;
}

ULAM_API int bs_param_unc_num(const bs_model *model) {
  return is_linked(NULL) ? link.functions->unconstrained_count(model) : -1;
}

ULAM_API int bs_param_constrain(const bs_model *model, bool tp, bool gq, const double *theta_unc, double *theta,
                                bs_rng *rng, char **error) {
  return is_linked(error) ? link.functions->constrain(model, tp, gq, theta_unc, theta, rng, error) : -1;
}

ULAM_API int bs_param_unconstrain(const bs_model *model, const double *theta, double *theta_unc, char **error) {
  return is_linked(error) ? link.functions->unconstrain(model, theta, theta_unc, error) : -1;
}

ULAM_API int bs_param_unconstrain_json(const bs_model *model, const char *json, double *theta_unc, char **error) {
  return is_linked(error) ? link.functions->unconstrain_json(model, json, theta_unc, error) : -1;
}

ULAM_API int bs_param_initialize(const bs_model *model, const char *json, bs_rng *rng, double radius, int tries,
                                 bool jacobian, double *theta_unc, char **error) {
  if (!is_linked(error)) return -1;
  return link.functions->initialize(model, json, rng, radius, tries, jacobian, theta_unc, error);
}

ULAM_API int bs_log_density(const bs_model *model, bool propto, bool jacobian, const double *theta_unc, double *value,
                            char **error) {
  return is_linked(error) ? link.functions->density(model, propto, jacobian, theta_unc, value, error) : -1;
}

ULAM_API int bs_log_density_gradient(const bs_model *model, bool propto, bool jacobian, const double *theta_unc,
                                     double *value, double *gradient, char **error) {
  if (!is_linked(error)) return -1;
  return link.functions->gradient(model, propto, jacobian, theta_unc, value, gradient, error);
}

ULAM_API int bs_log_density_hessian(const bs_model *model, bool propto, bool jacobian, const double *theta_unc,
                                    double *value, double *gradient, double *hessian, char **error) {
  if (!is_linked(error)) return -1;
  return link.functions->hessian(model, propto, jacobian, theta_unc, value, gradient, hessian, error);
}

ULAM_API int bs_log_density_hessian_vector_product(const bs_model *model, bool propto, bool jacobian,
                                                   const double *theta_unc, const double *vector, double *value,
                                                   double *product, char **error) {
  if (!is_linked(error)) return -1;
  return link.functions->hessian_vector(model, propto, jacobian, theta_unc, vector, value, product, error);
}

ULAM_API bs_rng *bs_rng_construct(unsigned int seed, char **error) {
  return is_linked(error) ? link.functions->rng_construct(seed, error) : NULL;
}

ULAM_API void bs_rng_destruct(bs_rng *rng) {
  if (rng && is_linked(NULL)) link.functions->rng_destruct(rng);
}

ULAM_API int bs_set_print_callback(bs_print_callback print, char **error) {
  return is_linked(error) ? link.functions->print_to(link.program, print, error) : -1;
}

/* ---------------------------------------------------------------- R */

/* What R gives an address of: NULL for none. */
#define OF(pointer) ((pointer) ? *(pointer) : NULL)
#define IS(flag) ((flag) && *(flag) != 0)
/* An error is told twice: R copies the text, and frees it by the other address. Without one the text stays R's. */
static void tell(char *text, char **copy, void **address) {
  if (address) {
    if (text && copy) *copy = text;
    *address = text;
  } else {
    bs_free_error_msg(text); /* nobody could */
  }
}
#define RETURN(code, call)                  \
  do {                                      \
    char *text = NULL;                      \
    int returned = (call);                  \
    if (code) *(code) = returned;           \
    tell(text, error, error_address);       \
  } while (0)

/* R reads a text in any case. */
static const char *or_nothing(const char *text) { return text ? text : ""; }

ULAM_API void bs_version_R(int *major, int *minor, int *patch) {
  if (major) *major = bs_major_version;
  if (minor) *minor = bs_minor_version;
  if (patch) *patch = bs_patch_version;
}

ULAM_API void bs_model_construct_R(char **data, int *seed, bs_model **model, char **error, void **error_address) {
  char *text = NULL;
  bs_model *made = bs_model_construct(OF(data), seed ? (unsigned int)*seed : 0, &text);
  if (model)
    *model = made;
  else
    bs_model_destruct(made);
  tell(text, error, error_address);
}

ULAM_API void bs_model_destruct_R(bs_model **model) { bs_model_destruct(OF(model)); }

ULAM_API void bs_free_error_msg_R(void **error) { bs_free_error_msg(OF(error)); }

ULAM_API void bs_name_R(bs_model **model, char const **name) {
  if (name) *name = or_nothing(bs_name(OF(model)));
}

ULAM_API void bs_model_info_R(bs_model **model, char const **info) {
  if (info) *info = or_nothing(bs_model_info(OF(model)));
}

ULAM_API void bs_param_names_R(bs_model **model, int *tp, int *gq, char const **names) {
  if (names) *names = or_nothing(bs_param_names(OF(model), IS(tp), IS(gq)));
}

ULAM_API void bs_param_unc_names_R(bs_model **model, char const **names) {
  if (names) *names = or_nothing(bs_param_unc_names(OF(model)));
}

ULAM_API void bs_param_num_R(bs_model **model, int *tp, int *gq, int *count) {
  if (count) *count = bs_param_num(OF(model), IS(tp), IS(gq));
}

ULAM_API void bs_param_unc_num_R(bs_model **model, int *count) {
  if (count) *count = bs_param_unc_num(OF(model));
}

ULAM_API void bs_param_constrain_R(bs_model **model, int *tp, int *gq, const double *theta_unc, double *theta,
                                   bs_rng **rng, int *code, char **error, void **error_address) {
  RETURN(code, bs_param_constrain(OF(model), IS(tp), IS(gq), theta_unc, theta, OF(rng), &text));
}

ULAM_API void bs_param_unconstrain_R(bs_model **model, const double *theta, double *theta_unc, int *code, char **error,
                                     void **error_address) {
  RETURN(code, bs_param_unconstrain(OF(model), theta, theta_unc, &text));
}

ULAM_API void bs_param_unconstrain_json_R(bs_model **model, char const **json, double *theta_unc, int *code,
                                          char **error, void **error_address) {
  RETURN(code, bs_param_unconstrain_json(OF(model), OF(json), theta_unc, &text));
}

ULAM_API void bs_param_initialize_R(bs_model **model, char const **json, bs_rng **rng, double *radius, int *tries,
                                    int *jacobian, double *theta_unc, int *code, char **error, void **error_address) {
  RETURN(code, bs_param_initialize(OF(model), OF(json), OF(rng), radius ? *radius : 2, tries ? *tries : 100,
                                   IS(jacobian), theta_unc, &text));
}

ULAM_API void bs_log_density_R(bs_model **model, int *propto, int *jacobian, const double *theta_unc, double *value,
                               int *code, char **error, void **error_address) {
  RETURN(code, bs_log_density(OF(model), IS(propto), IS(jacobian), theta_unc, value, &text));
}

ULAM_API void bs_log_density_gradient_R(bs_model **model, int *propto, int *jacobian, const double *theta_unc,
                                        double *value, double *gradient, int *code, char **error,
                                        void **error_address) {
  RETURN(code, bs_log_density_gradient(OF(model), IS(propto), IS(jacobian), theta_unc, value, gradient, &text));
}

ULAM_API void bs_log_density_hessian_R(bs_model **model, int *propto, int *jacobian, const double *theta_unc,
                                       double *value, double *gradient, double *hessian, int *code, char **error,
                                       void **error_address) {
  RETURN(code, bs_log_density_hessian(OF(model), IS(propto), IS(jacobian), theta_unc, value, gradient, hessian, &text));
}

ULAM_API void bs_log_density_hessian_vector_product_R(bs_model **model, int *propto, int *jacobian,
                                                      const double *theta_unc, const double *vector, double *value,
                                                      double *product, int *code, char **error, void **error_address) {
  RETURN(code, bs_log_density_hessian_vector_product(OF(model), IS(propto), IS(jacobian), theta_unc, vector, value,
                                                     product, &text));
}

ULAM_API void bs_rng_construct_R(int *seed, bs_rng **rng, char **error, void **error_address) {
  char *text = NULL;
  bs_rng *made = bs_rng_construct(seed ? (unsigned int)*seed : 0, &text);
  if (rng)
    *rng = made;
  else
    bs_rng_destruct(made);
  tell(text, error, error_address);
}

ULAM_API void bs_rng_destruct_R(bs_rng **rng) { bs_rng_destruct(OF(rng)); }
