/* Derivatives of the singular value decomposition. */
#include "dense.h"

/* W' W_adj - W_adj' W, or zeros without W_adj. */
static number *turning(ulam_context *ctx, int64_t rows, int64_t k, const number *W, const number *W_adj) {
  number *skew = dense_zeros(ctx, k * k);
  if (W_adj == NULL) return skew;
  number *product = dense_zeros(ctx, k * k);
  dense_multiply_add(ctx, k, k, rows, 1.0, dense_transposed(dense_of(W, rows)), dense_of(W_adj, rows),
                     dense_of(product, k));
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < k; ++i) skew[i + j * k] = product[i + j * k] - product[j + i * k];
  return skew;
}

/* x / y, and 0 if x is 0: of what nothing depends on, a rate that does not exist makes no difference. */
static number rate_of(number x, number y) { return value_of(x) == 0 && value_of(y) == 0 ? 0 : x / y; }

/* inner_ij = (X_ij s_j + Y_ij s_i) / (s_j^2 - s_i^2) off the diagonal, for the turnings X of U and Y of V, by its two
 * halves: the sum of X and Y is small where singular values are close, and stays exact; their difference counts where
 * singular values are small. */
static void add_rotation(int64_t k, const number *X, const number *Y, const number *s, number *inner) {
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < k; ++i) {
      if (i == j) continue;
      number x = X[i + j * k], y = Y[i + j * k];
      inner[i + j * k] += 0.5 * (rate_of(x + y, s[j] - s[i]) + rate_of(x - y, s[j] + s[i]));
    }
}

/* out += (I - W W') W_adj diag(1 / s), of rows x k. */
static void add_outside(ulam_context *ctx, int64_t rows, int64_t k, const number *W, const number *W_adj,
                        const number *s, number *out) {
  number *inside = dense_zeros(ctx, k * k), *part = dense_copied(ctx, W_adj, rows * k);
  dense_multiply_add(ctx, k, k, rows, 1.0, dense_transposed(dense_of(W, rows)), dense_of(W_adj, rows),
                     dense_of(inside, k));
  dense_multiply_add(ctx, rows, k, k, -1.0, dense_of(W, rows), dense_of(inside, k), dense_of(part, rows));
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < rows; ++i) out[i + j * rows] += rate_of(part[i + j * rows], s[j]);
}

/* Townsend (2016), "Differentiating the singular value decomposition". */
ULAM_API void KERNEL(svd_pullback)(ulam_context *ctx, const number *A, int64_t m, int64_t n, const number *s,
                                   const number *U, const number *V, number *A_adj, const number *s_adj,
                                   const number *U_adj, const number *V_adj) {
  (void)A;
  if (A_adj == NULL) return;
  int64_t k = m < n ? m : n;
  char *mark = ctx->arena_cursor;
  number *inner = dense_zeros(ctx, k * k), *left = dense_zeros(ctx, m * k), *right = dense_zeros(ctx, n * k);
  if (s_adj)
    for (int64_t i = 0; i < k; ++i) inner[i + i * k] += s_adj[i];
  if (U_adj || V_adj) add_rotation(k, turning(ctx, m, k, U, U_adj), turning(ctx, n, k, V, V_adj), s, inner);
  dense_multiply_add(ctx, m, k, k, 1.0, dense_of(U, m), dense_of(inner, k), dense_of(left, m));
  if (U_adj && m > k) add_outside(ctx, m, k, U, U_adj, s, left);
  dense_multiply_add(ctx, m, n, k, 1.0, dense_of(left, m), dense_transposed(dense_of(V, n)), dense_of(A_adj, m));
  if (V_adj && n > k) {
    add_outside(ctx, n, k, V, V_adj, s, right);
    dense_multiply_add(ctx, m, n, k, 1.0, dense_of(U, m), dense_transposed(dense_of(right, n)), dense_of(A_adj, m));
  }
  ulam_release(ctx, mark);
}

#if !defined(ULAM_DUAL) && !defined(ULAM_FAST)
/* W' = W (F o N) + (I - W W') image diag(1 / s), with N = P diag(s) + diag(s) P' and F_ij = 1 / (s_j^2 - s_i^2);
 * `transposed`: with P' in place of P. */
static void tangent_of_vectors(ulam_context *ctx, int64_t rows, int64_t k, const double *W, const double *s,
                               const double *P, int transposed, const double *image, double *out) {
  char *mark = ctx->arena_cursor;
  double *rotation = dense_zeros(ctx, k * k);
  for (int64_t j = 0; j < k; ++j)
    for (int64_t i = 0; i < k; ++i) {
      if (i == j) continue;
      double upper = P[transposed ? j + i * k : i + j * k], lower = P[transposed ? i + j * k : j + i * k];
      rotation[i + j * k] = (upper * s[j] + s[i] * lower) / ((s[j] - s[i]) * (s[j] + s[i]));
    }
  dense_zero(out, rows * k);
  dense_multiply_add(ctx, rows, k, k, 1.0, dense_of(W, rows), dense_of(rotation, k), dense_of(out, rows));
  if (rows > k) add_outside(ctx, rows, k, W, image, s, out);
  ulam_release(ctx, mark);
}

/* With P = U' A' V: s' = diag(P); Townsend (2016), "Differentiating the singular value decomposition". */
ULAM_API void ulam_svd_tangent(ulam_context *ctx, const double *A, int64_t m, int64_t n, const double *s,
                               const double *U, const double *V, const double *A_tangent, double *s_tangent,
                               double *U_tangent, double *V_tangent) {
  (void)A;
  int64_t k = m < n ? m : n;
  char *mark = ctx->arena_cursor;
  double *AV = dense_zeros(ctx, m * k), *AU = dense_zeros(ctx, n * k), *P = dense_zeros(ctx, k * k);
  dense_view tangent = dense_of(A_tangent, m), left = dense_of(U, m);
  dense_multiply_add(ctx, m, k, n, 1.0, tangent, dense_of(V, n), dense_of(AV, m));
  dense_multiply_add(ctx, n, k, m, 1.0, dense_transposed(tangent), left, dense_of(AU, n));
  dense_multiply_add(ctx, k, k, m, 1.0, dense_transposed(left), dense_of(AV, m), dense_of(P, k));
  if (s_tangent)
    for (int64_t i = 0; i < k; ++i) s_tangent[i] = P[i + i * k];
  if (U_tangent) tangent_of_vectors(ctx, m, k, U, s, P, 0, AV, U_tangent);
  if (V_tangent) tangent_of_vectors(ctx, n, k, V, s, P, 1, AU, V_tangent);
  ulam_release(ctx, mark);
}
#endif
