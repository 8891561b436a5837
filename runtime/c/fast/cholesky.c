/* Cholesky factorisation for levels 3 and 4. */
#define ULAM_FAST
#include "../dense.h"

int32_t dense_cholesky(ulam_context *ctx, const char *name, const double *A, int64_t n, double *L) {
  int64_t bad = dense_factor(ctx, n, A, L);
  if (bad >= 0)
    return ulam_fail(ctx, ULAM_REJECT, "%s: m is not positive definite (pivot %lld is %g)", name, (long long)(bad + 1),
                     L[bad + bad * n]);
  return ULAM_OK;
}

ULAM_API int32_t KERNEL(cholesky_decompose)(ulam_context *ctx, const double *A, int64_t n, double *L) {
  int32_t status = dense_check_symmetric(ctx, "cholesky_decompose", A, n);
  return status == ULAM_OK ? dense_cholesky(ctx, "cholesky_decompose", A, n, L) : status;
}

/* As only the lower triangle of A is read, the adjoint goes there. */
ULAM_API void KERNEL(cholesky_decompose_pullback)(ulam_context *ctx, const double *A, int64_t n, const double *L,
                                                  double *A_adj, const double *L_adj) {
  (void)A;
  if (A_adj == NULL || L_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  double *G = dense_copied(ctx, L_adj, n * n); /* of which the lower triangle counts */
  dense_pull_back_factor(ctx, n, L, G);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = j; i < n; ++i) A_adj[i + j * n] += G[i + j * n];
  ulam_release(ctx, mark);
}
