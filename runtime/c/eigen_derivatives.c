/* Derivatives of eigenvalues and eigenvectors of symmetric matrices. */
#include "dense.h"

/* T_ij = (M_ij - M_ji) / (2 (w_j - w_i)) for M = V' V_adj, as A is symmetric. Halves of a sum that are left to cancel
 * elsewhere would be as large as 1 / (w_j - w_i), and what they are off by would not cancel. Equal eigenvalues have no
 * eigenvectors of their own: what f gains if A couples two of them cannot be known from its derivatives by V. Returns
 * how many such pairs there are, of which f depends on a vector; their T_ij is 0. */
static int64_t rotation(int64_t n, const number *M, const number *w, number *T) {
  int64_t unknown = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < j; ++i) {
      number upper = M[i + j * n], lower = M[j + i * n], gap = w[j] - w[i], rate = 0;
      if (value_of(gap) != 0)
        rate = 0.5 * (upper - lower) / gap;
      else if (value_of(upper) != 0 || value_of(lower) != 0)
        ++unknown;
      T[i + j * n] = T[j + i * n] = rate;
    }
  return unknown;
}

/* The entries of A by which eigenvectors of equal eigenvalues are coupled get a derivative of NaN. Where the matrix is
 * made of equal blocks, that is between the blocks. */
static void mark_unknown(int64_t n, const number *M, const number *w, const number *V, number *A_adj) {
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < j; ++i) {
      if (value_of(w[j]) != value_of(w[i]) || (value_of(M[i + j * n]) == 0 && value_of(M[j + i * n]) == 0)) continue;
      const number *x = V + i * n, *y = V + j * n;
      for (int64_t c = 0; c < n; ++c)
        for (int64_t r = 0; r < n; ++r)
          if (value_of(x[r]) * value_of(y[c]) + value_of(y[r]) * value_of(x[c]) != 0) A_adj[r + c * n] = NAN;
    }
}

/* A_adj += V (diag(w_adj) + T) V'. */
ULAM_API void KERNEL(eigendecompose_sym_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *V,
                                                  const number *w, number *A_adj, const number *V_adj,
                                                  const number *w_adj) {
  (void)A;
  if (A_adj == NULL || (V_adj == NULL && w_adj == NULL)) return;
  char *mark = ctx->arena_cursor;
  number *M = dense_zeros(ctx, n * n), *inner = dense_zeros(ctx, n * n), *left = dense_zeros(ctx, n * n);
  dense_view vectors = dense_of(V, n);
  int64_t unknown = 0;
  if (V_adj) {
    dense_multiply_add(ctx, n, n, n, 1.0, dense_transposed(vectors), dense_of(V_adj, n), dense_of(M, n));
    unknown = rotation(n, M, w, inner);
  }
  if (w_adj)
    for (int64_t i = 0; i < n; ++i) inner[i + i * n] = w_adj[i];
  dense_multiply_add(ctx, n, n, n, 1.0, vectors, dense_of(inner, n), dense_of(left, n));
  dense_multiply_add(ctx, n, n, n, 1.0, dense_of(left, n), dense_transposed(vectors), dense_of(A_adj, n));
  if (unknown) mark_unknown(n, M, w, V, A_adj);
  ulam_release(ctx, mark);
}

/* The same, for the results in the other order. */
ULAM_API void KERNEL(eigenvalues_sym_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *w,
                                               const number *V, number *A_adj, const number *w_adj,
                                               const number *V_adj) {
  KERNEL(eigendecompose_sym_pullback)(ctx, A, n, V, w, A_adj, V_adj, w_adj);
}

#if !defined(ULAM_DUAL) && !defined(ULAM_FAST)
/* With M = V' A' V: w' = diag(M), V' = V K with K_ij = M_ij / (w_j - w_i). Of A', too, only the lower triangle is read.
 * Vectors of equal eigenvalues that A' couples have no derivative; those that it does not, keep apart. */
ULAM_API void ulam_eigendecompose_sym_tangent(ulam_context *ctx, const double *A, int64_t n, const double *V,
                                              const double *w, const double *A_tangent, double *V_tangent,
                                              double *w_tangent) {
  (void)A;
  char *mark = ctx->arena_cursor;
  double *symmetric = ulam_doubles(ctx, n * n), *right = dense_zeros(ctx, n * n), *inner = dense_zeros(ctx, n * n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) symmetric[i + j * n] = symmetric[j + i * n] = A_tangent[i + j * n];
  dense_view vectors = dense_of(V, n);
  dense_multiply_add(ctx, n, n, n, 1.0, dense_of(symmetric, n), vectors, dense_of(right, n));
  dense_multiply_add(ctx, n, n, n, 1.0, dense_transposed(vectors), dense_of(right, n), dense_of(inner, n));
  for (int64_t j = 0; j < n; ++j) {
    if (w_tangent) w_tangent[j] = inner[j + j * n];
    for (int64_t i = 0; i < n; ++i)
      if (i == j || inner[i + j * n] != 0) inner[i + j * n] = i == j ? 0 : inner[i + j * n] / (w[j] - w[i]);
  }
  if (V_tangent) {
    dense_zero(V_tangent, n * n);
    dense_multiply_add(ctx, n, n, n, 1.0, vectors, dense_of(inner, n), dense_of(V_tangent, n));
  }
  ulam_release(ctx, mark);
}

ULAM_API void ulam_eigenvalues_sym_tangent(ulam_context *ctx, const double *A, int64_t n, const double *w,
                                           const double *V, const double *A_tangent, double *w_tangent,
                                           double *V_tangent) {
  ulam_eigendecompose_sym_tangent(ctx, A, n, V, w, A_tangent, V_tangent, w_tangent);
}
#endif
