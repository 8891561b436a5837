/* Systems with a lower triangular matrix, and their pullbacks. */
#include "dense.h"

/* A += X Y' restricted to the lower triangle, for X, Y of n x m. */
static void add_lower_product(ulam_context *ctx, int64_t n, int64_t m, double alpha, dense_view X, dense_view Y,
                              number *A) {
#ifdef ULAM_FAST
  if (m == 1) { /* nothing above the diagonal is written */
    dense_multiply_add_lower(ctx, n, 1, alpha, X, dense_transposed(Y), dense_of(A, n));
    return;
  }
#endif
  char *mark = ctx->arena_cursor;
  number *product = dense_zeros(ctx, n * n);
#ifdef ULAM_FAST
  dense_multiply_add_lower(ctx, n, m, alpha, X, dense_transposed(Y), dense_of(product, n));
#else
  dense_multiply_add(ctx, n, n, m, alpha, X, dense_transposed(Y), dense_of(product, n));
#endif
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) A[i + j * n] += product[i + j * n];
  ulam_release(ctx, mark);
}

/* X = L^-1 B, L of n x n (lower triangle read), B of n x m. A zero on the diagonal gives infinities, as in Stan. */
ULAM_API void KERNEL(mdivide_left_tri_low)(ulam_context *ctx, const number *L, const number *B, int64_t n, int64_t m,
                                           number *X) {
  dense_copy(X, B, n * m);
  dense_solve_lower(ctx, n, m, dense_of(L, n), 0, dense_of(X, n));
}

/* B_adj += L'^-1 X_adj =: W;  L_adj -= lower(W X'). */
ULAM_API void KERNEL(mdivide_left_tri_low_pullback)(ulam_context *ctx, const number *L, const number *B, int64_t n,
                                                    int64_t m, const number *X, number *L_adj, number *B_adj,
                                                    const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *W = dense_copied(ctx, X_adj, n * m);
  dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, dense_of(W, n));
  if (B_adj)
    for (int64_t i = 0; i < n * m; ++i) B_adj[i] += W[i];
  if (L_adj) add_lower_product(ctx, n, m, -1.0, dense_of(W, n), dense_of(X, n), L_adj);
  ulam_release(ctx, mark);
}

/* X = B L^-1, B of m x n. */
ULAM_API void KERNEL(mdivide_right_tri_low)(ulam_context *ctx, const number *B, const number *L, int64_t m, int64_t n,
                                            number *X) {
  dense_copy(X, B, m * n);
  dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, dense_transposed(dense_of(X, m)));
}

/* B_adj += X_adj L'^-1 =: W;  L_adj -= lower(X' W). */
ULAM_API void KERNEL(mdivide_right_tri_low_pullback)(ulam_context *ctx, const number *B, const number *L, int64_t m,
                                                     int64_t n, const number *X, number *B_adj, number *L_adj,
                                                     const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *W = dense_copied(ctx, X_adj, m * n);
  dense_solve_lower(ctx, n, m, dense_of(L, n), 0, dense_transposed(dense_of(W, m)));
  if (B_adj)
    for (int64_t i = 0; i < m * n; ++i) B_adj[i] += W[i];
  if (L_adj)
    add_lower_product(ctx, n, m, -1.0, dense_transposed(dense_of(X, m)), dense_transposed(dense_of(W, m)), L_adj);
  ulam_release(ctx, mark);
}
