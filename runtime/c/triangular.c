/* Triangular systems: blocked, all but the diagonal blocks is matrix product. */
#include "dense.h"

enum { BLOCK = 32 };

/* Forward substitution, column by column of B. */
ULAM_CLONES static void substitute_columns(int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  for (int64_t c = 0; c < m; ++c) {
    double *restrict x = B.data + c * B.columns_by;
    for (int64_t j = 0; j < n; ++j) {
      if (!unit_diagonal) x[j] /= AT(T, j, j);
      double factor = x[j];
      const double *restrict t = &AT(T, 0, j);
      if (T.rows_by == 1)
        for (int64_t i = j + 1; i < n; ++i) x[i] -= factor * t[i];
      else
        for (int64_t i = j + 1; i < n; ++i) x[i] -= factor * t[i * T.rows_by];
    }
  }
}

/* Forward substitution, whole rows of B at a time: for rows that lie contiguous. */
ULAM_CLONES static void substitute_rows(int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  for (int64_t j = 0; j < n; ++j) {
    double *restrict solved = &AT(B, j, 0);
    if (!unit_diagonal) {
      double diagonal = AT(T, j, j);
      for (int64_t c = 0; c < m; ++c) solved[c * B.columns_by] /= diagonal;
    }
    for (int64_t i = j + 1; i < n; ++i) {
      double factor = AT(T, i, j);
      double *restrict x = &AT(B, i, 0);
      if (B.columns_by == 1)
        for (int64_t c = 0; c < m; ++c) x[c] -= factor * solved[c];
      else
        for (int64_t c = 0; c < m; ++c) x[c * B.columns_by] -= factor * solved[c * B.columns_by];
    }
  }
}

void dense_solve_lower(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  for (int64_t j = 0; j < n; j += BLOCK) {
    int64_t size = n - j < BLOCK ? n - j : BLOCK, below = n - j - size;
    dense_view diagonal = dense_block(T, j, j), solved = dense_block(B, j, 0);
    if (B.rows_by == 1)
      substitute_columns(size, m, diagonal, unit_diagonal, solved);
    else
      substitute_rows(size, m, diagonal, unit_diagonal, solved);
    dense_multiply_add(ctx, below, m, size, -1.0, dense_block(T, j + size, j), solved, dense_block(B, j + size, 0));
  }
}

/* Backward substitution is forward substitution with both orders reversed. */
void dense_solve_upper(ulam_context *ctx, int64_t n, int64_t m, dense_view T, int unit_diagonal, dense_view B) {
  for (int64_t end = n; end > 0; end -= BLOCK) {
    int64_t size = end < BLOCK ? end : BLOCK, begin = end - size;
    for (int64_t j = end - 1; j >= begin; --j) {
      double diagonal = unit_diagonal ? 1.0 : AT(T, j, j);
      for (int64_t c = 0; c < m; ++c) {
        double factor = AT(B, j, c) /= diagonal;
        for (int64_t i = begin; i < j; ++i) AT(B, i, c) -= factor * AT(T, i, j);
      }
    }
    dense_multiply_add(ctx, begin, m, size, -1.0, dense_block(T, 0, begin), dense_block(B, begin, 0), B);
  }
}

/* A += X Y' restricted to the lower triangle, for X, Y of n x m. */
static void add_lower_product(ulam_context *ctx, int64_t n, int64_t m, double alpha, dense_view X, dense_view Y,
                              double *A) {
  char *mark = ctx->arena_cursor;
  double *product = dense_zeros(ctx, n * n);
  dense_multiply_add(ctx, n, n, m, alpha, X, dense_transposed(Y), dense_of(product, n));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) A[i + j * n] += product[i + j * n];
  ulam_release(ctx, mark);
}

/* X = L^-1 B, L of n x n (lower triangle read), B of n x m. A zero on the diagonal gives infinities, as in Stan. */
ULAM_API void ulam_mdivide_left_tri_low(ulam_context *ctx, const double *L, const double *B, int64_t n, int64_t m,
                                        double *X) {
  dense_copy(X, B, n * m);
  dense_solve_lower(ctx, n, m, dense_of(L, n), 0, dense_of(X, n));
}

/* B_adj += L'^-1 X_adj =: W;  L_adj -= lower(W X'). */
ULAM_API void ulam_mdivide_left_tri_low_pullback(ulam_context *ctx, const double *L, const double *B, int64_t n,
                                                 int64_t m, const double *X, double *L_adj, double *B_adj,
                                                 const double *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  double *W = dense_copied(ctx, X_adj, n * m);
  dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, dense_of(W, n));
  if (B_adj)
    for (int64_t i = 0; i < n * m; ++i) B_adj[i] += W[i];
  if (L_adj) add_lower_product(ctx, n, m, -1.0, dense_of(W, n), dense_of(X, n), L_adj);
  ulam_release(ctx, mark);
}

/* X = B L^-1, B of m x n. */
ULAM_API void ulam_mdivide_right_tri_low(ulam_context *ctx, const double *B, const double *L, int64_t m, int64_t n,
                                         double *X) {
  dense_copy(X, B, m * n);
  dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, dense_transposed(dense_of(X, m)));
}

/* B_adj += X_adj L'^-1 =: W;  L_adj -= lower(X' W). */
ULAM_API void ulam_mdivide_right_tri_low_pullback(ulam_context *ctx, const double *B, const double *L, int64_t m,
                                                  int64_t n, const double *X, double *B_adj, double *L_adj,
                                                  const double *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  double *W = dense_copied(ctx, X_adj, m * n);
  dense_solve_lower(ctx, n, m, dense_of(L, n), 0, dense_transposed(dense_of(W, m)));
  if (B_adj)
    for (int64_t i = 0; i < m * n; ++i) B_adj[i] += W[i];
  if (L_adj)
    add_lower_product(ctx, n, m, -1.0, dense_transposed(dense_of(X, m)), dense_transposed(dense_of(W, m)), L_adj);
  ulam_release(ctx, mark);
}
