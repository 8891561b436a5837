/* `_rng` kernels of continuous scalar distributions. Arguments are checked as Stan checks them, a failure is a
 * rejection; the draw goes to `*out`. Stan Functions Reference, chapters "Unbounded Continuous Distributions" to
 * "Bounded Continuous Distributions".
 */
#include "random.h"

int32_t ulam_bad_argument(ulam_context *ctx, const char *name, const char *what, double value, const char *phrase) {
  return ulam_fail(ctx, ULAM_REJECT, "%s: %s is %g, but must be %s!", name, what, value, phrase);
}

int32_t ulam_bad_element(ulam_context *ctx, const char *name, const char *what, int64_t index, double value,
                         const char *phrase) {
  return ulam_fail(ctx, ULAM_REJECT, "%s: %s[%lld] is %g, but must be %s!", name, what, (long long)(index + 1), value,
                   phrase);
}

int32_t ulam_no_rng(ulam_context *ctx, const char *name) {
  return ulam_fail(ctx, ULAM_FATAL, "%s: a random number generator is needed, and none was given", name);
}

ULAM_API int32_t ulam_std_normal_rng(ulam_context *ctx, double *out) {
  BEGIN_RNG("std_normal_rng");
  *out = draw_standard_normal(rng);
  return ULAM_OK;
}

ULAM_API int32_t ulam_uniform_rng(ulam_context *ctx, double lower, double upper, double *out) {
  BEGIN_RNG("uniform_rng");
  REQUIRE_FINITE("Lower bound parameter", lower);
  REQUIRE_FINITE("Upper bound parameter", upper);
  REQUIRE(upper > lower, "Upper bound parameter", upper, "greater than the lower bound");
  *out = lower + (upper - lower) * draw_uniform(rng);
  return ULAM_OK;
}

static double draw_cauchy(bitgen_t *rng) {
  return is_scripted(rng) ? quantile_cauchy(draw_probability(rng, RISING)) : random_standard_cauchy(rng);
}

static double draw_laplace(bitgen_t *rng, double location, double scale) {
  if (!is_scripted(rng)) return random_laplace(rng, location, scale);
  return location + scale * quantile_laplace(draw_probability(rng, RISING));
}

static double draw_gumbel(bitgen_t *rng, double location, double scale) {
  return is_scripted(rng) ? location - scale * log(-log(draw_uniform(rng))) : random_gumbel(rng, location, scale);
}

/* Location finite, scale positive and finite. */
#define LOCATION_SCALE(function, draw)                                                               \
  ULAM_API int32_t ulam_##function(ulam_context *ctx, double location, double scale, double *out) { \
    BEGIN_RNG(#function);                                                                            \
    REQUIRE_FINITE("Location parameter", location);                                                  \
    REQUIRE_POSITIVE_FINITE("Scale parameter", scale);                                               \
    *out = draw;                                                                                     \
    return ULAM_OK;                                                                                  \
  }

LOCATION_SCALE(normal_rng, location + scale * draw_standard_normal(rng))
LOCATION_SCALE(cauchy_rng, location + scale * draw_cauchy(rng))
LOCATION_SCALE(lognormal_rng, exp(location + scale * draw_standard_normal(rng)))
LOCATION_SCALE(double_exponential_rng, draw_laplace(rng, location, scale))
LOCATION_SCALE(logistic_rng, draw_logistic(rng, location, scale))
LOCATION_SCALE(gumbel_rng, draw_gumbel(rng, location, scale))

/* One positive finite argument. */
#define ONE_POSITIVE(function, what, draw)                                        \
  ULAM_API int32_t ulam_##function(ulam_context *ctx, double x, double *out) {   \
    BEGIN_RNG(#function);                                                         \
    REQUIRE_POSITIVE_FINITE(what, x);                                             \
    *out = draw;                                                                  \
    return ULAM_OK;                                                               \
  }

ONE_POSITIVE(exponential_rng, "Inverse scale parameter", draw_exponential(rng, RISING) / x)
ONE_POSITIVE(chi_square_rng, "Degrees of freedom parameter", 2 * draw_gamma(rng, 0.5 * x, RISING))
ONE_POSITIVE(inv_chi_square_rng, "Degrees of freedom parameter", 0.5 / draw_gamma(rng, 0.5 * x, FALLING))
ONE_POSITIVE(rayleigh_rng, "Scale parameter", x * sqrt(2 * draw_exponential(rng, RISING)))

/* Two positive finite arguments. */
#define TWO_POSITIVE(function, what_x, what_y, draw)                                        \
  ULAM_API int32_t ulam_##function(ulam_context *ctx, double x, double y, double *out) {   \
    BEGIN_RNG(#function);                                                                   \
    REQUIRE_POSITIVE_FINITE(what_x, x);                                                     \
    REQUIRE_POSITIVE_FINITE(what_y, y);                                                     \
    *out = draw;                                                                            \
    return ULAM_OK;                                                                         \
  }

TWO_POSITIVE(gamma_rng, "Shape parameter", "Inverse scale parameter", draw_gamma(rng, x, RISING) / y)
TWO_POSITIVE(inv_gamma_rng, "Shape parameter", "Scale parameter", y / draw_gamma(rng, x, FALLING))
TWO_POSITIVE(beta_rng, "First shape parameter", "Second shape parameter", draw_beta(rng, x, y))
TWO_POSITIVE(weibull_rng, "Shape parameter", "Scale parameter", y * pow(draw_exponential(rng, RISING), 1 / x))
TWO_POSITIVE(frechet_rng, "Shape parameter", "Scale parameter", y * pow(draw_exponential(rng, FALLING), -1 / x))
TWO_POSITIVE(pareto_rng, "Scale parameter", "Shape parameter", x * exp(draw_exponential(rng, RISING) / y))
TWO_POSITIVE(scaled_inv_chi_square_rng, "Degrees of freedom parameter", "Scale parameter",
             0.5 * x * y * y / draw_gamma(rng, 0.5 * x, FALLING))

ULAM_API int32_t ulam_loglogistic_rng(ulam_context *ctx, double scale, double shape, double *out) {
  BEGIN_RNG("loglogistic_rng");
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  REQUIRE_POSITIVE_FINITE("Shape parameter", shape);
  *out = scale * exp(draw_logistic(rng, 0, 1) / shape);
  return ULAM_OK;
}

ULAM_API int32_t ulam_beta_proportion_rng(ulam_context *ctx, double mu, double kappa, double *out) {
  BEGIN_RNG("beta_proportion_rng");
  REQUIRE(mu > 0 && mu < 1, "Location parameter", mu, "in the interval (0, 1)");
  REQUIRE_POSITIVE_FINITE("Precision parameter", kappa);
  *out = draw_beta(rng, mu * kappa, kappa - mu * kappa);
  return ULAM_OK;
}

ULAM_API int32_t ulam_student_t_rng(ulam_context *ctx, double nu, double location, double scale, double *out) {
  BEGIN_RNG("student_t_rng");
  REQUIRE_POSITIVE_FINITE("Degrees of freedom parameter", nu);
  REQUIRE_FINITE("Location parameter", location);
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  if (is_scripted(rng)) {
    *out = location + scale * quantile_student_t(draw_probability(rng, RISING), nu);
    return ULAM_OK;
  }
  double z = random_standard_normal(rng);
  *out = location + scale * z * sqrt(0.5 * nu / random_standard_gamma(rng, 0.5 * nu));
  return ULAM_OK;
}

ULAM_API int32_t ulam_skew_normal_rng(ulam_context *ctx, double location, double scale, double shape, double *out) {
  BEGIN_RNG("skew_normal_rng");
  REQUIRE_FINITE("Location parameter", location);
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  REQUIRE_FINITE("Shape parameter", shape);
  if (is_scripted(rng)) {
    *out = location + scale * quantile_skew_normal(draw_probability(rng, RISING), shape);
    return ULAM_OK;
  }
  double u = random_standard_normal(rng), v = random_standard_normal(rng);
  *out = location + scale * (shape * fabs(u) + v) / hypot(1, shape);
  return ULAM_OK;
}

/* An exponential draw, once u has decided on the side: of scripted numbers what is left of u decides on it, too. */
static double random_distance(bitgen_t *rng, double u, double skewness) {
  if (!is_scripted(rng)) return random_standard_exponential(rng);
  return u < skewness ? -log(u / skewness) : -log((1 - u) / (1 - skewness));
}

ULAM_API int32_t ulam_skew_double_exponential_rng(ulam_context *ctx, double location, double scale, double skewness,
                                                  double *out) {
  BEGIN_RNG("skew_double_exponential_rng");
  REQUIRE_FINITE("Location parameter", location);
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  REQUIRE_PROBABILITY("Skewness parameter", skewness);
  /* Density 2 t (1 - t) / scale * exp(-2 / scale * ((1 - t) [y < mu] + t [y > mu]) |y - mu|). */
  double u = draw_uniform(rng);
  int below = u < skewness;
  double distance = 0.5 * scale * random_distance(rng, u, skewness);
  *out = location;
  if (distance > 0) *out += below ? -distance / (1 - skewness) : distance / skewness;
  return ULAM_OK;
}

ULAM_API int32_t ulam_exp_mod_normal_rng(ulam_context *ctx, double location, double scale, double rate, double *out) {
  BEGIN_RNG("exp_mod_normal_rng");
  REQUIRE_FINITE("Location parameter", location);
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  REQUIRE_POSITIVE_FINITE("Inv_scale parameter", rate);
  if (is_scripted(rng)) {
    *out = location + scale * quantile_exp_mod_normal(draw_probability(rng, RISING), rate * scale);
    return ULAM_OK;
  }
  double z = random_standard_normal(rng);
  *out = location + scale * z + random_standard_exponential(rng) / rate;
  return ULAM_OK;
}

ULAM_API int32_t ulam_pareto_type_2_rng(ulam_context *ctx, double location, double scale, double shape, double *out) {
  BEGIN_RNG("pareto_type_2_rng");
  REQUIRE_FINITE("Location parameter", location);
  REQUIRE_POSITIVE_FINITE("Scale parameter", scale);
  REQUIRE_POSITIVE_FINITE("Shape parameter", shape);
  *out = location + scale * expm1(draw_exponential(rng, RISING) / shape);
  return ULAM_OK;
}

ULAM_API int32_t ulam_von_mises_rng(ulam_context *ctx, double mu, double kappa, double *out) {
  BEGIN_RNG("von_mises_rng");
  REQUIRE_FINITE("Location parameter", mu);
  REQUIRE(isfinite(kappa) && kappa >= 0, "Scale parameter", kappa, "nonnegative finite");
  double pi = 3.14159265358979323846;
  if (is_scripted(rng)) {
    *out = mu + quantile_von_mises(draw_probability(rng, RISING), kappa);
    return ULAM_OK;
  }
  double centre = mu - 2 * pi * floor((mu + pi) / (2 * pi));
  *out = mu + (random_vonmises(rng, centre, kappa) - centre);
  return ULAM_OK;
}
