#include "bridgestan.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "model.h"
#include "source_text.h"

int ulam_hand_over(ulam_text *text, char **error) {
  char *end = text->bytes + text->length;
  for (char *wrong = text->bytes; wrong && (wrong = (char *)ulam_utf8_problem(wrong, end)) != NULL;) *wrong = '?';
  if (error) *error = text->bytes && text->length ? text->bytes : ulam_copy("unknown error");
  if (!error || *error != text->bytes) free(text->bytes);
  return -1;
}

static int done(int32_t status, ulam_text *text, char **error) {
  if (status != ULAM_OK) return ulam_hand_over(text, error);
  free(text->bytes);
  return 0;
}

static int refused(const char *what, char **error) {
  ulam_text text = {0};
  ulam_text_add(&text, "%s must not be NULL", what);
  return ulam_hand_over(&text, error);
}

/* What pointers are to, that must not be NULL unless there is nothing there. */
#define REQUIRE(pointer, what) \
  if ((pointer) == NULL) return refused(what, error)
#define REQUIRE_IF(count, pointer, what) \
  if ((pointer) == NULL && (count) > 0) return refused(what, error)
#define UNCONSTRAINED "the unconstrained parameters"

/* ---------------------------------------------------------------- models */

static bs_model *construct(ulam_program *program, const char *data, unsigned int seed, char **error) {
  ulam_text text = {0};
  bs_model *model = ulam_model_new(program, data, seed, &text);
  if (model && (ulam_model_constrained(model, 1, 1) > INT_MAX || ulam_model_unconstrained(model) > INT_MAX)) {
    ulam_text_say(&text, "the program has more values than an int can count");
    ulam_model_free(model);
    model = NULL;
  }
  done(model ? ULAM_OK : ULAM_FATAL, &text, error);
  return model;
}

static const char *name(const bs_model *model) { return model ? ulam_model_program(model)->name : NULL; }

static const char *info(const bs_model *model) { return model ? ulam_model_program(model)->info : NULL; }

/* Models change behind their interface: what is asked for first is made then. */
static ulam_model *own(const bs_model *model) { return (ulam_model *)model; }

static const char *names(const bs_model *model, bool tp, bool gq) {
  return model ? ulam_model_names(own(model), tp, gq) : NULL;
}

static const char *unconstrained_names(const bs_model *model) {
  return model ? ulam_model_unconstrained_names(own(model)) : NULL;
}

static int count(const bs_model *model, bool tp, bool gq) {
  return model ? (int)ulam_model_constrained(model, tp, gq) : -1;
}

static int unconstrained_count(const bs_model *model) { return model ? (int)ulam_model_unconstrained(model) : -1; }

/* ---------------------------------------------------------------- transforms */

static int constrain(const bs_model *model, bool tp, bool gq, const double *unconstrained, double *values, bs_rng *rng,
                     char **error) {
  REQUIRE(model, "the model");
  REQUIRE_IF(ulam_model_unconstrained(model), unconstrained, UNCONSTRAINED);
  REQUIRE_IF(ulam_model_constrained(model, tp, gq), values, "the result");
  if (gq) REQUIRE(rng, "the random number generator, for generated quantities,");
  ulam_text text = {0};
  return done(ulam_model_constrain(own(model), tp, gq, unconstrained, values, rng, &text), &text, error);
}

static int unconstrain(const bs_model *model, const double *values, double *unconstrained, char **error) {
  REQUIRE(model, "the model");
  REQUIRE_IF(ulam_model_constrained(model, 0, 0), values, "the parameters");
  REQUIRE_IF(ulam_model_unconstrained(model), unconstrained, "the result");
  ulam_text text = {0};
  return done(ulam_model_unconstrain(own(model), values, unconstrained, &text), &text, error);
}

static int unconstrain_json(const bs_model *model, const char *json, double *unconstrained, char **error) {
  REQUIRE(model, "the model");
  REQUIRE(json, "the JSON text of the parameters");
  REQUIRE_IF(ulam_model_unconstrained(model), unconstrained, "the result");
  ulam_text text = {0};
  return done(ulam_model_unconstrain_json(own(model), json, unconstrained, &text), &text, error);
}

static int initialize(const bs_model *model, const char *json, bs_rng *rng, double radius, int tries, bool jacobian,
                      double *unconstrained, char **error) {
  REQUIRE(model, "the model");
  REQUIRE(rng, "the random number generator");
  REQUIRE_IF(ulam_model_unconstrained(model), unconstrained, "the result");
  ulam_text text = {0};
  int32_t status = ulam_model_initialize(own(model), json, rng, radius, tries, jacobian, unconstrained, &text);
  return done(status, &text, error);
}

/* ---------------------------------------------------------------- log density */

/* With derivatives up to `order`. */
static int evaluate(int order, const bs_model *model, bool propto, bool jacobian, const double *unconstrained,
                    double *value, double *gradient, double *hessian, char **error) {
  REQUIRE(model, "the model");
  const int64_t n = ulam_model_unconstrained(model);
  REQUIRE_IF(n, unconstrained, UNCONSTRAINED);
  REQUIRE(value, "the log density");
  if (order > 0) REQUIRE_IF(n, gradient, "the gradient");
  if (order > 1) REQUIRE_IF(n, hessian, "the Hessian");
  ulam_text text = {0};
  int32_t status = ulam_model_density(own(model), propto, jacobian, unconstrained, value, gradient, hessian, &text);
  return done(status, &text, error);
}

static int density(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                   char **error) {
  return evaluate(0, model, propto, jacobian, unconstrained, value, NULL, NULL, error);
}

static int gradient(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                    double *gradient, char **error) {
  return evaluate(1, model, propto, jacobian, unconstrained, value, gradient, NULL, error);
}

static int hessian(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                   double *gradient, double *hessian, char **error) {
  return evaluate(2, model, propto, jacobian, unconstrained, value, gradient, hessian, error);
}

static int hessian_vector(const bs_model *model, bool propto, bool jacobian, const double *unconstrained,
                          const double *vector, double *value, double *product, char **error) {
  REQUIRE(model, "the model");
  REQUIRE_IF(ulam_model_unconstrained(model), unconstrained, UNCONSTRAINED);
  REQUIRE_IF(ulam_model_unconstrained(model), vector, "the vector");
  REQUIRE(value, "the log density");
  REQUIRE_IF(ulam_model_unconstrained(model), product, "the product");
  ulam_text text = {0};
  int32_t status =
      ulam_model_hessian_vector(own(model), propto, jacobian, unconstrained, vector, value, product, &text);
  return done(status, &text, error);
}

/* ---------------------------------------------------------------- random numbers, printing */

static bs_rng *rng_construct(unsigned int seed, char **error) {
  bs_rng *rng = malloc(sizeof *rng);
  if (rng) {
    ulam_rng_begin(rng, seed);
  } else {
    ulam_text text = {0};
    ulam_hand_over(&text, error);
  }
  return rng;
}

static void rng_destruct(bs_rng *rng) { free(rng); }

static void free_error(char *error) { free(error); }

static int print_to(ulam_program *program, bs_print_callback print, char **error) {
  (void)error;
  ulam_program_print_to(program, print);
  return 0;
}

const ulam_bridgestan_functions ulam_bridgestan = {
    .construct = construct,
    .destruct = ulam_model_free,
    .free_error = free_error,
    .name = name,
    .info = info,
    .names = names,
    .unconstrained_names = unconstrained_names,
    .count = count,
    .unconstrained_count = unconstrained_count,
    .constrain = constrain,
    .unconstrain = unconstrain,
    .unconstrain_json = unconstrain_json,
    .initialize = initialize,
    .density = density,
    .gradient = gradient,
    .hessian = hessian,
    .hessian_vector = hessian_vector,
    .rng_construct = rng_construct,
    .rng_destruct = rng_destruct,
    .print_to = print_to,
};
