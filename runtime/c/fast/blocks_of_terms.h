/* Inverses by a Cholesky factor, and the terms of a normal density for few rows: the end of blocks.h. */

/* The rows of V = L^-1 for at most `height` vectors of columns, each filled up with zeros. */
#define INVERT(name, height)                                                                                      \
  static void name(int64_t n, const double *L, int64_t leading, double *restrict V) {                             \
    enum { ROW = height * W };                                                                                    \
    for (int64_t i = 0; i < n; ++i) {                                                                             \
      double inverse = 1 / L[i + i * leading];                                                                    \
      vec even[height], odd[height];                                                                              \
      UNROLLED for (int h = 0; h < height; ++h) {                                                                 \
        even[h] = (vec)((bits)(1.0 + (vec){0}) & (numbers(h) == i));                                              \
        odd[h] = (vec){0};                                                                                        \
      }                                                                                                           \
      int64_t p = 0;                                                                                              \
      for (; p + 2 <= i; p += 2) UNROLLED for (int h = 0; h < height; ++h) {                                      \
        even[h] -= L[i + p * leading] * *(const vec *)(V + p * ROW + h * W);                                      \
        odd[h] -= L[i + (p + 1) * leading] * *(const vec *)(V + (p + 1) * ROW + h * W);                           \
      }                                                                                                           \
      if (p < i) UNROLLED for (int h = 0; h < height; ++h)                                                        \
        even[h] -= L[i + p * leading] * *(const vec *)(V + p * ROW + h * W);                                      \
      UNROLLED for (int h = 0; h < height; ++h) *(vec *)(V + i * ROW + h * W) = (even[h] + odd[h]) * inverse;     \
    }                                                                                                             \
  }
INVERT(invert_8, 8 / W)
INVERT(invert_16, 16 / W)

/* Column j of V'V. */
#define COLUMN_OF_INVERSE(height, sum, n, V, j)                                                                   \
  vec sum[height];                                                                                                \
  UNROLLED for (int h = 0; h < height; ++h) sum[h] = (vec){0};                                                    \
  for (int64_t i = j; i < n; ++i) UNROLLED for (int h = 0; h < height; ++h)                                       \
    sum[h] += V[i * height * W + j] * *(const vec *)(V + i * height * W + h * W);

/* X (symmetric) := (L L')^-1, by blocks from the last to the first: with X22 that of the block L22 and G = L21 L11^-1 it
 * is X21 = -X22 G and X11 = (L11 L11')^-1 - G' X21. Nearly all of it is products. */
void BLOCKS(inverse_of_factor)(ulam_context *ctx, int64_t n, const double *L, double *X) {
  char *mark = ctx->arena_cursor;
  double V[PULLED * PULLED] __attribute__((aligned(64))), *panel = ulam_doubles(ctx, n * PULLED);
  dense_view factor = dense_of(L, n), inverse = dense_of(X, n), by_rows = {V, PULLED, 1};
  for (int64_t end = n; end > 0;) {
    int64_t size = end % PULLED ? end % PULLED : PULLED, begin = end - size, below = n - end;
    dense_view diagonal = dense_block(inverse, begin, begin), under = dense_block(inverse, end, begin),
               G = dense_of(panel, below);
    invert_16(size, &AT(factor, begin, begin), n, V);
    for (int64_t j = 0; j < size; ++j) {
      COLUMN_OF_INVERSE(16 / W, sum, size, V, j)
      double column[PULLED];
      UNROLLED for (int h = 0; h < 16 / W; ++h) *(vec *)(column + h * W) = sum[h];
      for (int64_t i = 0; i < size; ++i) AT(diagonal, i, j) = column[i];
    }
    if (below) {
      BLOCKS(multiply_add)(ctx, below, size, size, 1.0, dense_block(factor, end, begin), by_rows, G, DENSE_FRESH);
      BLOCKS(multiply_add)(ctx, below, size, below, -1.0, dense_block(inverse, end, end), G, under, DENSE_FRESH);
      BLOCKS(multiply_add)(ctx, size, size, below, -1.0, dense_transposed(G), under, diagonal, 0);
      for (int64_t i = 0; i < below; ++i)
        for (int64_t j = 0; j < size; ++j) AT(inverse, begin + j, end + i) = AT(under, i, j);
    }
    end = begin;
  }
  ulam_release(ctx, mark);
}

/* The factor L of A and z = L^-1 b: b is one more row of A, where there is room for it. As `FACTOR`. */
#define FACTOR_AND_SOLVE(name, height)                                                                           \
  static int name(int64_t n, const double *A, const double *b, double *L, double *z) {                            \
    enum { ROWS = height * W };                                                                                   \
    double columns[ROWS * ROWS] __attribute__((aligned(64))), inverses[ROWS];                                     \
    for (int64_t j = 0; j < n; ++j) {                                                                             \
      double *restrict column = columns + j * ROWS;                                                               \
      const double *from = A + j * n;                                                                             \
      vec value[height];                                                                                          \
      LOAD_COLUMN(height, column, from, n, n, j)                                                                  \
      UNROLLED for (int h = 0; h < height; ++h) {                                                                 \
        bits last = numbers(h) == n;                                                                              \
        value[h] = *(const vec *)(column + h * W);                                                                \
        value[h] = (vec)(((bits)value[h] & ~last) | ((bits)(b[j] + (vec){0}) & last));                            \
      }                                                                                                           \
      ELIMINATE(height, j, value, columns, inverses, 0)                                                           \
    }                                                                                                             \
    for (int64_t j = 0; j < n; ++j) {                                                                             \
      double *restrict to = L + j * n, *restrict column = columns + j * ROWS, root = sqrt(column[j]),             \
             inverse = 1 / root;                                                                                  \
      z[j] = column[n] * inverse;                                                                                 \
      for (int64_t i = 0; i < j; ++i) to[i] = 0;                                                                  \
      to[j] = root;                                                                                               \
      for (int64_t i = j + 1; i < n; ++i) to[i] = column[i] * inverse;                                            \
    }                                                                                                             \
    return 1;                                                                                                     \
  }
FACTOR_AND_SOLVE(factor_and_solve_8, 8 / W)
FACTOR_AND_SOLVE(factor_and_solve_16, 16 / W)

int BLOCKS(factor_few)(int64_t n, const double *A, const double *b, double *L, double *z) {
  if (n < 1 || n > 15) return 0;
  return (n < 8 ? factor_and_solve_8 : factor_and_solve_16)(n, A, b, L, z);
}

#define PULL_BACK_TERMS(name, height, invert)                                                                     \
  static void name(int64_t n, const double *L, const double *z, double of_square, double of_logs, double *A_adj,  \
                   double *b_adj) {                                                                               \
    enum { ROW = height * W };                                                                                    \
    double V[ROW * ROW] __attribute__((aligned(64))), alpha[ROW] __attribute__((aligned(64)));                    \
    invert(n, L, n, V);                                                                                           \
    vec total[height];                                                                                            \
    UNROLLED for (int h = 0; h < height; ++h) total[h] = (vec){0};                                                \
    for (int64_t i = 0; i < n; ++i) UNROLLED for (int h = 0; h < height; ++h)                                     \
      total[h] += z[i] * *(const vec *)(V + i * ROW + h * W);                                                     \
    UNROLLED for (int h = 0; h < height; ++h) *(vec *)(alpha + h * W) = total[h];                                 \
    if (b_adj)                                                                                                    \
      for (int64_t i = 0; i < n; ++i) b_adj[i] += 2 * of_square * alpha[i];                                       \
    if (A_adj == NULL) return;                                                                                    \
    for (int64_t j = 0; j < n; ++j) {                                                                             \
      COLUMN_OF_INVERSE(height, sum, n, V, j)                                                                     \
      double column[ROW] __attribute__((aligned(64))), factor = 2 * of_square * alpha[j], *to = A_adj + j * n;    \
      UNROLLED for (int h = 0; h < height; ++h)                                                                   \
        *(vec *)(column + h * W) = of_logs * sum[h] - factor * total[h];                                          \
      to[j] += 0.5 * column[j];                                                                                   \
      for (int64_t i = j + 1; i < n; ++i) to[i] += column[i];                                                     \
    }                                                                                                             \
  }
PULL_BACK_TERMS(pull_back_terms_8, 8 / W, invert_8)
PULL_BACK_TERMS(pull_back_terms_16, 16 / W, invert_16)

int BLOCKS(pull_back_terms)(int64_t n, const double *L, const double *z, double of_square, double of_logs, double *A_adj,
                            double *b_adj) {
  if (n > 16) return 0;
  (n <= 8 ? pull_back_terms_8 : pull_back_terms_16)(n, L, z, of_square, of_logs, A_adj, b_adj);
  return 1;
}
