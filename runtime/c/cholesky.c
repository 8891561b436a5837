/* Cholesky factorisation and what rests on it: systems, inverses and determinants of positive definite matrices. */
#include "dense.h"

enum { BLOCK = 32, SMALL = 32 };
static const double symmetry_tolerance = 1e-8; /* absolute, as Stan's constraint tolerance */

int32_t dense_check_symmetric(ulam_context *ctx, const char *name, const number *A, int64_t n) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j + 1; i < n; ++i) {
      double lower = value_of(A[i + j * n]), upper = value_of(A[j + i * n]);
      if (!(fabs(lower - upper) <= symmetry_tolerance))
        return ulam_fail(ctx, ULAM_REJECT, "%s: m is not symmetric. m[%lld,%lld] = %g, but m[%lld,%lld] = %g", name,
                         (long long)(j + 1), (long long)(i + 1), upper, (long long)(i + 1), (long long)(j + 1), lower);
    }
  return ULAM_OK;
}

/* The diagonal block of `size` columns; returns the first column whose pivot is not positive, or -1. */
ULAM_CLONES static int64_t factor_block(int64_t size, number *restrict L, int64_t leading) {
  for (int64_t j = 0; j < size; ++j) {
    number *restrict column = L + j * leading;
    for (int64_t k = 0; k < j; ++k) {
      const number *restrict left = L + k * leading;
      number factor = left[j];
      for (int64_t i = j; i < size; ++i) column[i] -= factor * left[i];
    }
    if (!(value_of(column[j]) > 0) || isinf(value_of(column[j]))) return j;
    number pivot = sqrt(column[j]);
    column[j] = pivot;
    for (int64_t i = j + 1; i < size; ++i) column[i] /= pivot;
  }
  return -1;
}

int32_t dense_cholesky(ulam_context *ctx, const char *name, const number *A, int64_t n, number *L) {
  dense_view whole = dense_of(L, n);
  dense_copy(L, A, n * n);
  for (int64_t j = 0; j < n; j += BLOCK) {
    int64_t size = n - j < BLOCK ? n - j : BLOCK, below = n - j - size;
    int64_t bad = factor_block(size, L + j + j * n, n);
    if (bad >= 0) {
      int64_t i = j + bad;
      return ulam_fail(ctx, ULAM_REJECT, "%s: m is not positive definite (pivot %lld is %g)", name, (long long)(i + 1),
                       value_of(L[i + i * n]));
    }
    if (below == 0) break;
    dense_view panel = dense_block(whole, j + size, j);
    dense_solve_lower(ctx, size, below, dense_block(whole, j, j), 0, dense_transposed(panel));
    for (int64_t c = 0; c < below; c += BLOCK) { /* the lower triangle of what is left, by block columns */
      int64_t width = below - c < BLOCK ? below - c : BLOCK;
      dense_view rows = dense_block(panel, c, 0);
      dense_multiply_add(ctx, below - c, width, size, -1.0, rows, dense_transposed(rows),
                         dense_block(whole, j + size + c, j + size + c));
    }
  }
  for (int64_t j = 0; j < n; ++j) dense_zero(L + j * n, j); /* the updates wrote above the diagonal */
  return ULAM_OK;
}

ULAM_API int32_t KERNEL(cholesky_decompose)(ulam_context *ctx, const number *A, int64_t n, number *L) {
  int32_t status = dense_check_symmetric(ctx, "cholesky_decompose", A, n);
  return status == ULAM_OK ? dense_cholesky(ctx, "cholesky_decompose", A, n, L) : status;
}

/* For small matrices: the factorisation's statements, column by column, in reverse. */
static void pull_back_columns(ulam_context *ctx, int64_t n, const number *L, number *A_adj, const number *L_adj) {
  char *mark = ctx->arena_cursor;
  number *adjoint = dense_copied(ctx, L_adj, n * n);
  for (int64_t j = n - 1; j >= 0; --j) {
    number diagonal = L[j + j * n], of_diagonal = adjoint[j + j * n];
    for (int64_t i = n - 1; i > j; --i) {
      number element = adjoint[i + j * n] / diagonal;
      of_diagonal -= element * L[i + j * n];
      A_adj[i + j * n] += element;
      for (int64_t k = 0; k < j; ++k) {
        adjoint[i + k * n] -= element * L[j + k * n];
        adjoint[j + k * n] -= element * L[i + k * n];
      }
    }
    of_diagonal /= 2 * diagonal;
    A_adj[j + j * n] += of_diagonal;
    for (int64_t k = 0; k < j; ++k) adjoint[j + k * n] -= 2 * of_diagonal * L[j + k * n];
  }
  ulam_release(ctx, mark);
}

/* With P the lower triangle of L' L_adj, its diagonal halved, S = L'^-1 (P + P') L^-1 is twice the adjoint of the
 * symmetric A; as only the lower triangle of A is read, all of it goes there, but half of the diagonal. Murray (2016),
 * "Differentiation of the Cholesky decomposition", section 3; it is all matrix product and triangular solve. */
ULAM_API void KERNEL(cholesky_decompose_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *L,
                                                  number *A_adj, const number *L_adj) {
  (void)A;
  if (A_adj == NULL || L_adj == NULL) return;
  if (n <= SMALL) {
    pull_back_columns(ctx, n, L, A_adj, L_adj);
    return;
  }
  char *mark = ctx->arena_cursor;
  number *lower_adj = dense_zeros(ctx, n * n), *S = dense_zeros(ctx, n * n);
  for (int64_t j = 0; j < n; ++j) dense_copy(lower_adj + j * n + j, L_adj + j * n + j, n - j);
  dense_view factor = dense_of(L, n), s = dense_of(S, n);
  for (int64_t i = 0; i < n; i += BLOCK) { /* block rows of P, from the diagonal to the left */
    int64_t size = n - i < BLOCK ? n - i : BLOCK;
    dense_multiply_add(ctx, size, i + size, n - i, 1.0, dense_transposed(dense_block(factor, i, i)),
                       dense_block(dense_of(lower_adj, n), i, 0), dense_block(s, i, 0));
  }
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j + 1; i < n; ++i) S[j + i * n] = S[i + j * n];
  dense_solve_upper(ctx, n, n, dense_transposed(factor), 0, s);
  dense_solve_upper(ctx, n, n, dense_transposed(factor), 0, dense_transposed(s));
  for (int64_t j = 0; j < n; ++j) {
    A_adj[j + j * n] += 0.5 * S[j + j * n];
    for (int64_t i = j + 1; i < n; ++i) A_adj[i + j * n] += S[i + j * n];
  }
  ulam_release(ctx, mark);
}

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
