/* QR decomposition by Householder reflections, with a nonnegative diagonal of R. Thin form: for an m x n matrix and
 * k = min(m, n), Q is m x k and R is k x n.
 */
#include "dense.h"

ULAM_CLONES static void reflect(int64_t m, const number *restrict v, number half, number *restrict column) {
  number along = 0;
  for (int64_t i = 0; i < m; ++i) along += v[i] * column[i];
  along /= half;
  for (int64_t i = 0; i < m; ++i) column[i] -= along * v[i];
}

ULAM_API void KERNEL(qr_thin)(ulam_context *ctx, const number *A, int64_t m, int64_t n, number *Q, number *R) {
  int64_t k = m < n ? m : n;
  char *mark = ctx->arena_cursor;
  number *work = dense_copied(ctx, A, m * n), *vectors = dense_zeros(ctx, m * k), *halves = dense_numbers(ctx, k);
  for (int64_t j = 0; j < k; ++j) {
    number *column = work + j * m + j, *v = vectors + j * m + j, norm2 = 0;
    double scale = 0;
    int64_t length = m - j;
    halves[j] = 0;
    for (int64_t i = 0; i < length; ++i) scale = fmax(scale, fabs(value_of(column[i])));
    if (!(scale > 0) || length == 1) continue;
    for (int64_t i = 0; i < length; ++i) {
      v[i] = column[i] / scale;
      norm2 += v[i] * v[i];
    }
    number norm = value_of(v[0]) > 0 ? -sqrt(norm2) : sqrt(norm2);
    halves[j] = norm2 - v[0] * norm;
    v[0] -= norm;
    for (int64_t c = j; c < n; ++c) reflect(length, v, halves[j], work + c * m + j);
  }
  dense_zero(Q, m * k);
  for (int64_t j = 0; j < k; ++j) Q[j + j * m] = 1;
  for (int64_t j = k - 1; j >= 0; --j)
    if (value_of(halves[j]) > 0)
      for (int64_t c = j; c < k; ++c) reflect(m - j, vectors + j * m + j, halves[j], Q + c * m + j);
  dense_zero(R, k * n);
  for (int64_t c = 0; c < n; ++c)
    for (int64_t i = 0; i < k && i <= c; ++i) R[i + c * k] = work[i + c * m];
  for (int64_t i = 0; i < k; ++i) {
    if (!(value_of(R[i + i * k]) < 0)) continue;
    for (int64_t c = i; c < n; ++c) R[i + c * k] = -R[i + c * k];
    for (int64_t r = 0; r < m; ++r) Q[r + i * m] = -Q[r + i * m];
  }
  ulam_release(ctx, mark);
}

/* For the first k columns A1 = Q R1: M = R1 R1_adj' - Q_adj' Q, made symmetric from its lower triangle, and
 * A1_adj += (Q_adj + Q M) R1'^-1 (Walter and Lehmann, 2012). Where n > m, the columns beyond are A2 = Q R2. */
ULAM_API void KERNEL(qr_thin_pullback)(ulam_context *ctx, const number *A, int64_t m, int64_t n, const number *Q,
                                       const number *R, number *A_adj, const number *Q_adj, const number *R_adj) {
  if (A_adj == NULL) return;
  int64_t k = m < n ? m : n;
  char *mark = ctx->arena_cursor;
  number *total = dense_zeros(ctx, m * k), *M = dense_zeros(ctx, k * k), *upper = dense_zeros(ctx, k * k);
  if (Q_adj) dense_copy(total, Q_adj, m * k);
  if (R_adj && n > k) {
    dense_view rest = dense_of(R_adj + k * k, k);
    dense_multiply_add(ctx, m, k, n - k, 1.0, dense_of(A + m * k, m), dense_transposed(rest), dense_of(total, m));
    dense_multiply_add(ctx, m, n - k, k, 1.0, dense_of(Q, m), rest, dense_of(A_adj + m * k, m));
  }
  if (R_adj) {
    for (int64_t c = 0; c < k; ++c) dense_copy(upper + c * k, R_adj + c * k, c + 1); /* below, R is constant */
    dense_multiply_add(ctx, k, k, k, 1.0, dense_of(R, k), dense_transposed(dense_of(upper, k)), dense_of(M, k));
  }
  dense_multiply_add(ctx, k, k, m, -1.0, dense_transposed(dense_of(total, m)), dense_of(Q, m), dense_of(M, k));
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < j; ++i) M[i + j * k] = M[j + i * k];
  dense_multiply_add(ctx, m, k, k, 1.0, dense_of(Q, m), dense_of(M, k), dense_of(total, m));
  dense_solve_upper(ctx, k, m, dense_of(R, k), 0, dense_transposed(dense_of(total, m)));
  for (int64_t i = 0; i < m * k; ++i) A_adj[i] += total[i];
  ulam_release(ctx, mark);
}
