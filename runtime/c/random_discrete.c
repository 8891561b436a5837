/* `_rng` kernels of discrete scalar distributions; the draw goes to `*out`. Stan Functions Reference, chapters
 * "Binary Distributions" to "Unbounded Discrete Distributions".
 */
#include "random.h"

/* Above this rate a Poisson draw may not fit into an int. */
static const double largest_rate = 1073741824.0; /* 2^30 */

static double inverse_logit(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }

static int32_t draw_binomial(bitgen_t *rng, int64_t count, double probability) {
  if (is_scripted(rng)) return (int32_t)quantile_binomial(draw_probability(rng, RISING), count, probability);
  numpy_binomial prepared = {0};
  return (int32_t)random_binomial(rng, probability, count, &prepared);
}

ULAM_API int32_t ulam_bernoulli_rng(ulam_context *ctx, double theta, int32_t *out) {
  BEGIN_RNG("bernoulli_rng");
  REQUIRE_PROBABILITY("Probability parameter", theta);
  *out = draw_uniform(rng) < theta;
  return ULAM_OK;
}

ULAM_API int32_t ulam_bernoulli_logit_rng(ulam_context *ctx, double alpha, int32_t *out) {
  BEGIN_RNG("bernoulli_logit_rng");
  REQUIRE_FINITE("Logit transformed probability parameter", alpha);
  *out = draw_uniform(rng) < inverse_logit(alpha);
  return ULAM_OK;
}

ULAM_API int32_t ulam_binomial_rng(ulam_context *ctx, int32_t count, double theta, int32_t *out) {
  BEGIN_RNG("binomial_rng");
  REQUIRE_NONNEGATIVE("Population size parameter", count);
  REQUIRE_PROBABILITY("Probability parameter", theta);
  *out = draw_binomial(rng, count, theta);
  return ULAM_OK;
}

ULAM_API int32_t ulam_binomial_logit_rng(ulam_context *ctx, int32_t count, double alpha, int32_t *out) {
  BEGIN_RNG("binomial_logit_rng");
  REQUIRE_NONNEGATIVE("Population size parameter", count);
  REQUIRE_FINITE("Logit transformed probability parameter", alpha);
  *out = draw_binomial(rng, count, inverse_logit(alpha));
  return ULAM_OK;
}

ULAM_API int32_t ulam_beta_binomial_rng(ulam_context *ctx, int32_t count, double alpha, double beta, int32_t *out) {
  BEGIN_RNG("beta_binomial_rng");
  REQUIRE_NONNEGATIVE("Population size parameter", count);
  REQUIRE_POSITIVE_FINITE("First prior sample size parameter", alpha);
  REQUIRE_POSITIVE_FINITE("Second prior sample size parameter", beta);
  *out = is_scripted(rng) ? (int32_t)quantile_beta_binomial(draw_probability(rng, RISING), count, alpha, beta)
                          : draw_binomial(rng, count, random_beta(rng, alpha, beta));
  return ULAM_OK;
}

ULAM_API int32_t ulam_hypergeometric_rng(ulam_context *ctx, int32_t draws, int32_t successes, int32_t failures,
                                         int32_t *out) {
  BEGIN_RNG("hypergeometric_rng");
  REQUIRE_POSITIVE("Draws parameter", draws);
  REQUIRE_POSITIVE("Successes in population parameter", successes);
  REQUIRE_POSITIVE("Failures in population parameter", failures);
  REQUIRE(draws <= (int64_t)successes + failures, "Draws parameter", draws, "at most the population size");
  *out = (int32_t)(is_scripted(rng)
                       ? quantile_hypergeometric(draw_probability(rng, RISING), successes, failures, draws)
                       : random_hypergeometric(rng, successes, failures, draws));
  return ULAM_OK;
}

ULAM_API int32_t ulam_discrete_range_rng(ulam_context *ctx, int32_t lower, int32_t upper, int32_t *out) {
  BEGIN_RNG("discrete_range_rng");
  REQUIRE(upper >= lower, "Upper bound parameter", upper, "greater than or equal to the lower bound");
  double range = (double)upper - (double)lower + 1;
  *out = (int32_t)((double)lower + floor(range * draw_uniform(rng)));
  return ULAM_OK;
}

static int32_t draw_poisson(bitgen_t *rng, double rate) {
  return (int32_t)(is_scripted(rng) ? quantile_poisson(draw_probability(rng, RISING), rate) : random_poisson(rng, rate));
}

ULAM_API int32_t ulam_poisson_rng(ulam_context *ctx, double rate, int32_t *out) {
  BEGIN_RNG("poisson_rng");
  REQUIRE_POSITIVE("Rate parameter", rate);
  REQUIRE(rate < largest_rate, "Rate parameter", rate, "less than 2^30");
  *out = draw_poisson(rng, rate);
  return ULAM_OK;
}

ULAM_API int32_t ulam_poisson_log_rng(ulam_context *ctx, double log_rate, int32_t *out) {
  BEGIN_RNG("poisson_log_rng");
  REQUIRE_FINITE("Log rate parameter", log_rate);
  REQUIRE(exp(log_rate) < largest_rate, "Log rate parameter", log_rate, "less than 30 * log(2)");
  *out = draw_poisson(rng, exp(log_rate));
  return ULAM_OK;
}

/* A scripted draw, unless it is as large as an int can be: the distribution may well go on. */
static int32_t keep_quantile(ulam_context *ctx, const char *name, int64_t drawn, int32_t *out) {
  REQUIRE(drawn < QUANTILE_LARGEST, "Quantile of the scripted number", (double)drawn, "less than that");
  *out = (int32_t)drawn;
  return ULAM_OK;
}

/* A Poisson whose rate is gamma distributed with this shape and scale. */
static int32_t draw_neg_binomial(ulam_context *ctx, const char *name, double shape, double scale, int32_t *out) {
  bitgen_t *rng = ctx->rng;
  if (is_scripted(rng)) {
    double failure = isinf(scale) ? 1 : scale / (1 + scale);
    int64_t drawn = quantile_neg_binomial(draw_probability(rng, RISING), shape, 1 / (1 + scale), failure);
    return keep_quantile(ctx, name, drawn, out);
  }
  double rate = random_standard_gamma(rng, shape) * scale;
  REQUIRE(rate < largest_rate, "Random number that came from gamma distribution", rate, "less than 2^30");
  *out = (int32_t)random_poisson(rng, rate);
  return ULAM_OK;
}

ULAM_API int32_t ulam_neg_binomial_rng(ulam_context *ctx, double shape, double rate, int32_t *out) {
  BEGIN_RNG("neg_binomial_rng");
  REQUIRE_POSITIVE_FINITE("Shape parameter", shape);
  REQUIRE_POSITIVE_FINITE("Inverse scale parameter", rate);
  return draw_neg_binomial(ctx, name, shape, 1 / rate, out);
}

ULAM_API int32_t ulam_neg_binomial_2_rng(ulam_context *ctx, double mu, double phi, int32_t *out) {
  BEGIN_RNG("neg_binomial_2_rng");
  REQUIRE_POSITIVE_FINITE("Location parameter", mu);
  REQUIRE_POSITIVE_FINITE("Precision parameter", phi);
  REQUIRE_POSITIVE_FINITE("Location parameter divided by the precision parameter", mu / phi);
  return draw_neg_binomial(ctx, name, phi, mu / phi, out);
}

ULAM_API int32_t ulam_neg_binomial_2_log_rng(ulam_context *ctx, double eta, double phi, int32_t *out) {
  BEGIN_RNG("neg_binomial_2_log_rng");
  REQUIRE_FINITE("Log-location parameter", eta);
  REQUIRE_POSITIVE_FINITE("Inverse dispersion parameter", phi);
  REQUIRE_POSITIVE_FINITE("Exponential of the log-location parameter divided by the inverse dispersion", exp(eta) / phi);
  return draw_neg_binomial(ctx, name, phi, exp(eta) / phi, out);
}

ULAM_API int32_t ulam_beta_neg_binomial_rng(ulam_context *ctx, double r, double alpha, double beta, int32_t *out) {
  BEGIN_RNG("beta_neg_binomial_rng");
  REQUIRE_POSITIVE_FINITE("Number of successes parameter", r);
  REQUIRE_POSITIVE_FINITE("Prior success parameter", alpha);
  REQUIRE_POSITIVE_FINITE("Prior failure parameter", beta);
  if (is_scripted(rng))
    return keep_quantile(ctx, name, quantile_beta_neg_binomial(draw_probability(rng, RISING), r, alpha, beta), out);
  double p = random_beta(rng, alpha, beta);
  return draw_neg_binomial(ctx, name, r, (1 - p) / p, out);
}

ULAM_API int32_t ulam_yule_simon_rng(ulam_context *ctx, double alpha, int32_t *out) {
  BEGIN_RNG("yule_simon_rng");
  REQUIRE_POSITIVE_FINITE("Shape parameter", alpha);
  if (is_scripted(rng)) {
    *out = (int32_t)quantile_yule_simon(draw_probability(rng, RISING), alpha);
    return ULAM_OK;
  }
  /* Geometric from 1 with success probability exp(-w), w exponential of rate alpha. */
  double p = exp(-random_standard_exponential(rng) / alpha);
  double draw = p < 1 ? floor(-random_standard_exponential(rng) / log1p(-p)) + 1 : 1;
  *out = draw < 2147483647.0 ? (int32_t)draw : 2147483647;
  return ULAM_OK;
}
