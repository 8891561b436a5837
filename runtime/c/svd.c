/* Singular value decomposition by one-sided Jacobi rotations: slow to grow, accurate for small singular values
 * (Hestenes, 1958; Demmel and Veselic, 1992).
 */
#include <float.h>

#include "dense.h"

/* Rotates the columns of U (m x n, m >= n) until they are orthogonal; the rotations gather in V (n x n). */
ULAM_CLONES static int orthogonalize(int64_t m, int64_t n, double *U, double *V) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    int rotated = 0;
    for (int64_t p = 0; p + 1 < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        double *restrict x = U + p * m, *restrict y = U + q * m;
        double xx = 0, yy = 0, xy = 0;
        for (int64_t i = 0; i < m; ++i) {
          xx += x[i] * x[i];
          yy += y[i] * y[i];
          xy += x[i] * y[i];
        }
        if (!(fabs(xy) > DBL_EPSILON * sqrt(xx) * sqrt(yy)) || xy == 0) continue;
        rotated = 1;
        double zeta = (yy - xx) / (2 * xy);
        double t = (zeta >= 0 ? 1 : -1) / (fabs(zeta) + hypot(1, zeta));
        double c = 1 / sqrt(1 + t * t), s = c * t;
        for (int64_t i = 0; i < m; ++i) {
          double left = x[i], right = y[i];
          x[i] = c * left - s * right;
          y[i] = s * left + c * right;
        }
        double *restrict v = V + p * n, *restrict u = V + q * n;
        for (int64_t i = 0; i < n; ++i) {
          double left = v[i], right = u[i];
          v[i] = c * left - s * right;
          u[i] = s * left + c * right;
        }
      }
    if (!rotated) return 1;
  }
  return 0;
}

static void exchange_columns(double *A, int64_t rows, int64_t i, int64_t j) {
  for (int64_t k = 0; k < rows; ++k) {
    double kept = A[k + i * rows];
    A[k + i * rows] = A[k + j * rows];
    A[k + j * rows] = kept;
  }
}

/* A column of zeros in U becomes a unit vector orthogonal to the columns before it. */
static void complete_column(double *U, int64_t m, int64_t j) {
  for (int64_t candidate = 0; candidate < m; ++candidate) {
    double *column = U + j * m, norm2 = 0;
    dense_zero(column, m);
    column[candidate] = 1;
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < j; ++k) {
        double along = 0;
        for (int64_t i = 0; i < m; ++i) along += U[i + k * m] * column[i];
        for (int64_t i = 0; i < m; ++i) column[i] -= along * U[i + k * m];
      }
    for (int64_t i = 0; i < m; ++i) norm2 += column[i] * column[i];
    if (norm2 * (double)m < 0.5) continue; /* some candidate keeps at least 1 / m */
    for (int64_t i = 0; i < m; ++i) column[i] /= sqrt(norm2);
    return;
  }
}

/* A = U diag(s) V' for m >= n. */
static int decompose(int64_t m, int64_t n, double *U, double *s, double *V) {
  dense_zero(V, n * n);
  for (int64_t i = 0; i < n; ++i) V[i + i * n] = 1;
  double scale = 0; /* squares neither overflow nor vanish */
  for (int64_t i = 0; i < m * n; ++i) scale = fabs(U[i]) > scale ? fabs(U[i]) : scale;
  if (scale > 0)
    for (int64_t i = 0; i < m * n; ++i) U[i] /= scale;
  int converged = orthogonalize(m, n, U, V);
  for (int64_t j = 0; j < n; ++j) {
    double norm2 = 0;
    for (int64_t i = 0; i < m; ++i) norm2 += U[i + j * m] * U[i + j * m];
    s[j] = sqrt(norm2);
  }
  for (int64_t i = 0; i < n; ++i) { /* descending */
    int64_t largest = i;
    for (int64_t j = i + 1; j < n; ++j)
      if (s[j] > s[largest]) largest = j;
    if (largest == i) continue;
    double kept = s[i];
    s[i] = s[largest];
    s[largest] = kept;
    exchange_columns(U, m, i, largest);
    exchange_columns(V, n, i, largest);
  }
  for (int64_t j = 0; j < n; ++j) {
    if (s[j] > 0)
      for (int64_t i = 0; i < m; ++i) U[i + j * m] /= s[j];
    else
      complete_column(U, m, j);
    s[j] *= scale;
  }
  return converged;
}

/* The thin decomposition A = U diag(s) V' of an m x n matrix: with k = min(m, n), U is m x k and V is n x k. */
static int32_t thin_svd(ulam_context *ctx, const char *name, const double *A, int64_t m, int64_t n, double *s,
                        double *U, double *V) {
  for (int64_t i = 0; i < m * n; ++i)
    if (!isfinite(A[i])) return ulam_fail(ctx, ULAM_REJECT, "%s: the matrix has an element that is not finite", name);
  int converged;
  if (m >= n) {
    dense_copy(U, A, m * n);
    converged = decompose(m, n, U, s, V);
  } else {
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < m; ++i) V[j + i * n] = A[i + j * m];
    converged = decompose(n, m, V, s, U);
  }
  if (!converged) return ulam_fail(ctx, ULAM_REJECT, "%s: the Jacobi rotations did not converge", name);
  return ULAM_OK;
}

ULAM_API int32_t KERNEL(singular_values)(ulam_context *ctx, const double *A, int64_t m, int64_t n, double *s, double *U,
                                      double *V) {
  return thin_svd(ctx, "singular_values", A, m, n, s, U, V);
}

ULAM_API int32_t KERNEL(svd)(ulam_context *ctx, const double *A, int64_t m, int64_t n, double *s, double *U, double *V) {
  return thin_svd(ctx, "svd", A, m, n, s, U, V);
}
