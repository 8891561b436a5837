/* Matrix products and their pullbacks. */
#include "dense.h"

#ifndef ULAM_FAST
static void dense_multiply(ulam_context *ctx, int64_t m, int64_t n, int64_t k, dense_view A, dense_view B,
                           dense_view C) {
  dense_zero(C.data, m * n);
  dense_multiply_add(ctx, m, n, k, 1.0, A, B, C);
}
#endif

/* C = A B */
ULAM_API void KERNEL(multiply)(ulam_context *ctx, const number *A, const number *B, int64_t m, int64_t k, int64_t n,
                               number *C) {
  dense_multiply(ctx, m, n, k, dense_of(A, m), dense_of(B, k), dense_of(C, m));
}

ULAM_API void KERNEL(multiply_pullback)(ulam_context *ctx, const number *A, const number *B, int64_t m, int64_t k,
                                        int64_t n, const number *C, number *A_adj, number *B_adj, const number *C_adj) {
  (void)C;
  if (C_adj == NULL) return;
  dense_view adjoint = dense_of(C_adj, m);
  if (A_adj) dense_multiply_add(ctx, m, k, n, 1.0, adjoint, dense_transposed(dense_of(B, k)), dense_of(A_adj, m));
  if (B_adj) dense_multiply_add(ctx, k, n, m, 1.0, dense_transposed(dense_of(A, m)), adjoint, dense_of(B_adj, k));
}

/* C = A A' for A of m x k. */
ULAM_API void KERNEL(tcrossprod)(ulam_context *ctx, const number *A, int64_t m, int64_t k, number *C) {
  dense_multiply(ctx, m, m, k, dense_of(A, m), dense_transposed(dense_of(A, m)), dense_of(C, m));
}

ULAM_API void KERNEL(tcrossprod_pullback)(ulam_context *ctx, const number *A, int64_t m, int64_t k, const number *C,
                                          number *A_adj, const number *C_adj) {
  (void)C;
  if (C_adj == NULL || A_adj == NULL) return;
  dense_view adjoint = dense_of(C_adj, m), a = dense_of(A, m), a_adj = dense_of(A_adj, m);
  dense_multiply_add(ctx, m, k, m, 1.0, adjoint, a, a_adj);
  dense_multiply_add(ctx, m, k, m, 1.0, dense_transposed(adjoint), a, a_adj);
}

/* C = A' A for A of m x k. */
ULAM_API void KERNEL(crossprod)(ulam_context *ctx, const number *A, int64_t m, int64_t k, number *C) {
  dense_multiply(ctx, k, k, m, dense_transposed(dense_of(A, m)), dense_of(A, m), dense_of(C, k));
}

ULAM_API void KERNEL(crossprod_pullback)(ulam_context *ctx, const number *A, int64_t m, int64_t k, const number *C,
                                         number *A_adj, const number *C_adj) {
  (void)C;
  if (C_adj == NULL || A_adj == NULL) return;
  dense_view adjoint = dense_of(C_adj, k), a = dense_of(A, m), a_adj = dense_of(A_adj, m);
  dense_multiply_add(ctx, m, k, k, 1.0, a, adjoint, a_adj);
  dense_multiply_add(ctx, m, k, k, 1.0, a, dense_transposed(adjoint), a_adj);
}
