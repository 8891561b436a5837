/* Draws, argument checks and kernels of `_rng` functions; NumPy's distributions do the sampling. Of scripted numbers
 * (see trace.h), which are uniform, each draw takes one and is the quantile there.
 *
 * The prototypes below are those of `numpy/random/distributions.h`, which cannot be included without Python's headers.
 */
#ifndef ULAM_RANDOM_H
#define ULAM_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "numpy/random/bitgen.h"
#include "quantiles.h"
#include "special.h"
#include "context.h"

typedef struct {
  union {
    double alignment;
    char bytes[256];
  } opaque; /* NumPy's binomial_t (about 150 bytes): all zero means "nothing prepared" */
} numpy_binomial;

extern double random_standard_exponential(bitgen_t *);
extern double random_standard_normal(bitgen_t *);
extern double random_standard_gamma(bitgen_t *, double shape);
extern double random_beta(bitgen_t *, double a, double b);
extern double random_standard_cauchy(bitgen_t *);
extern double random_laplace(bitgen_t *, double location, double scale);
extern double random_gumbel(bitgen_t *, double location, double scale);
extern double random_logistic(bitgen_t *, double location, double scale);
extern double random_vonmises(bitgen_t *, double mu, double kappa);
extern int64_t random_poisson(bitgen_t *, double rate);
extern int64_t random_binomial(bitgen_t *, double p, int64_t n, void *prepared);
extern int64_t random_hypergeometric(bitgen_t *, int64_t good, int64_t bad, int64_t sample);

static inline double draw_uniform(bitgen_t *rng) { return rng->next_double(rng->state); }

/* What a scripted generator has for `next_raw`, by which it is known: no draw asks for that. */
uint64_t ulam_scripted_raw(void *state);
static inline int is_scripted(const bitgen_t *rng) { return rng->next_raw == ulam_scripted_raw; }

/* Whether what is made of a draw rises or falls with it: so does the quantile that a scripted one is. */
enum { RISING, FALLING };
static inline probability draw_probability(bitgen_t *rng, int direction) {
  double u = draw_uniform(rng);
  return direction == RISING ? quantile_rising(u) : quantile_falling(u);
}

static inline double draw_standard_normal(bitgen_t *rng) {
  return is_scripted(rng) ? ulam_inv_Phi(draw_uniform(rng)) : random_standard_normal(rng);
}
static inline double draw_exponential(bitgen_t *rng, int direction) {
  return is_scripted(rng) ? quantile_exponential(draw_probability(rng, direction)) : random_standard_exponential(rng);
}
static inline double draw_gamma(bitgen_t *rng, double shape, int direction) {
  return is_scripted(rng) ? quantile_gamma(draw_probability(rng, direction), shape) : random_standard_gamma(rng, shape);
}
static inline double draw_beta(bitgen_t *rng, double a, double b) {
  return is_scripted(rng) ? quantile_beta(draw_probability(rng, RISING), a, b) : random_beta(rng, a, b);
}
static inline double draw_logistic(bitgen_t *rng, double location, double scale) {
  if (!is_scripted(rng)) return random_logistic(rng, location, scale);
  double u = draw_uniform(rng);
  return location + scale * (log(u) - log1p(-u));
}

/* `name: what is value, but must be phrase!` as a rejection. */
int32_t ulam_bad_argument(ulam_context *ctx, const char *name, const char *what, double value, const char *phrase);
int32_t ulam_bad_element(ulam_context *ctx, const char *name, const char *what, int64_t index, double value,
                         const char *phrase);
int32_t ulam_no_rng(ulam_context *ctx, const char *name);

#define REQUIRE(condition, what, value, phrase) \
  if (!(condition)) return ulam_bad_argument(ctx, name, what, value, phrase)
#define REQUIRE_FINITE(what, value) REQUIRE(isfinite(value), what, value, "finite")
#define REQUIRE_POSITIVE_FINITE(what, value) REQUIRE(isfinite(value) && (value) > 0, what, value, "positive finite")
#define REQUIRE_POSITIVE(what, value) REQUIRE((value) > 0, what, value, "positive")
#define REQUIRE_NONNEGATIVE(what, value) REQUIRE((value) >= 0, what, value, "nonnegative")
#define REQUIRE_PROBABILITY(what, value) REQUIRE((value) >= 0 && (value) <= 1, what, value, "in the interval [0, 1]")

/* The head of a kernel FUNCTION_rng: its name for messages and the generator. */
#define BEGIN_RNG(text)             \
  static const char name[] = text;  \
  bitgen_t *rng = ctx->rng;         \
  if (rng == NULL) return ulam_no_rng(ctx, name)

#endif
