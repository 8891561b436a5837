/* Derivatives of eigenvalues and eigenvectors of symmetric matrices. */
#include "dense.h"

/* A_adj += V (diag(w_adj) + F o (V' V_adj)) V', with F_ij = 1 / (w_j - w_i) off the diagonal. */
ULAM_API void KERNEL(eigendecompose_sym_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *V,
                                                  const number *w, number *A_adj, const number *V_adj,
                                                  const number *w_adj) {
  (void)A;
  if (A_adj == NULL || (V_adj == NULL && w_adj == NULL)) return;
  char *mark = ctx->arena_cursor;
  number *inner = dense_zeros(ctx, n * n), *left = dense_zeros(ctx, n * n);
  dense_view vectors = dense_of(V, n);
  if (V_adj) {
    dense_multiply_add(ctx, n, n, n, 1.0, dense_transposed(vectors), dense_of(V_adj, n), dense_of(inner, n));
    for (int64_t j = 0; j < n; ++j)
      for (int64_t i = 0; i < n; ++i) inner[i + j * n] = i == j ? 0 : inner[i + j * n] / (w[j] - w[i]);
  }
  if (w_adj)
    for (int64_t i = 0; i < n; ++i) inner[i + i * n] = w_adj[i];
  dense_multiply_add(ctx, n, n, n, 1.0, vectors, dense_of(inner, n), dense_of(left, n));
  dense_multiply_add(ctx, n, n, n, 1.0, dense_of(left, n), dense_transposed(vectors), dense_of(A_adj, n));
  ulam_release(ctx, mark);
}

/* The same, for the results in the other order. */
ULAM_API void KERNEL(eigenvalues_sym_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *w,
                                               const number *V, number *A_adj, const number *w_adj,
                                               const number *V_adj) {
  KERNEL(eigendecompose_sym_pullback)(ctx, A, n, V, w, A_adj, V_adj, w_adj);
}

#ifndef ULAM_DUAL
/* With M = V' A' V: w' = diag(M), V' = V (F o M). Of A', too, only the lower triangle is read. */
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
    for (int64_t i = 0; i < n; ++i) inner[i + j * n] = i == j ? 0 : inner[i + j * n] / (w[j] - w[i]);
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
