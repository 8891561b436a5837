/* The exponential of a matrix: scaling and squaring with the Pade approximant of degree 13 (Higham, 2005). How often is
 * halved follows from the norms of powers, which far from normal matrices are much smaller than powers of the norm: what
 * is squared too often loses digits (Al-Mohy and Higham, "A New Scaling and Squaring Algorithm for the Matrix
 * Exponential", 2009). */
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

/* log2 of the norm of the matrix of absolute values to a power, without the power. */
static double log2_norm_of_absolute_power(ulam_context *ctx, const number *A, int64_t n, int power) {
  char *mark = ctx->arena_cursor;
  double *sums = ulam_alloc(ctx, 2 * n * (int64_t)sizeof *sums), *next = sums + n, exponents = 0;
  for (int64_t i = 0; i < n; ++i) sums[i] = 1;
  for (int k = 0; k < power; ++k) {
    double largest = 0;
    for (int64_t j = 0; j < n; ++j) {
      next[j] = 0;
      for (int64_t i = 0; i < n; ++i) next[j] += sums[i] * fabs(value_of(A[i + j * n]));
      largest = fmax(largest, next[j]);
    }
    if (largest == 0) {
      exponents = -INFINITY;
      break;
    }
    exponents += log2(largest);
    for (int64_t j = 0; j < n; ++j) sums[j] = next[j] / largest;
  }
  ulam_release(ctx, mark);
  return exponents;
}

static double root_of_norm(const number *power, int64_t n, int degree) { return pow(norm_1(power, n), 1.0 / degree); }

/* How often A, of a large norm, is halved: never more often than its norm asks for. */
static int halvings(ulam_context *ctx, const number *A, int64_t n, int most) {
  const double bound = 4.25;
  const double log2_of_last_term = 116.45; /* of the reciprocal of the first coefficient of the backward error */
  char *mark = ctx->arena_cursor;
  int64_t size = n * n;
  number *X = dense_copied(ctx, A, size), *X2 = dense_numbers(ctx, size), *X4 = dense_numbers(ctx, size),
         *X6 = dense_numbers(ctx, size);
  for (int64_t i = 0; i < size; ++i) X[i] *= ldexp(1.0, -most); /* so that no power runs over */
  double norm = norm_1(X, n), log2_power = log2_norm_of_absolute_power(ctx, X, n, 27);
  multiply(ctx, n, X, X, X2);
  multiply(ctx, n, X2, X2, X4);
  multiply(ctx, n, X4, X2, X6);
  multiply(ctx, n, X4, X4, X);
  multiply(ctx, n, X4, X6, X2);
  double d6 = root_of_norm(X6, n, 6), d8 = root_of_norm(X, n, 8), d10 = root_of_norm(X2, n, 10);
  ulam_release(ctx, mark);
  int fewer = 0; /* than the most */
  double least = fmin(fmax(d6, d8), fmax(d8, d10));
  while (fewer < most && ldexp(least, fewer + 1) <= bound) ++fewer;
  /* What rounding in the approximant adds, which absolute values decide. */
  double rest = log2_power - log2(norm) + 26 * fewer - log2_of_last_term + 53;
  int more = rest > 0 ? (int)fmin(ceil(rest / 26), 2000) : 0;
  return most - (more < fewer ? fewer - more : 0);
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
  if (squarings > 3) squarings = halvings(ctx, A, n, squarings);
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

/* Whether more of A is below the diagonal than above: then its transpose is taken, whose elimination keeps small entries
 * beside large ones. */
static int is_lower(const number *A, int64_t n) {
  double sum = 0;
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < j; ++i) sum += fabs(value_of(A[j + i * n])) - fabs(value_of(A[i + j * n]));
  return sum > 0;
}

static int64_t place(int64_t i, int64_t j, int64_t n, int transposed) { return transposed ? j + i * n : i + j * n; }

ULAM_API void KERNEL(matrix_exp)(ulam_context *ctx, const number *A, int64_t n, number *out) {
  if (!is_lower(A, n)) {
    exponential(ctx, A, n, out);
    return;
  }
  char *mark = ctx->arena_cursor;
  number *transposed = dense_numbers(ctx, n * n), *result = dense_numbers(ctx, n * n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) transposed[i + j * n] = A[j + i * n];
  exponential(ctx, transposed, n, result);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) out[j + i * n] = result[i + j * n];
  ulam_release(ctx, mark);
}

/* The adjoint is, transposed, the derivative of exp at A in the direction R', where R is the adjoint of the result: the
 * upper right block of exp([[A, R'], [0, A]]). It is linear in R, which is made small, so that it does not decide how
 * often is squared. Where A is transposed, so is all the rest. */
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
  int lower = is_lower(A, n);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) {
      block[i + j * 2 * n] = block[(n + i) + (n + j) * 2 * n] = A[place(i, j, n, lower)];
      block[i + (n + j) * 2 * n] = out_adj[place(j, i, n, lower)] / scale;
    }
  exponential(ctx, block, 2 * n, result);
  for (int64_t j = 0; j < n; ++j)
    for (int64_t i = 0; i < n; ++i) A_adj[place(j, i, n, lower)] += scale * result[i + (n + j) * 2 * n];
  ulam_release(ctx, mark);
}
