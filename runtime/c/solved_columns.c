/* Triangular systems of data, solved once, when data are bound, for columns of which evaluations make combinations. */
#include <math.h>

#include "dense.h"
#include "twofold.h"

static const double MUCH = 100, DEPENDENT = 1e-16;

/* L := the Cholesky factor of A, and found := 1; where A is not symmetric and positive definite, NaN and 0. */
ULAM_API void ulam_factor_if_positive(ulam_context *ctx, const double *A, int64_t n, double *L, int64_t *found) {
  (void)ctx;
  int fits = 1;
  for (int64_t j = 0; j < n && fits; ++j)
    for (int64_t i = j + 1; i < n; ++i) fits &= A[i + j * n] == A[j + i * n];
  memset(L, 0, (size_t)(n * n) * sizeof *L);
  for (int64_t j = 0; j < n && fits; ++j) {
    double *column = L + j * n;
    for (int64_t i = j; i < n; ++i) column[i] = A[i + j * n];
    for (int64_t k = 0; k < j; ++k) {
      const double *other = L + k * n;
      double factor = other[j];
      for (int64_t i = j; i < n; ++i) column[i] -= factor * other[i];
    }
    double pivot = sqrt(column[j]);
    fits = pivot > 0 && pivot < INFINITY;
    for (int64_t i = j; i < n; ++i) column[i] /= pivot;
  }
  for (int64_t i = 0; i < n * n && !fits; ++i) L[i] = NAN;
  found[0] = fits;
}

/* x -= l (w + low), where x and rest are numbers of twice the digits. */
TWOFOLD_CLONES static void take_row(int64_t m, double l, const double *restrict w, const double *restrict low,
                                    double *restrict x, double *restrict rest) {
  for (int64_t c = 0; c < m; ++c) increase_by_product(x + c, rest + c, (twofold){w[c], low[c]}, -l);
}

/* The combination of columns 1 to m - 1 of W that is next to the first one's negative; those that are combinations of
 * others, but for rounding, are not in it. */
static void fit(ulam_context *ctx, const double *W, int64_t n, int64_t m, double *found) {
  double *Q = ulam_doubles(ctx, n * m), *R = ulam_doubles(ctx, m * m);
  memset(R, 0, (size_t)(m * m) * sizeof *R);
  memset(found, 0, (size_t)m * sizeof *found);
  for (int64_t c = 0; c < m; ++c)
    for (int64_t i = 0; i < n; ++i) Q[i + c * n] = W[i * m + c];
  for (int64_t c = 1; c <= m; ++c) { /* the first column comes last */
    double *column = Q + c % m * n, before = 0, left = 0;
    for (int64_t i = 0; i < n; ++i) before += column[i] * column[i];
    for (int turn = 0; turn < 2; ++turn)
      for (int64_t q = 1; q < c; ++q) {
        const double *other = Q + q * n;
        double along = 0;
        for (int64_t i = 0; i < n; ++i) along += other[i] * column[i];
        for (int64_t i = 0; i < n; ++i) column[i] -= along * other[i];
        R[q + c % m * m] += along;
      }
    for (int64_t i = 0; i < n; ++i) left += column[i] * column[i];
    if (c == m) break;
    double length = left > DEPENDENT * before ? sqrt(left) : 0;
    R[c + c * m] = length;
    for (int64_t i = 0; i < n; ++i) column[i] = length > 0 ? column[i] / length : 0;
  }
  for (int64_t c = m - 1; c > 0; --c) {
    double sum = -R[c];
    for (int64_t q = c + 1; q < m; ++q) sum -= R[c + q * m] * found[q];
    found[c] = R[c + c * m] > 0 ? sum / R[c + c * m] : 0;
  }
}

/* W := L^-1 B for the lower triangle of L; rows of B and W are m numbers each, one behind the other. Where large numbers
 * of the first column are those that a combination of the others has, it is W's first column plus that combination, and
 * `centre` is what others are multiplied by in it; else 0. */
ULAM_API void ulam_solve_columns(ulam_context *ctx, const double *L, const double *B, int64_t n, int64_t m, double *W,
                                 double *centre) {
  char *mark = ctx->arena_cursor;
  double *low = ulam_doubles(ctx, n * m);
  for (int64_t i = 0; i < n; ++i) {
    double *x = W + i * m, *rest = low + i * m, pivot = L[i + i * n];
    memcpy(x, B + i * m, (size_t)m * sizeof *x);
    memset(rest, 0, (size_t)m * sizeof *rest);
    for (int64_t j = 0; j < i; ++j) take_row(m, L[i + j * n], W + j * m, low + j * m, x, rest);
    for (int64_t c = 0; c < m; ++c) {
      double found = x[c] / pivot, left = __builtin_fma(-found, pivot, x[c]) + rest[c], more = left / pivot;
      x[c] = found, rest[c] = more == more ? more : 0;
    }
  }
  fit(ctx, W, n, m, centre);
  double *first = ulam_doubles(ctx, 2 * n), *first_low = first + n, before = 0, left = 0;
  for (int64_t i = 0; i < n; ++i) {
    first[i] = W[i * m], first_low[i] = low[i * m];
    before += first[i] * first[i];
    for (int64_t c = 1; c < m; ++c) take_row(1, -centre[c], W + i * m + c, low + i * m + c, first + i, first_low + i);
    first[i] += first_low[i];
    left += first[i] * first[i];
  }
  int is_centred = left < before / (MUCH * MUCH);
  for (int64_t i = 0; i < n * m; ++i) W[i] += low[i];
  for (int64_t i = 0; i < n && is_centred; ++i) W[i * m] = first[i];
  if (!is_centred) memset(centre, 0, (size_t)m * sizeof *centre);
  ulam_release(ctx, mark);
}
