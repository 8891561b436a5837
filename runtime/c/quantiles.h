/* Quantiles of scalar distributions: the smallest value whose distribution function reaches a probability. */
#ifndef ULAM_QUANTILES_H
#define ULAM_QUANTILES_H

#include "context.h"

/* A probability and what is left to 1, so that neither tail is rounded away. */
typedef struct {
  double below, above;
} probability;

static inline probability quantile_rising(double u) { return (probability){u, 1 - u}; }
static inline probability quantile_falling(double u) { return (probability){1 - u, u}; }

double quantile_cauchy(probability at);
double quantile_laplace(probability at);
double quantile_exponential(probability at);
double quantile_gamma(probability at, double shape);
double quantile_beta(probability at, double a, double b);
double quantile_student_t(probability at, double nu);
double quantile_skew_normal(probability at, double shape);
double quantile_exp_mod_normal(probability at, double rate); /* of a standard normal and an exponential of that rate */
double quantile_von_mises(probability at, double kappa);     /* around 0 */

int64_t quantile_binomial(probability at, int64_t count, double theta);
int64_t quantile_poisson(probability at, double rate);
/* `success` and `failure` are probabilities with sum 1. */
int64_t quantile_neg_binomial(probability at, double shape, double success, double failure);
int64_t quantile_beta_binomial(probability at, int64_t count, double alpha, double beta);
int64_t quantile_beta_neg_binomial(probability at, double r, double alpha, double beta);
int64_t quantile_hypergeometric(probability at, int64_t successes, int64_t failures, int64_t draws);
int64_t quantile_yule_simon(probability at, double alpha);

/* What a discrete quantile is when there is none below. */
#define QUANTILE_LARGEST INT32_MAX

#endif
