/* Cholesky factorisation. */
#include "dense.h"

enum { BLOCK = 32, SMALL = 32 };
static const double symmetry_tolerance = 1e-8; /* absolute, as Stan's constraint tolerance */

/* Whether a block of A is that on the other side of the diagonal, transposed; NaN is not. */
static int is_symmetric(const number *A, int64_t n, int64_t i, int64_t rows, int64_t j, int64_t columns) {
  int64_t others = 0;
  for (int64_t c = j; c < j + columns; ++c)
    for (int64_t r = i; r < i + rows; ++r)
      others += !(fabs(value_of(A[r + c * n]) - value_of(A[c + r * n])) <= symmetry_tolerance);
  return others == 0;
}

int32_t dense_check_symmetric(ulam_context *ctx, const char *name, const number *A, int64_t n) {
  int fine = 1;
  for (int64_t j = 0; j < n && fine; j += BLOCK) /* by pairs of blocks that lie in the first cache together */
    for (int64_t i = j; i < n && fine; i += BLOCK)
      fine = is_symmetric(A, n, i, n - i < BLOCK ? n - i : BLOCK, j, n - j < BLOCK ? n - j : BLOCK);
  if (fine) return ULAM_OK;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j + 1; i < n; ++i) {
      double lower = value_of(A[i + j * n]), upper = value_of(A[j + i * n]);
      if (!(fabs(lower - upper) <= symmetry_tolerance))
        return ulam_fail(ctx, ULAM_REJECT, "%s: m is not symmetric. m[%lld,%lld] = %g, but m[%lld,%lld] = %g", name,
                         (long long)(j + 1), (long long)(i + 1), upper, (long long)(i + 1), (long long)(j + 1), lower);
    }
  return ULAM_OK; /* a NaN on the diagonal: no pivot is */
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
