/* `_rng` kernels of multivariate distributions, and of discrete ones with a vector of probabilities. Matrices are
 * column-major. How many numbers a scripted draw takes is said with each that takes more than one. Stan Functions Reference, chapters "Distributions over Unbounded Vectors" to "Covariance Matrix
 * Distributions".
 */
#include <string.h>

#include "dense.h"
#include "random.h"

static int32_t require_simplex(ulam_context *ctx, const char *name, const double *theta, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (!(theta[i] >= 0))
      return ulam_bad_element(ctx, name, "Probabilities parameter", i, theta[i], "greater than or equal to 0");
    sum += theta[i];
  }
  if (n == 0 || !(fabs(1 - sum) <= 1e-8))
    return ulam_bad_argument(ctx, name, "sum(Probabilities parameter)", sum, "1: it is not a valid simplex");
  return ULAM_OK;
}

static int32_t require_finite_elements(ulam_context *ctx, const char *name, const char *what, const double *x,
                                       int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    if (!isfinite(x[i])) return ulam_bad_element(ctx, name, what, i, x[i], "finite");
  return ULAM_OK;
}

/* Lower triangular with a positive diagonal. */
static int32_t require_cholesky_factor(ulam_context *ctx, const char *name, const double *L, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    if (!(L[j + j * n] > 0)) return ulam_bad_element(ctx, name, "diagonal of the Cholesky factor", j, L[j + j * n], "positive");
    for (int64_t i = 0; i < j; ++i)
      if (L[i + j * n] != 0)
        return ulam_fail(ctx, ULAM_REJECT, "%s: the Cholesky factor is not lower triangular: entry [%lld,%lld] is %g", name,
                         (long long)(i + 1), (long long)(j + 1), L[i + j * n]);
  }
  return ULAM_OK;
}

#define TRY(call)                    \
  do {                               \
    int32_t status_ = (call);        \
    if (status_ != ULAM_OK) return status_; \
  } while (0)

/* The first index, from 1, at which the running sum of the weights passes u * total. */
static int32_t draw_index(bitgen_t *rng, const double *weights, int64_t n, double total) {
  double left = draw_uniform(rng) * total;
  int64_t last = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (weights[i] > 0) last = i;
    left -= weights[i];
    if (left < 0) return (int32_t)(i + 1);
  }
  return (int32_t)(last + 1); /* rounding: the last one that is possible */
}

ULAM_API int32_t ulam_categorical_rng(ulam_context *ctx, const double *theta, int64_t n, int32_t *out) {
  BEGIN_RNG("categorical_rng");
  TRY(require_simplex(ctx, name, theta, n));
  *out = draw_index(rng, theta, n, 1.0);
  return ULAM_OK;
}

/* exp(beta - max(beta)) into a new arena block; returns their sum. */
static double exponentiate(ulam_context *ctx, const double *beta, int64_t n, double **weights) {
  double largest = beta[0], total = 0;
  for (int64_t i = 1; i < n; ++i) largest = beta[i] > largest ? beta[i] : largest;
  *weights = ulam_doubles(ctx, n);
  for (int64_t i = 0; i < n; ++i) total += (*weights)[i] = exp(beta[i] - largest);
  return total;
}

ULAM_API int32_t ulam_categorical_logit_rng(ulam_context *ctx, const double *beta, int64_t n, int32_t *out) {
  BEGIN_RNG("categorical_logit_rng");
  REQUIRE_POSITIVE("Number of categories", n);
  TRY(require_finite_elements(ctx, name, "Log odds parameter", beta, n));
  char *mark = ctx->arena_cursor;
  double *weights;
  double total = exponentiate(ctx, beta, n, &weights);
  *out = draw_index(rng, weights, n, total);
  ulam_release(ctx, mark);
  return ULAM_OK;
}

static void draw_multinomial(bitgen_t *rng, const double *theta, double total, int64_t n, int64_t count, int32_t *out) {
  int64_t left = count;
  for (int64_t i = 0; i < n; ++i) {
    int64_t drawn = 0;
    if (i == n - 1 || theta[i] >= total)
      drawn = left;
    else if (left > 0 && theta[i] > 0) {
      double share = theta[i] / total;
      numpy_binomial prepared = {0};
      drawn = is_scripted(rng) ? quantile_binomial(draw_probability(rng, RISING), left, share)
                               : random_binomial(rng, share, left, &prepared);
    }
    out[i] = (int32_t)drawn;
    left -= drawn;
    total -= theta[i];
  }
}

ULAM_API int32_t ulam_multinomial_rng(ulam_context *ctx, const double *theta, int64_t n, int32_t count, int32_t *out) {
  BEGIN_RNG("multinomial_rng");
  TRY(require_simplex(ctx, name, theta, n));
  REQUIRE_NONNEGATIVE("number of trials variable", count);
  draw_multinomial(rng, theta, 1.0, n, count, out);
  return ULAM_OK;
}

ULAM_API int32_t ulam_multinomial_logit_rng(ulam_context *ctx, const double *beta, int64_t n, int32_t count,
                                            int32_t *out) {
  BEGIN_RNG("multinomial_logit_rng");
  REQUIRE_POSITIVE("Number of categories", n);
  TRY(require_finite_elements(ctx, name, "log-probabilities parameter", beta, n));
  REQUIRE_NONNEGATIVE("number of trials variable", count);
  char *mark = ctx->arena_cursor;
  double *weights;
  double total = exponentiate(ctx, beta, n, &weights);
  draw_multinomial(rng, weights, total, n, count, out);
  ulam_release(ctx, mark);
  return ULAM_OK;
}

/* The category of a latent value: the number of cut points at or below it, plus 1. */
static int32_t draw_ordered(ulam_context *ctx, const char *name, double latent, const double *cut, int64_t n,
                            int32_t *out) {
  for (int64_t i = 0; i < n; ++i) {
    if (!isfinite(cut[i])) return ulam_bad_element(ctx, name, "Cut points parameter", i, cut[i], "finite");
    if (i && !(cut[i] > cut[i - 1]))
      return ulam_bad_element(ctx, name, "Cut points parameter", i, cut[i], "greater than the one before");
  }
  int64_t below = 0;
  while (below < n && cut[below] <= latent) ++below;
  *out = (int32_t)(below + 1);
  return ULAM_OK;
}

ULAM_API int32_t ulam_ordered_logistic_rng(ulam_context *ctx, double eta, const double *cut, int64_t n, int32_t *out) {
  BEGIN_RNG("ordered_logistic_rng");
  REQUIRE_FINITE("Location parameter", eta);
  REQUIRE_POSITIVE("Size of cut points parameter", n);
  return draw_ordered(ctx, name, draw_logistic(rng, eta, 1), cut, n, out);
}

ULAM_API int32_t ulam_ordered_probit_rng(ulam_context *ctx, double eta, const double *cut, int64_t n, int32_t *out) {
  BEGIN_RNG("ordered_probit_rng");
  REQUIRE_FINITE("Location parameter", eta);
  REQUIRE_POSITIVE("Size of cut points parameter", n);
  return draw_ordered(ctx, name, eta + draw_standard_normal(rng), cut, n, out);
}

ULAM_API int32_t ulam_dirichlet_rng(ulam_context *ctx, const double *alpha, int64_t n, double *out) {
  BEGIN_RNG("dirichlet_rng");
  for (int64_t i = 0; i < n; ++i)
    if (!(isfinite(alpha[i]) && alpha[i] > 0))
      return ulam_bad_element(ctx, name, "prior sample sizes", i, alpha[i], "positive finite");
  /* Logarithms of gamma draws, as draws of a small shape underflow: G(a) = G(a + 1) * U^(1 / a). */
  double largest = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    double g = draw_gamma(rng, alpha[i] + 1, RISING);
    out[i] = log(g) - draw_exponential(rng, FALLING) / alpha[i];
    largest = out[i] > largest ? out[i] : largest;
  }
  for (int64_t i = 0; i < n; ++i) sum += out[i] = exp(out[i] - largest);
  for (int64_t i = 0; i < n; ++i) out[i] /= sum;
  return ULAM_OK;
}

ULAM_API int32_t ulam_dirichlet_multinomial_rng(ulam_context *ctx, const double *alpha, int64_t n, int32_t count,
                                                int32_t *out) {
  BEGIN_RNG("dirichlet_multinomial_rng");
  REQUIRE_NONNEGATIVE("number of trials variable", count);
  (void)rng;
  char *mark = ctx->arena_cursor;
  double *theta = ulam_doubles(ctx, n);
  int32_t status = ulam_dirichlet_rng(ctx, alpha, n, theta);
  if (status == ULAM_OK) draw_multinomial(rng, theta, 1.0, n, count, out);
  ulam_release(ctx, mark);
  return status;
}

/* out = mu + factor * L z, with z standard normal; only the lower triangle of L is read. */
static void draw_normal(ulam_context *ctx, const double *mu, const double *L, int64_t n, double factor, double *out) {
  bitgen_t *rng = ctx->rng;
  char *mark = ctx->arena_cursor;
  double *z = ulam_doubles(ctx, n);
  for (int64_t j = 0; j < n; ++j) z[j] = factor * draw_standard_normal(rng);
  memmove(out, mu, (size_t)n * sizeof *out);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) out[i] += L[i + j * n] * z[j];
  ulam_release(ctx, mark);
}

ULAM_API int32_t ulam_multi_normal_cholesky_rng(ulam_context *ctx, const double *mu, const double *L, int64_t n,
                                                double *out) {
  BEGIN_RNG("multi_normal_cholesky_rng");
  (void)rng;
  TRY(require_finite_elements(ctx, name, "Location parameter", mu, n));
  TRY(require_cholesky_factor(ctx, name, L, n));
  draw_normal(ctx, mu, L, n, 1.0, out);
  return ULAM_OK;
}

/* The Cholesky factor of S into a new arena block, or a rejection. */
static int32_t factor(ulam_context *ctx, const char *name, const double *S, int64_t n, double **L) {
  *L = ulam_doubles(ctx, n * n);
  TRY(dense_check_symmetric(ctx, name, S, n));
  return dense_cholesky(ctx, name, S, n, *L);
}

ULAM_API int32_t ulam_multi_normal_rng(ulam_context *ctx, const double *mu, const double *S, int64_t n, double *out) {
  BEGIN_RNG("multi_normal_rng");
  (void)rng;
  TRY(require_finite_elements(ctx, name, "Location parameter", mu, n));
  char *mark = ctx->arena_cursor;
  double *L;
  int32_t status = factor(ctx, name, S, n, &L);
  if (status == ULAM_OK) draw_normal(ctx, mu, L, n, 1.0, out);
  ulam_release(ctx, mark);
  return status;
}

static int32_t draw_student_t(ulam_context *ctx, const char *name, double nu, const double *mu, const double *L,
                              int64_t n, double *out) {
  REQUIRE_POSITIVE("Degrees of freedom parameter", nu);
  TRY(require_finite_elements(ctx, name, "Location parameter", mu, n));
  double scale = isinf(nu) ? 1.0 : sqrt(0.5 * nu / draw_gamma(ctx->rng, 0.5 * nu, FALLING));
  draw_normal(ctx, mu, L, n, scale, out);
  return ULAM_OK;
}

ULAM_API int32_t ulam_multi_student_t_cholesky_rng(ulam_context *ctx, double nu, const double *mu, const double *L,
                                                   int64_t n, double *out) {
  BEGIN_RNG("multi_student_t_cholesky_rng");
  (void)rng;
  TRY(require_cholesky_factor(ctx, name, L, n));
  return draw_student_t(ctx, name, nu, mu, L, n, out);
}

ULAM_API int32_t ulam_multi_student_t_rng(ulam_context *ctx, double nu, const double *mu, const double *S, int64_t n,
                                          double *out) {
  BEGIN_RNG("multi_student_t_rng");
  (void)rng;
  char *mark = ctx->arena_cursor;
  double *L;
  int32_t status = factor(ctx, name, S, n, &L);
  if (status == ULAM_OK) status = draw_student_t(ctx, name, nu, mu, L, n, out);
  ulam_release(ctx, mark);
  return status;
}

/* Canonical partial correlations of a vine, each 2 * beta - 1; Lewandowski, Kurowicka and Joe (2009). */
ULAM_API int32_t ulam_lkj_corr_cholesky_rng(ulam_context *ctx, int32_t size, double eta, double *out) {
  BEGIN_RNG("lkj_corr_cholesky_rng");
  REQUIRE_NONNEGATIVE("Dimension", size);
  REQUIRE_POSITIVE("Shape parameter", eta);
  int64_t n = size;
  memset(out, 0, (size_t)(n * n) * sizeof *out);
  for (int64_t i = 0; i < n; ++i) {
    double left = 1; /* 1 - sum of squares of the row so far */
    for (int64_t j = 0; j < i; ++j) {
      double shape = eta + 0.5 * (double)(n - 2 - j);
      double z = 2 * draw_beta(rng, shape, shape) - 1;
      out[i + j * n] = z * sqrt(left);
      left *= 1 - z * z;
    }
    out[i + i * n] = sqrt(left);
  }
  return ULAM_OK;
}

/* out = L L' for a lower triangular L. */
static void multiply_self_transpose(const double *L, int64_t n, double *out) {
  memset(out, 0, (size_t)(n * n) * sizeof *out);
  for (int64_t k = 0; k < n; ++k)
    for (int64_t j = k; j < n; ++j)
      for (int64_t i = k; i < n; ++i) out[i + j * n] += L[i + k * n] * L[j + k * n];
}

ULAM_API int32_t ulam_lkj_corr_rng(ulam_context *ctx, int32_t size, double eta, double *out) {
  BEGIN_RNG("lkj_corr_rng");
  (void)rng;
  REQUIRE_NONNEGATIVE("Dimension", size);
  char *mark = ctx->arena_cursor;
  double *L = ulam_doubles(ctx, (int64_t)size * size);
  int32_t status = ulam_lkj_corr_cholesky_rng(ctx, size, eta, L);
  if (status == ULAM_OK) {
    multiply_self_transpose(L, size, out);
    for (int64_t i = 0; i < size; ++i) out[i + i * (int64_t)size] = 1;
  }
  ulam_release(ctx, mark);
  return status;
}

/* Bartlett: lower triangular A with A A' Wishart distributed for the unit scale; then L A. */
static int32_t draw_wishart_factor(ulam_context *ctx, const char *name, double nu, const double *L, int64_t n,
                                   double *out) {
  bitgen_t *rng = ctx->rng;
  REQUIRE(nu > (double)(n - 1), "Degrees of freedom parameter", nu, "greater than the dimension - 1");
  double *A = ulam_doubles(ctx, n * n);
  memset(A, 0, (size_t)(n * n) * sizeof *A);
  for (int64_t j = 0; j < n; ++j) {
    A[j + j * n] = sqrt(2 * draw_gamma(rng, 0.5 * (nu - (double)j), RISING));
    for (int64_t i = j + 1; i < n; ++i) A[i + j * n] = draw_standard_normal(rng);
  }
  memset(out, 0, (size_t)(n * n) * sizeof *out);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t k = j; k < n; ++k)
      for (int64_t i = k; i < n; ++i) out[i + j * n] += L[i + k * n] * A[k + j * n];
  return ULAM_OK;
}

ULAM_API int32_t ulam_wishart_cholesky_rng(ulam_context *ctx, double nu, const double *L, int64_t n, double *out) {
  BEGIN_RNG("wishart_cholesky_rng");
  (void)rng;
  TRY(require_cholesky_factor(ctx, name, L, n));
  char *mark = ctx->arena_cursor;
  int32_t status = draw_wishart_factor(ctx, name, nu, L, n, out);
  ulam_release(ctx, mark);
  return status;
}

ULAM_API int32_t ulam_wishart_rng(ulam_context *ctx, double nu, const double *S, int64_t n, double *out) {
  BEGIN_RNG("wishart_rng");
  (void)rng;
  char *mark = ctx->arena_cursor;
  double *L, *drawn = ulam_doubles(ctx, n * n);
  int32_t status = factor(ctx, name, S, n, &L);
  if (status == ULAM_OK) status = draw_wishart_factor(ctx, name, nu, L, n, drawn);
  if (status == ULAM_OK) multiply_self_transpose(drawn, n, out);
  ulam_release(ctx, mark);
  return status;
}

ULAM_API int32_t ulam_inv_wishart_rng(ulam_context *ctx, double nu, const double *S, int64_t n, double *out) {
  BEGIN_RNG("inv_wishart_rng");
  (void)rng;
  char *mark = ctx->arena_cursor;
  double *inverse = ulam_doubles(ctx, n * n), *wishart = ulam_doubles(ctx, n * n), *L;
  int32_t status = dense_check_symmetric(ctx, name, S, n);
  if (status == ULAM_OK) status = dense_inverse_spd(ctx, name, S, n, inverse);
  if (status == ULAM_OK) status = factor(ctx, name, inverse, n, &L);
  if (status == ULAM_OK) {
    double *drawn = ulam_doubles(ctx, n * n);
    status = draw_wishart_factor(ctx, name, nu, L, n, drawn);
    if (status == ULAM_OK) {
      multiply_self_transpose(drawn, n, wishart);
      status = dense_inverse_spd(ctx, name, wishart, n, out);
    }
  }
  ulam_release(ctx, mark);
  return status;
}
