/* The exponential of a matrix: scaling and squaring with the Pade approximant of degree 13 (Higham, 2005). */
#include "dense.h"

static void multiply(ulam_context *ctx, int64_t n, const number *A, const number *B, number *C) {
  dense_zero(C, n * n);
  dense_multiply_add(ctx, n, n, n, 1.0, dense_of(A, n), dense_of(B, n), dense_of(C, n));
}

static double norm_1(const number *A, int64_t n) {
  double largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += fabs(value_of(A[i + j * n]));
    if (sum > largest || isnan(sum)) largest = sum;
  }
  return largest;
}

static void exponential(ulam_context *ctx, const number *A, int64_t n, number *out) {
  static const double b[] = {64764752532480000.0,
                             32382376266240000.0,
                             7771770303897600.0,
                             1187353796428800.0,
                             129060195264000.0,
                             10559470521600.0,
                             670442572800.0,
                             33522128640.0,
                             1323241920.0,
                             40840800.0,
                             960960.0,
                             16380.0,
                             182.0,
                             1.0};
  int64_t size = n * n;
  double norm = norm_1(A, n);
  if (!isfinite(norm)) {
    for (int64_t i = 0; i < size; ++i) out[i] = NAN;
    return;
  }
  char *mark = ctx->arena_cursor;
  int squarings = 0;
  if (norm > 5.371920351148152) frexp(norm / 5.371920351148152, &squarings);
  number *X = dense_numbers(ctx, size), *X2 = dense_numbers(ctx, size), *X4 = dense_numbers(ctx, size),
         *X6 = dense_numbers(ctx, size), *odd = dense_numbers(ctx, size), *even = dense_numbers(ctx, size),
         *work = dense_numbers(ctx, size);
  for (int64_t i = 0; i < size; ++i) X[i] = A[i] * ldexp(1.0, -squarings);
  multiply(ctx, n, X, X, X2);
  multiply(ctx, n, X2, X2, X4);
  multiply(ctx, n, X4, X2, X6);
  /* numerator even + odd, denominator even - odd */
  for (int64_t i = 0; i < size; ++i) work[i] = b[13] * X6[i] + b[11] * X4[i] + b[9] * X2[i];
  multiply(ctx, n, X6, work, odd);
  for (int64_t i = 0; i < size; ++i) odd[i] += b[7] * X6[i] + b[5] * X4[i] + b[3] * X2[i];
  for (int64_t i = 0; i < n; ++i) odd[i + i * n] += b[1];
  multiply(ctx, n, X, odd, work);
  dense_copy(odd, work, size);
  for (int64_t i = 0; i < size; ++i) work[i] = b[12] * X6[i] + b[10] * X4[i] + b[8] * X2[i];
  multiply(ctx, n, X6, work, even);
  for (int64_t i = 0; i < size; ++i) even[i] += b[6] * X6[i] + b[4] * X4[i] + b[2] * X2[i];
  for (int64_t i = 0; i < n; ++i) even[i + i * n] += b[0];
  for (int64_t i = 0; i < size; ++i) {
    out[i] = even[i] + odd[i];
    work[i] = even[i] - odd[i];
  }
  int64_t *pivots = ulam_alloc(ctx, n * (int64_t)sizeof *pivots);
  dense_lu(ctx, n, work, pivots);
  dense_lu_solve(ctx, n, n, work, pivots, dense_of(out, n));
  for (int i = 0; i < squarings; ++i) {
    multiply(ctx, n, out, out, work);
    dense_copy(out, work, size);
  }
  ulam_release(ctx, mark);
}

ULAM_API void KERNEL(matrix_exp)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  exponential(ctx, A, n, out);
}

/* The adjoint is the derivative of exp at A' in the direction R: the upper right block of exp([[A', R], [0, A']]). It is
 * linear in R, which is made small, so that it does not decide how often is squared. */
ULAM_API void KERNEL(matrix_exp_pullback)(ulam_context *ctx, const number *A, int64_t n, const number *out,
                                          number *A_adj, const number *out_adj) {
  (void)out;
  if (A_adj == NULL || out_adj == NULL) return;
  char *mark = ctx->arena_cursor;
  number *block = dense_zeros(ctx, 4 * n * n), *result = dense_numbers(ctx, 4 * n * n);
  double norm = norm_1(out_adj, n), scale = 1;
  int exponent = 0;
  if (norm > 0 && isfinite(norm)) {
    frexp(norm, &exponent);
    exponent = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : exponent;
    scale = ldexp(1.0, exponent);
  }
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      block[i + j * 2 * n] = block[(n + i) + (n + j) * 2 * n] = A[j + i * n];
      block[i + (n + j) * 2 * n] = out_adj[i + j * n] / scale;
    }
  exponential(ctx, block, 2 * n, result);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) A_adj[i + j * n] += scale * result[i + (n + j) * 2 * n];
  ulam_release(ctx, mark);
}
