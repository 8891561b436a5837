/* Systems, inverses and determinants of positive definite matrices, by their Cholesky factors. */
#include "dense.h"

/* B := A^-1 B for A = L L'. */
static void solve_factored(ulam_context *ctx, int64_t n, int64_t m, const number *L, dense_view B) {
  dense_solve_lower(ctx, n, m, dense_of(L, n), 0, B);
  dense_solve_upper(ctx, n, m, dense_transposed(dense_of(L, n)), 0, B);
}

static void set_identity(number *A, int64_t n) {
  dense_zero(A, n * n);
  for (int64_t i = 0; i < n; ++i) A[i + i * n] = 1;
}

int32_t dense_inverse_spd(ulam_context *ctx, const char *name, const number *A, int64_t n, number *out) {
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n);
  int32_t status = dense_cholesky(ctx, name, A, n, L);
  if (status == ULAM_OK) {
    set_identity(out, n);
    solve_factored(ctx, n, n, L, dense_of(out, n));
    for (int64_t j = 0; j < n; ++j) /* exactly symmetric */
      for (int64_t i = j + 1; i < n; ++i) out[j + i * n] = out[i + j * n];
  }
  ulam_release(ctx, mark);
  return status;
}

ULAM_API int32_t KERNEL(inverse_spd)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  int32_t status = dense_check_symmetric(ctx, "inverse_spd", A, n);
  return status == ULAM_OK ? dense_inverse_spd(ctx, "inverse_spd", A, n, out) : status;
}

/* X = A^-1 B for a positive definite A; B of n x m. */
ULAM_API int32_t KERNEL(mdivide_left_spd)(ulam_context *ctx, const number *A, const number *B, int64_t n, int64_t m,
                                          number *X) {
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n);
  int32_t status = dense_check_symmetric(ctx, "mdivide_left_spd", A, n);
  if (status == ULAM_OK) status = dense_cholesky(ctx, "mdivide_left_spd", A, n, L);
  if (status == ULAM_OK) {
    dense_copy(X, B, n * m);
    solve_factored(ctx, n, m, L, dense_of(X, n));
  }
  ulam_release(ctx, mark);
  return status;
}

/* B_adj += A^-1 X_adj =: W;  A_adj -= W X'. */
ULAM_API void KERNEL(mdivide_left_spd_pullback)(ulam_context *ctx, const number *A, const number *B, int64_t n,
                                                int64_t m, const number *X, number *A_adj, number *B_adj,
                                                const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n), *W = dense_copied(ctx, X_adj, n * m);
  if (dense_cholesky(ctx, "mdivide_left_spd", A, n, L) == ULAM_OK) { /* it was, in the forward sweep */
    solve_factored(ctx, n, m, L, dense_of(W, n));
    if (B_adj)
      for (int64_t i = 0; i < n * m; ++i) B_adj[i] += W[i];
    if (A_adj)
      dense_multiply_add(ctx, n, n, m, -1.0, dense_of(W, n), dense_transposed(dense_of(X, n)), dense_of(A_adj, n));
  }
  ulam_release(ctx, mark);
}

/* X = B A^-1 for a positive definite A; B of m x n. */
ULAM_API int32_t KERNEL(mdivide_right_spd)(ulam_context *ctx, const number *B, const number *A, int64_t m, int64_t n,
                                           number *X) {
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n);
  int32_t status = dense_check_symmetric(ctx, "mdivide_right_spd", A, n);
  if (status == ULAM_OK) status = dense_cholesky(ctx, "mdivide_right_spd", A, n, L);
  if (status == ULAM_OK) {
    dense_copy(X, B, m * n);
    solve_factored(ctx, n, m, L, dense_transposed(dense_of(X, m)));
  }
  ulam_release(ctx, mark);
  return status;
}

/* B_adj += X_adj A^-1 =: W;  A_adj -= X' W. */
ULAM_API void KERNEL(mdivide_right_spd_pullback)(ulam_context *ctx, const number *B, const number *A, int64_t m,
                                                 int64_t n, const number *X, number *B_adj, number *A_adj,
                                                 const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n), *W = dense_copied(ctx, X_adj, m * n);
  if (dense_cholesky(ctx, "mdivide_right_spd", A, n, L) == ULAM_OK) {
    solve_factored(ctx, n, m, L, dense_transposed(dense_of(W, m)));
    if (B_adj)
      for (int64_t i = 0; i < m * n; ++i) B_adj[i] += W[i];
    if (A_adj)
      dense_multiply_add(ctx, n, n, m, -1.0, dense_transposed(dense_of(X, m)), dense_of(W, m), dense_of(A_adj, n));
  }
  ulam_release(ctx, mark);
}

/* out = log(det(A)) for a positive definite A. */
ULAM_API int32_t KERNEL(log_determinant_spd)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  char *mark = ctx->arena_cursor;
  number *L = dense_numbers(ctx, n * n), sum = 0;
  int32_t status = dense_check_symmetric(ctx, "log_determinant_spd", A, n);
  if (status == ULAM_OK) status = dense_cholesky(ctx, "log_determinant_spd", A, n, L);
  if (status == ULAM_OK) {
    for (int64_t i = 0; i < n; ++i) sum += log(L[i + i * n]);
    *out = 2 * sum;
  }
  ulam_release(ctx, mark);
  return status;
}

ULAM_API void KERNEL(log_determinant_spd_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *out,
                                                   number *A_adj, const number *out_adj) {
  (void)out;
  if (A_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *inverse = dense_numbers(ctx, n * n);
  if (dense_inverse_spd(ctx, "log_determinant_spd", A, n, inverse) == ULAM_OK)
    for (int64_t i = 0; i < n * n; ++i) A_adj[i] += out_adj[0] * inverse[i];
  ulam_release(ctx, mark);
}

/* out = (L L')^-1 for a lower triangular L. */
ULAM_API void KERNEL(chol2inv)(ulam_context *ctx, const number *L, int64_t n, number *out) {
  set_identity(out, n);
  solve_factored(ctx, n, n, L, dense_of(out, n));
}

/* With R the adjoint of the result, A_adj = -C R C for C = (L L')^-1, and L_adj = lower((A_adj + A_adj') L). */
ULAM_API void KERNEL(chol2inv_pullback)(ulam_context *ctx, const number *L, int64_t n, const number *out, number *L_adj,
                                        const number *out_adj) {
  if (L_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *symmetric = dense_numbers(ctx, n * n), *left = dense_zeros(ctx, n * n), *A_adj = dense_zeros(ctx, n * n),
         *product = dense_zeros(ctx, n * n), *lower = dense_zeros(ctx, n * n);
  dense_view C = dense_of(out, n);
  for (int64_t j = 0; j < n; ++j) {
    dense_copy(lower + j * n + j, L + j * n + j, n - j);
    for (int64_t i = 0; i < n; ++i) symmetric[i + j * n] = out_adj[i + j * n] + out_adj[j + i * n];
  }
  dense_multiply_add(ctx, n, n, n, 1.0, C, dense_of(symmetric, n), dense_of(left, n));
  dense_multiply_add(ctx, n, n, n, -1.0, dense_of(left, n), C, dense_of(A_adj, n));
  dense_multiply_add(ctx, n, n, n, 1.0, dense_of(A_adj, n), dense_of(lower, n), dense_of(product, n));
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) L_adj[i + j * n] += product[i + j * n];
  ulam_release(ctx, mark);
}
