/* BridgeStan's C interface over models. The functions that clients see are those of a small library for each program
 * (shim/bridgestan.c), which passes its program to these. */
#ifndef ULAM_BRIDGESTAN_H
#define ULAM_BRIDGESTAN_H

#include <stdbool.h>

#include "program.h"

typedef struct bs_model bs_model;
typedef struct bs_rng bs_rng;
typedef void (*bs_print_callback)(const char *text, size_t length);

enum { BRIDGESTAN_MAJOR = 2, BRIDGESTAN_MINOR = 9, BRIDGESTAN_PATCH = 0 };

typedef struct {
  bs_model *(*construct)(ulam_program *program, const char *data, unsigned int seed, char **error);
  void (*destruct)(bs_model *model);
  void (*free_error)(char *error);
  const char *(*name)(const bs_model *model);
  const char *(*info)(const bs_model *model);
  const char *(*names)(const bs_model *model, bool tp, bool gq);
  const char *(*unconstrained_names)(const bs_model *model);
  int (*count)(const bs_model *model, bool tp, bool gq);
  int (*unconstrained_count)(const bs_model *model);
  int (*constrain)(const bs_model *model, bool tp, bool gq, const double *unconstrained, double *values, bs_rng *rng,
                   char **error);
  int (*unconstrain)(const bs_model *model, const double *values, double *unconstrained, char **error);
  int (*unconstrain_json)(const bs_model *model, const char *json, double *unconstrained, char **error);
  int (*initialize)(const bs_model *model, const char *json, bs_rng *rng, double radius, int tries, bool jacobian,
                    double *unconstrained, char **error);
  int (*density)(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                 char **error);
  int (*gradient)(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                  double *gradient, char **error);
  int (*hessian)(const bs_model *model, bool propto, bool jacobian, const double *unconstrained, double *value,
                 double *gradient, double *hessian, char **error);
  int (*hessian_vector)(const bs_model *model, bool propto, bool jacobian, const double *unconstrained,
                        const double *vector, double *value, double *product, char **error);
  bs_rng *(*rng_construct)(unsigned int seed, char **error);
  void (*rng_destruct)(bs_rng *rng);
  int (*print_to)(ulam_program *program, bs_print_callback print, char **error);
} ulam_bridgestan_functions;

/* Hands a message over, if it is wanted; what is not there is said, too. Clients read UTF-8, whatever it quotes. Returns
 * -1. */
int ulam_hand_over(ulam_text *text, char **error);

extern ULAM_API const ulam_bridgestan_functions ulam_bridgestan;

#endif
