/* The two terms of a normal density of vectors that depend on its covariance matrix A = L L': for each column b of B the
 * squared length of L^-1 b, and the sum of the logarithms of L's diagonal. */
#include "dense.h"

#ifdef ULAM_FAST
/* The sum of the logarithms of positive numbers, as that of their product: exponents apart. */
static double sum_of_logs(int64_t n, const double *x, int64_t by) {
  enum { MOST = 1000 }; /* of fractions in [1, 2) a product that does not overflow */
  double sum = 0;
  int64_t exponents = 0;
  for (int64_t first = 0; first < n; first += MOST) {
    double product = 1;
    for (int64_t i = first; i < n && i < first + MOST; ++i) {
      int64_t bits;
      double fraction;
      memcpy(&bits, x + i * by, sizeof bits);
      exponents += (bits >> 52) - 1023; /* roots are positive, and far from the least number */
      bits = (bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000;
      memcpy(&fraction, &bits, sizeof fraction);
      product *= fraction;
    }
    sum += log(product);
  }
  return sum + (double)exponents * 0.69314718055994530942;
}
#else
static number sum_of_logs(int64_t n, const number *x, int64_t by) {
  number sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += log(x[i * by]);
  return sum;
}

/* X := (L L')^-1 */
static void dense_inverse_of_factor(ulam_context *ctx, int64_t n, const number *L, number *X) {
  dense_zero(X, n * n);
  for (int64_t i = 0; i < n; ++i) X[i + i * n] = 1;
  dense_solve_lower(ctx, n, n, dense_of(L, n), 0, dense_of(X, n));
  dense_solve_upper(ctx, n, n, dense_transposed(dense_of(L, n)), 0, dense_of(X, n));
}
#endif

ULAM_API int32_t KERNEL(normal_terms)(ulam_context *ctx, const number *A, const number *B, int64_t n, int64_t m,
                                      number *squares, number *log_root, number *L, number *Z) {
  int32_t status = dense_check_symmetric(ctx, "cholesky_decompose", A, n);
  if (status != ULAM_OK) return status;
#ifdef ULAM_FAST
  int few = m == 1 && dense_factor_few(n, A, B, L, Z);
#else
  int few = 0;
#endif
  if (!few) {
    status = dense_cholesky(ctx, "cholesky_decompose", A, n, L);
    if (status != ULAM_OK) return status;
    dense_copy(Z, B, n * m);
    dense_solve_lower(ctx, n, m, dense_of(L, n), 0, dense_of(Z, n));
  }
  for (int64_t j = 0; j < m; ++j) {
    number sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += Z[i + j * n] * Z[i + j * n];
    squares[j] = sum;
  }
  log_root[0] = sum_of_logs(n, L, n + 1);
  return ULAM_OK;
}

/* With alpha = L'^-1 Z, q the adjoints of the squares and l that of the sum of logarithms:
 *
 *     B_adj += 2 q alpha        A_adj += l/2 A^-1 - alpha diag(q) alpha'
 *
 * As only the lower triangle of A is read, all of it goes there, but half of the diagonal. */
ULAM_API void KERNEL(normal_terms_pullback)(ulam_context *ctx, const number *A, const number *B, int64_t n, int64_t m,
                                            const number *squares, const number *log_root, const number *L,
                                            const number *Z, number *A_adj, number *B_adj, const number *squares_adj,
                                            const number *log_root_adj, const number *L_adj, const number *Z_adj) {
  (void)A, (void)B, (void)squares, (void)log_root, (void)L_adj, (void)Z_adj; /* L and Z are for this alone */
  if (squares_adj == NULL && log_root_adj == NULL) return;
#ifdef ULAM_FAST
  if (m == 1 && squares_adj && log_root_adj &&
      dense_pull_back_few(n, L, Z, squares_adj[0], log_root_adj[0], A_adj, B_adj))
    return;
#endif
  char *mark = ctx->arena_cursor;
  if (A_adj && log_root_adj) {
    number *inverse = dense_numbers(ctx, n * n), of_logs = log_root_adj[0];
    dense_inverse_of_factor(ctx, n, L, inverse);
    for (int64_t j = 0; j < n; ++j) {
      A_adj[j + j * n] += 0.5 * of_logs * inverse[j + j * n];
      for (int64_t i = j + 1; i < n; ++i) A_adj[i + j * n] += of_logs * inverse[i + j * n];
    }
  }
  if (squares_adj) {
    number *alpha = dense_copied(ctx, Z, n * m);
    dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, dense_of(alpha, n));
    for (int64_t c = 0; c < m; ++c) {
      const number *restrict column = alpha + c * n;
      number adjoint = squares_adj[c];
      if (B_adj)
        for (int64_t i = 0; i < n; ++i) B_adj[i + c * n] += 2 * adjoint * column[i];
      if (A_adj)
        for (int64_t j = 0; j < n; ++j) {
          number *restrict to = A_adj + j * n, factor = 2 * adjoint * column[j];
          to[j] -= 0.5 * factor * column[j];
          for (int64_t i = j + 1; i < n; ++i) to[i] -= factor * column[i];
        }
    }
  }
  ulam_release(ctx, mark);
}
