/* General square systems by LU factorisation with partial pivoting: solutions, inverse, determinant. */
#include "dense.h"

enum { BLOCK = 32 };

static void exchange_rows(number *A, int64_t leading, int64_t columns, int64_t i, int64_t j) {
  if (i == j) return;
  for (int64_t c = 0; c < columns; ++c) {
    number kept = A[i + c * leading];
    A[i + c * leading] = A[j + c * leading];
    A[j + c * leading] = kept;
  }
}

/* Columns first .. first + size of the trailing matrix; whole rows are exchanged. */
ULAM_CLONES static int factor_panel(int64_t n, int64_t first, int64_t size, number *LU, int64_t *pivots) {
  int sign = 1;
  for (int64_t j = first; j < first + size; ++j) {
    number *restrict column = LU + j * n;
    int64_t largest = j;
    for (int64_t i = j + 1; i < n; ++i)
      if (fabs(value_of(column[i])) > fabs(value_of(column[largest]))) largest = i;
    pivots[j] = largest;
    if (largest != j) {
      sign = -sign;
      exchange_rows(LU, n, n, j, largest);
    }
    if (value_of(column[j]) != 0)
      for (int64_t i = j + 1; i < n; ++i) column[i] /= column[j];
    for (int64_t c = j + 1; c < first + size; ++c) {
      number *restrict right = LU + c * n;
      number factor = right[j];
      for (int64_t i = j + 1; i < n; ++i) right[i] -= factor * column[i];
    }
  }
  return sign;
}

int dense_lu(ulam_context *ctx, int64_t n, number *LU, int64_t *pivots) {
  dense_view whole = dense_of(LU, n);
  int sign = 1;
  for (int64_t j = 0; j < n; j += BLOCK) {
    int64_t size = n - j < BLOCK ? n - j : BLOCK, after = j + size;
    sign *= factor_panel(n, j, size, LU, pivots);
    dense_solve_lower(ctx, size, n - after, dense_block(whole, j, j), 1, dense_block(whole, j, after));
    dense_multiply_add(ctx, n - after, n - after, size, -1.0, dense_block(whole, after, j),
                       dense_block(whole, j, after), dense_block(whole, after, after));
  }
  return sign;
}

static void exchange_view_rows(dense_view B, int64_t m, int64_t i, int64_t j) {
  if (i == j) return;
  for (int64_t c = 0; c < m; ++c) {
    number kept = AT(B, i, c);
    AT(B, i, c) = AT(B, j, c);
    AT(B, j, c) = kept;
  }
}

void dense_lu_solve(ulam_context *ctx, int64_t n, int64_t m, const number *LU, const int64_t *pivots, dense_view B) {
  for (int64_t i = 0; i < n; ++i) exchange_view_rows(B, m, i, pivots[i]);
  dense_solve_lower(ctx, n, m, dense_of(LU, n), 1, B);
  dense_solve_upper(ctx, n, m, dense_of(LU, n), 0, B);
}

void dense_lu_solve_transposed(ulam_context *ctx, int64_t n, int64_t m, const number *LU, const int64_t *pivots,
                               dense_view B) {
  dense_view transposed = dense_transposed(dense_of(LU, n));
  dense_solve_lower(ctx, n, m, transposed, 0, B);
  dense_solve_upper(ctx, n, m, transposed, 1, B);
  for (int64_t i = n - 1; i >= 0; --i) exchange_view_rows(B, m, i, pivots[i]);
}

typedef struct {
  number *LU;
  int64_t *pivots;
  int sign;
} factors;

static factors factored(ulam_context *ctx, const number *A, int64_t n) {
  factors f;
  f.LU = dense_copied(ctx, A, n * n);
  f.pivots = ulam_alloc(ctx, n * (int64_t)sizeof(int64_t));
  f.sign = dense_lu(ctx, n, f.LU, f.pivots);
  return f;
}

/* X = A^-1 B, B of n x m. A singular A gives infinities or NaN, as in Stan. */
ULAM_API void KERNEL(mdivide_left)(ulam_context *ctx, const number *A, const number *B, int64_t n, int64_t m,
                                   number *X) {
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  dense_copy(X, B, n * m);
  dense_lu_solve(ctx, n, m, f.LU, f.pivots, dense_of(X, n));
  ulam_release(ctx, mark);
}

/* B_adj += A'^-1 X_adj =: W;  A_adj -= W X'. */
ULAM_API void KERNEL(mdivide_left_pullback)(ulam_context *ctx, const number *A, const number *B, int64_t n, int64_t m,
                                            const number *X, number *A_adj, number *B_adj, const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  number *W = dense_copied(ctx, X_adj, n * m);
  dense_lu_solve_transposed(ctx, n, m, f.LU, f.pivots, dense_of(W, n));
  if (B_adj)
    for (int64_t i = 0; i < n * m; ++i) B_adj[i] += W[i];
  if (A_adj)
    dense_multiply_add(ctx, n, n, m, -1.0, dense_of(W, n), dense_transposed(dense_of(X, n)), dense_of(A_adj, n));
  ulam_release(ctx, mark);
}

/* X = B A^-1, B of m x n. */
ULAM_API void KERNEL(mdivide_right)(ulam_context *ctx, const number *B, const number *A, int64_t m, int64_t n,
                                    number *X) {
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  dense_copy(X, B, m * n);
  dense_lu_solve_transposed(ctx, n, m, f.LU, f.pivots, dense_transposed(dense_of(X, m)));
  ulam_release(ctx, mark);
}

/* B_adj += X_adj A'^-1 =: W;  A_adj -= X' W. */
ULAM_API void KERNEL(mdivide_right_pullback)(ulam_context *ctx, const number *B, const number *A, int64_t m, int64_t n,
                                             const number *X, number *B_adj, number *A_adj, const number *X_adj) {
  (void)B;
  if (X_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  number *W = dense_copied(ctx, X_adj, m * n);
  dense_lu_solve(ctx, n, m, f.LU, f.pivots, dense_transposed(dense_of(W, m)));
  if (B_adj)
    for (int64_t i = 0; i < m * n; ++i) B_adj[i] += W[i];
  if (A_adj)
    dense_multiply_add(ctx, n, n, m, -1.0, dense_transposed(dense_of(X, m)), dense_of(W, m), dense_of(A_adj, n));
  ulam_release(ctx, mark);
}

static void invert(ulam_context *ctx, const factors *f, int64_t n, number *out) {
  dense_zero(out, n * n);
  for (int64_t i = 0; i < n; ++i) out[i + i * n] = 1;
  dense_lu_solve(ctx, n, n, f->LU, f->pivots, dense_of(out, n));
}

ULAM_API void KERNEL(inverse)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  invert(ctx, &f, n, out);
  ulam_release(ctx, mark);
}

/* A_adj -= C' R C' for C = A^-1 and R the adjoint of C. Also the pullback of inverse_spd. */
ULAM_API void KERNEL(inverse_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *out, number *A_adj,
                                       const number *out_adj) {
  (void)A;
  if (A_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *left = dense_zeros(ctx, n * n);
  dense_view C = dense_transposed(dense_of(out, n));
  dense_multiply_add(ctx, n, n, n, 1.0, C, dense_of(out_adj, n), dense_of(left, n));
  dense_multiply_add(ctx, n, n, n, -1.0, dense_of(left, n), C, dense_of(A_adj, n));
  ulam_release(ctx, mark);
}

static number product_of_pivots(const factors *f, int64_t n) {
  number product = f->sign;
  for (int64_t i = 0; i < n; ++i) product *= f->LU[i + i * n];
  return product;
}

ULAM_API void KERNEL(determinant)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  *out = product_of_pivots(&f, n);
  ulam_release(ctx, mark);
}

/* A_adj += factor * A'^-1 */
static void add_transposed_inverse(ulam_context *ctx, const factors *f, int64_t n, number factor, number *A_adj) {
  char *mark = ctx->arena_cursor;
  number *inverse = dense_numbers(ctx, n * n);
  invert(ctx, f, n, inverse);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) A_adj[i + j * n] += factor * inverse[j + i * n];
  ulam_release(ctx, mark);
}

/* The cofactors, det(A) A'^-1, of A scaled, so that the determinant neither overflows nor vanishes. Those of a singular
 * matrix are those of one next to it: a pivot of 0 becomes one that is far below rounding, and cancels. (With dual numbers
 * they stay NaN.) */
ULAM_API void KERNEL(determinant_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *out,
                                           number *A_adj, const number *out_adj) {
  (void)out;
  if (A_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *scaled = dense_copied(ctx, A, n * n);
  double largest = 0, scale = 1;
  int exponent;
  for (int64_t i = 0; i < n * n; ++i) largest = fmax(largest, fabs(value_of(A[i])));
  if (largest > 0 && isfinite(largest)) {
    frexp(largest, &exponent);
    scale = ldexp(1.0, exponent - 1);
  }
  for (int64_t i = 0; i < n * n; ++i) scaled[i] /= scale;
  factors f = factored(ctx, scaled, n);
#ifndef ULAM_DUAL
  for (int64_t i = 0; i < n; ++i)
    if (f.LU[i + i * n] == 0) f.LU[i + i * n] = 0x1p-100;
#endif
  add_transposed_inverse(ctx, &f, n, out_adj[0] * product_of_pivots(&f, n) * pow(scale, (double)(n - 1)), A_adj);
  ulam_release(ctx, mark);
}

/* log(abs(det(A))) */
ULAM_API void KERNEL(log_determinant)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  number sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += log(absolute(f.LU[i + i * n]));
  *out = sum;
  ulam_release(ctx, mark);
}

ULAM_API void KERNEL(log_determinant_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *out,
                                               number *A_adj, const number *out_adj) {
  (void)out;
  if (A_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  factors f = factored(ctx, A, n);
  add_transposed_inverse(ctx, &f, n, out_adj[0], A_adj);
  ulam_release(ctx, mark);
}
